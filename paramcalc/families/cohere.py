"""Command R (Cohere): attention and network side by side after one norm without a bias; Command
R7B and A (``cohere2``) have windows in three layers of four."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import stack

NAMES = LLAMA

TYPES: dict[str, dict[str, Any]] = {
    "cohere": dict(
        vocab_size=256000,
        hidden_size=8192,
        intermediate_size=22528,
        num_hidden_layers=40,
        num_attention_heads=64,
        num_key_value_heads=None,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        use_qk_norm=False,
    ),
    "cohere2": dict(
        vocab_size=256000,
        hidden_size=8192,
        intermediate_size=22528,
        num_hidden_layers=40,
        num_attention_heads=64,
        num_key_value_heads=None,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=4096,
        layer_types=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Llama's matrices; ``use_qk_norm`` norms every head of Q and K with weights of its own."""
    fields: dict[str, Any] = {"attention_bias": c.attention_bias}
    if c.model_type == "cohere2":
        period = c.get("sliding_window_pattern", 4)
        fields |= stack(c.windows(lambda i: (i + 1) % period != 0))
    elif c.use_qk_norm:
        fields["qk_norm"] = "per_head"
    return c.card(gated_ffn=True, norm="layer", norm_bias=False, norms_per_layer=1, **fields)
