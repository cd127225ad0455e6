"""GLM-4 (arXiv:2406.12793): biases on Q, K and V, gate and up in one matrix; the 0414 models
(``glm4``) have four norms a layer."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA

NAMES = LLAMA | {
    "ffn.gate": "mlp.gate_up_proj",
    "ffn.up": "mlp.gate_up_proj",
    "norm3": "post_self_attn_layernorm",
    "norm4": "post_mlp_layernorm",
}

TYPES: dict[str, dict[str, Any]] = {
    "glm": dict(
        vocab_size=151552,
        hidden_size=4096,
        intermediate_size=13696,
        num_hidden_layers=40,
        num_attention_heads=32,
        num_key_value_heads=2,
        head_dim=128,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=True,
    ),
    "glm4": dict(
        vocab_size=151552,
        hidden_size=4096,
        intermediate_size=13696,
        num_hidden_layers=40,
        num_attention_heads=32,
        num_key_value_heads=2,
        head_dim=128,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=True,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Llama's matrices."""
    return c.card(
        gated_ffn=True,
        attention_bias="qkv" if c.attention_bias else "",
        norms_per_layer=4 if c.model_type == "glm4" else 2,
    )
