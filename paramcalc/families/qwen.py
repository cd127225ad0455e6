"""Qwen 2 (arXiv:2407.10671) has biases on Q, K and V alone; Qwen 3 (arXiv:2505.09388) a norm on
each head of Q and K instead."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, stack

NAMES = LLAMA

TYPES: dict[str, dict[str, Any]] = {
    "qwen2": dict(
        vocab_size=151936,
        hidden_size=4096,
        intermediate_size=22016,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        use_sliding_window=False,
        sliding_window=4096,
        max_window_layers=28,
        layer_types=None,
    ),
    "qwen3": dict(
        vocab_size=151936,
        hidden_size=4096,
        intermediate_size=22016,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        head_dim=128,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        attention_bias=False,
        use_sliding_window=False,
        sliding_window=4096,
        max_window_layers=28,
        layer_types=None,
    ),
}


def windows(c: Config) -> Layers:
    """Layers past ``max_window_layers`` see a window, where windows are switched on at all."""
    if not c.get("use_sliding_window", False):
        c.ignore("sliding_window", "layer_types", "max_window_layers")
        return [{} for _ in range(c.num_hidden_layers)]
    return c.windows(lambda i: i >= c.get("max_window_layers", 28))


def read(c: Config) -> dict[str, Any]:
    """Llama's layers, with the biases or norms above."""
    if c.model_type == "qwen2":
        fields: dict[str, Any] = {"attention_bias": "qkv"}
    else:
        fields = {"attention_bias": c.attention_bias, "qk_norm": "head"}
    return c.card(gated_ffn=True, **fields, **stack(windows(c)))
