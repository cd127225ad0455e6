"""Mistral (arXiv:2310.06825) and others whose layers see a window, all of them or some."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import stack

NAMES = LLAMA

TYPES: dict[str, dict[str, Any]] = {
    "mistral": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=None,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=4096,
    ),
    "ministral": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=None,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=4096,
        layer_types=None,
    ),
    "ministral3": dict(
        vocab_size=131072,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=34,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=262144,
        tie_word_embeddings=False,
        sliding_window=None,
    ),
    "cwm": dict(
        vocab_size=128256,
        hidden_size=6144,
        intermediate_size=21504,
        num_hidden_layers=64,
        num_attention_heads=48,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        mlp_bias=False,
        head_dim=128,
        sliding_window=8192,
        layer_types=None,
    ),
    "granite_swa": dict(
        vocab_size=100352,
        hidden_size=2560,
        intermediate_size=8192,
        num_hidden_layers=24,
        num_attention_heads=20,
        num_key_value_heads=4,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        mlp_bias=False,
        sliding_window=128,
        layer_types=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Llama's layers; Granite's windowed type learns one attention sink a head."""
    fields: dict[str, Any] = {}
    if c.model_type in ("mistral", "ministral3"):
        fields["window"] = c.get("sliding_window", 0) or None
        c.ignore("layer_types")
    elif c.model_type == "ministral":
        fields |= stack(c.windows(lambda i: True))
    else:
        fields |= stack(c.windows(lambda i: i % 4 != 0))
    if c.model_type == "granite_swa":
        fields |= {"sinks": True, "attention_bias": c.attention_bias}
    return c.card(gated_ffn=True, ffn_bias=bool(c.get("mlp_bias", False)), **fields)
