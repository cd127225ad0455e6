"""Llama, and the many decoders that differ from it by defaults alone."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA

NAMES = LLAMA

TYPES = {
    "llama": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Pre-norm, RMSNorm, SwiGLU, no biases unless the config says so."""
    return c.card(gated_ffn=True, attention_bias=c.attention_bias, ffn_bias=c.mlp_bias)
