"""A.X K2 (SK Telecom): DeepSeek-V3.2's layers with an output gate in attention, which shares one
matrix with the queries, and a gate of low rank behind the norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from paramcalc.blocks import LatentAttention, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families import deepseek
from paramcalc.families.config import Config
from paramcalc.families.stacks import layers
from paramcalc.ledger import Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import Sparse

_FIRST, _SECOND = "input_layernorm", "post_attention_layernorm"
NAMES = deepseek.NAMES | {
    "attention.q_up": "self_attn.q_gate_proj",
    "norm1": f"{_FIRST}.norm",
    "norm1.down": f"{_FIRST}.mlp.fc1",
    "norm1.up": f"{_FIRST}.mlp.fc2",
    "norm2": f"{_SECOND}.norm",
    "norm2.down": f"{_SECOND}.mlp.fc1",
    "norm2.up": f"{_SECOND}.mlp.fc2",
    "norm2.plain": _SECOND,
}

KEYS = deepseek.KEYS

TYPES = {
    "axk2": dict(
        vocab_size=163840,
        hidden_size=2048,
        intermediate_size=5120,
        moe_intermediate_size=512,
        num_hidden_layers=48,
        num_attention_heads=32,
        n_shared_experts=1,
        n_routed_experts=128,
        kv_lora_rank=128,
        q_lora_rank=384,
        qk_rope_head_dim=32,
        v_head_dim=64,
        qk_nope_head_dim=64,
        num_experts_per_tok=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_layer_types=None,
        first_k_dense_replace=1,
        index_topk=2048,
        index_head_dim=128,
        index_n_heads=16,
        gated_norm_rank=16,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """One dense layer, whose second norm has no gate, then experts."""
    c.ignore("num_key_value_heads", "head_dim", "qk_head_dim", "layer_types")
    d, rank = c.hidden_size, c.size("gated_norm_rank")
    before = Rows(tuple(attention(c))), GatedNorm("norm1", d, rank)
    own = {
        True: (*before, Norm("norm2.plain", (d,), False)),
        False: (*before, GatedNorm("norm2", d, rank)),
    }
    kinds = [kind | dict(blocks=own[bool(kind)]) for kind in deepseek.feed_forward(c)]
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        attention=False,
        norms_per_layer=0,
        gated_ffn=True,
        **deepseek.experts(c),
        layers=layers(kinds),
    )


class GatedNorm(NamedTuple):
    """RMSNorm whose output is scaled by a gate of two matrices with ``rank`` between them."""

    name: str
    d_model: Num
    rank: Num

    def rows(self) -> Iterator[Tensor]:
        """Yield the scale and the two matrices."""
        yield from Norm(self.name, (self.d_model,), False).rows()
        yield from linear(f"{self.name}.down", "norm", self.rank, self.d_model)
        yield from linear(f"{self.name}.up", "norm", self.d_model, self.rank)


def attention(c: Config) -> Iterator[Row]:
    """Latent attention with an indexer; the query latent, normed and not, gives queries and a gate
    as wide as the values."""
    heads, rank = c.size("num_attention_heads"), c.size("q_lora_rank")
    nope, rope, v_dim = (
        c.size(key) for key in ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    )
    latent = LatentAttention(
        "attention",
        c.size("hidden_size"),
        heads,
        rank,
        c.size("kv_lora_rank"),
        nope,
        rope,
        v_dim,
        Sparse(c.size("index_topk")),
        c.size("index_n_heads"),
        c.size("index_head_dim"),
        "qko" if c.attention_bias else "",
    )
    for row in latent.rows():
        if isinstance(row, Tensor) and row.name == "attention.q_up":
            row = row._replace(shape=(heads * (nope + rope + v_dim), 2 * rank))
        yield row
