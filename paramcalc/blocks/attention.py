"""Softmax attention with heads: MHA, GQA and MQA, causal, windowed, chunked or cross."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Stream, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import Sight


class Attention(NamedTuple):
    """Four matrices Q, K, V, O; K and V have ``n_kv_heads`` heads (Ainslie et al. 2023, GQA).

    ``biases`` holds the letters of the matrices that carry one. ``qk_norm`` is ``none``, ``head``
    (one weight vector of ``head_dim`` for all heads), ``per_head`` (one for each head) or ``full``
    (one over all heads together). ``sinks`` adds one learned value a head (gpt-oss). ``cross``
    takes keys and values from an encoder's tokens. ``cached`` is false where nothing is generated.
    ``gate`` scales the output: ``element`` (a matrix as large as Q) or ``head`` (one value a head).
    ``parts`` names the matrices that exist: without ``v`` the keys serve as values, and without
    ``k`` both come from an earlier layer, whose cache they share. ``d_in`` is the width that Q, K
    and V read where it is not ``d_model``, ``d_source`` that of what K and V alone read.
    """

    name: str
    d_model: Num
    n_heads: Num
    n_kv_heads: Num
    head_dim: Num
    v_head_dim: Num
    sight: Sight
    biases: str = ""
    qk_norm: str = "none"
    norm_bias: bool = False
    sinks: bool = False
    cross: bool = False
    cached: bool = True
    gate: str = "none"
    parts: str = "qkvo"
    d_in: Num | None = None
    d_source: Num | None = None

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, biases, sinks and norms, the two products, and the cache."""
        d, own = self.d_model, self.name
        into = d if self.d_in is None else self.d_in
        q, k = self.n_heads * self.head_dim, self.n_kv_heads * self.head_dim
        v, o = self.n_kv_heads * self.v_head_dim, self.n_heads * self.v_head_dim
        source: Stream = "source" if self.cross else "token"
        has = self.biases.__contains__
        yield from linear(
            f"{own}.q", "attention", q, into, bias=has("q"), shard="column", units=self.n_heads
        )
        if self.gate != "none":
            width = o if self.gate == "element" else self.n_heads
            yield from linear(
                f"{own}.gate",
                "attention",
                width,
                into,
                bias=has("g"),
                shard="column",
                units=self.n_heads,
            )
        source_width = into if self.d_source is None else self.d_source
        for letter, width in (("k", k), ("v", v)):
            if letter in self.parts:
                yield from linear(
                    f"{own}.{letter}",
                    "attention",
                    width,
                    source_width,
                    bias=has(letter),
                    shard="kv",
                    stream=source,
                    units=self.n_kv_heads,
                )
        yield from linear(
            f"{own}.o", "attention", d, o, bias=has("o"), shard="row", units=self.n_heads
        )
        if self.sinks:
            yield Tensor(f"{own}.sinks", "attention", (self.n_heads,), "bias", "column")
        if self.qk_norm != "none":
            yield from self._norm("q_norm", self.n_heads).rows()
            if "k" in self.parts:
                yield from self._norm("k_norm", self.n_kv_heads).rows()
        scores, values = 2 * self.n_heads * self.head_dim, 2 * self.n_heads * self.v_head_dim
        yield Operation(f"{own}.scores", "attention", scores, self.sight)
        yield Operation(f"{own}.values", "attention", values, self.sight)
        if self.cached and "k" in self.parts:
            kept = k + v if "v" in self.parts else k
            yield Cache(
                f"{own}.kv",
                kept,
                self.sight,
                of="cross" if self.cross else None,
                units=self.n_kv_heads,
            )

    def _norm(self, name: str, heads: Num) -> Norm:
        shapes = {
            "head": (self.head_dim,),
            "per_head": (heads, self.head_dim),
            "full": (heads * self.head_dim,),
        }
        return Norm(f"{self.name}.{name}", shapes[self.qk_norm], self.norm_bias)
