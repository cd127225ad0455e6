"""Gemma (arXiv:2403.08295), Gemma 2 (arXiv:2408.00118), Gemma 3 (arXiv:2503.19786): heads of a
width of their own, a tied head, and from Gemma 2 on four norms a layer and windows in most."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import stack

TYPES: dict[str, dict[str, Any]] = {
    "gemma": dict(
        vocab_size=256000,
        hidden_size=3072,
        intermediate_size=24576,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=16,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        use_bidirectional_attention=None,
    ),
    "gemma2": dict(
        vocab_size=256000,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=4096,
        use_bidirectional_attention=None,
    ),
    "gemma3_text": dict(
        vocab_size=262208,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=4096,
        use_bidirectional_attention=False,
    ),
    "vaultgemma": dict(
        vocab_size=256000,
        hidden_size=2304,
        intermediate_size=9216,
        num_hidden_layers=26,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=4096,
    ),
}


def NAMES(c: Config) -> Names:
    """Llama's; VaultGemma keeps only the norms before attention and feed-forward part."""
    if c.model_type == "vaultgemma":
        return LLAMA | {"norm2": "pre_feedforward_layernorm"}
    return LLAMA | {"norm3": "pre_feedforward_layernorm", "norm4": "post_feedforward_layernorm"}


def read(c: Config) -> dict[str, Any]:
    """Every second layer is windowed in Gemma 2, five of six in Gemma 3."""
    kind = c.model_type
    fields: dict[str, Any] = {"attention_bias": c.attention_bias}
    if kind in ("gemma2", "gemma3_text"):
        fields["norms_per_layer"] = 4
    if kind == "gemma3_text":
        fields["qk_norm"] = "head"
    if kind != "gemma":
        period = c.get("sliding_window_pattern", 6) if kind == "gemma3_text" else 2
        fields |= stack(c.windows(lambda i: (i + 1) % period != 0))
    if c.get("use_bidirectional_attention", False):
        fields["causal"] = False
    return c.card(gated_ffn=True, **fields)
