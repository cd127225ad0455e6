"""Multi-head latent attention: keys and values from one small latent a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import Causal, Sight


class LatentAttention(NamedTuple):
    """MLA as in DeepSeek-V2 (arXiv:2405.04434, section 2.1), in its expanded form.

    ``q_lora_rank`` is None where queries come from one full matrix (V2-Lite). The cache holds the
    latent and the shared rotary key: ``kv_lora_rank + qk_rope_head_dim`` elements a token, whatever
    the number of heads. An indexer (DeepSeek-V3.2) scores every position with ``index_n_heads``
    small heads and caches one key of ``index_head_dim``; attention then sees ``index_top_k``.
    """

    name: str
    d_model: Num
    n_heads: Num
    q_lora_rank: Num | None
    kv_lora_rank: Num
    qk_nope_head_dim: Num
    qk_rope_head_dim: Num
    v_head_dim: Num
    sight: Sight
    index_n_heads: Num | None = None
    index_head_dim: Num | None = None
    biases: str = ""
    cached: bool = True

    def rows(self) -> Iterator[Row]:
        """Yield the low-rank matrices and their norms, the two products, and the latent cache."""
        d, heads, own = self.d_model, self.n_heads, self.name
        width = self.qk_nope_head_dim + self.qk_rope_head_dim
        has = self.biases.__contains__
        if self.q_lora_rank is None:
            yield from linear(
                f"{own}.q", "attention", heads * width, d, shard="column", units=heads
            )
        else:
            yield from linear(f"{own}.q_down", "attention", self.q_lora_rank, d, bias=has("q"))
            yield from Norm(f"{own}.q_norm", (self.q_lora_rank,), False).rows()
            yield from linear(
                f"{own}.q_up",
                "attention",
                heads * width,
                self.q_lora_rank,
                shard="column",
                units=heads,
            )
        latent = self.kv_lora_rank + self.qk_rope_head_dim
        yield from linear(f"{own}.kv_down", "attention", latent, d, bias=has("k"))
        yield from Norm(f"{own}.kv_norm", (self.kv_lora_rank,), False).rows()
        up = heads * (self.qk_nope_head_dim + self.v_head_dim)
        yield from linear(
            f"{own}.kv_up", "attention", up, self.kv_lora_rank, shard="column", units=heads
        )
        yield from linear(
            f"{own}.o",
            "attention",
            d,
            heads * self.v_head_dim,
            bias=has("o"),
            shard="row",
            units=heads,
        )
        yield Operation(f"{own}.scores", "attention", 2 * heads * width, self.sight)
        yield Operation(f"{own}.values", "attention", 2 * heads * self.v_head_dim, self.sight)
        if self.cached:
            yield Cache(f"{own}.latent", latent, self.sight, of="latent")
        if self.index_n_heads is not None and self.index_head_dim is not None:
            yield from self._indexer(self.index_n_heads, self.index_head_dim)

    def _indexer(self, heads: Num, width: Num) -> Iterator[Row]:
        """The lightning indexer of DeepSeek-V3.2: queries from the query latent, one key a token.

        A pair costs 2 x heads x width for the scores and 2 x heads for their weighted sum.
        """
        own = f"{self.name}.indexer"
        into = self.d_model if self.q_lora_rank is None else self.q_lora_rank
        yield from linear(f"{own}.q", "attention", heads * width, into)
        yield from linear(f"{own}.k", "attention", width, self.d_model)
        yield Tensor(f"{own}.k_norm", "norm", (width,), "scale")
        yield Tensor(f"{own}.k_norm.bias", "norm", (width,), "bias")
        yield from linear(f"{own}.weights", "attention", heads, self.d_model)
        yield Operation(f"{own}.scores", "attention", 2 * heads * width + 2 * heads, Causal())
        yield Cache(f"{own}.keys", width, Causal())
