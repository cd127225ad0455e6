"""OLMo (arXiv:2402.00838) has norms without weights; OLMo 2 (arXiv:2501.00656) and 3 norm after
attention and network, and over all heads of Q and of K together; OLMo 3 has windows in three
layers of four."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import stack

NAMES = LLAMA | {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"}

TYPES: dict[str, dict[str, Any]] = {
    "olmo": dict(
        vocab_size=50304,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        clip_qkv=None,
    ),
    "olmo2": dict(
        vocab_size=50304,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
    ),
    "olmo3": dict(
        vocab_size=50304,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        sliding_window=4096,
        layer_types=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Llama's matrices."""
    fields: dict[str, Any] = {"norm": "none"} if c.model_type == "olmo" else {"qk_norm": "full"}
    if c.model_type == "olmo3":
        fields |= stack(c.windows(lambda i: (i + 1) % 4 != 0))
    c.ignore("clip_qkv")
    return c.card(gated_ffn=True, attention_bias=c.attention_bias, **fields)
