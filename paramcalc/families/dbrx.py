"""DBRX (Databricks 2024): fused QKV, LayerNorm without a bias, all experts of a layer flat in three
matrices."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA

_QKV = "norm_attn_norm.attn.Wqkv"

NAMES = LLAMA | {
    "layers": "transformer.blocks",
    "embedding": "transformer.wte",
    "final_norm": "transformer.norm_f",
    "norm1": "norm_attn_norm.norm_1",
    "norm2": "norm_attn_norm.norm_2",
    "attention.q": _QKV,
    "attention.k": _QKV,
    "attention.v": _QKV,
    "attention.o": "norm_attn_norm.attn.out_proj",
    "ffn.router": "ffn.router.layer",
    "ffn.experts.*.gate": "ffn.experts.mlp.w1 !F",
    "ffn.experts.*.up": "ffn.experts.mlp.v1 !F",
    "ffn.experts.*.down": "ffn.experts.mlp.w2 !TF",
}

TYPES: dict[str, dict[str, Any]] = {
    "dbrx": dict(
        hidden_size=2048,
        num_attention_heads=16,
        num_hidden_layers=24,
        max_position_embeddings=2048,
        vocab_size=32000,
        tie_word_embeddings=False,
    ),
}

ATTENTION = dict(kv_n_heads=1)
EXPERTS = dict(ffn_hidden_size=3584, moe_num_experts=4, moe_top_k=1)


def read(c: Config) -> dict[str, Any]:
    """Sizes of attention and experts stand in sections of their own."""
    c.ignore("num_key_value_heads")  # stands in attn_config
    attention, experts = c.sub("attn_config", ATTENTION), c.sub("ffn_config", EXPERTS)
    return c.card(
        n_kv_heads=attention.kv_n_heads,
        d_ff=experts.ffn_hidden_size,
        gated_ffn=True,
        norm="layer",
        norm_bias=False,
        n_experts=experts.moe_num_experts,
        top_k=experts.moe_top_k,
    )
