"""Apertus (arXiv:2509.14233): a plain network whose activation (xIELU) learns two values a layer,
norms on the heads of Q and K."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, matrix, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA

NAMES = LLAMA | {"norm1": "attention_layernorm", "norm2": "feedforward_layernorm"}

TYPES: dict[str, dict[str, Any]] = {
    "apertus": dict(
        vocab_size=131072,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=65536,
        tie_word_embeddings=False,
        attention_bias=False,
    ),
    "apertus1p5_text": dict(
        vocab_size=266752,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=65536,
        tie_word_embeddings=False,
        attention_bias=False,
        output_vocab_size=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Version 1.5 may have a head for fewer words than its embedding."""
    xielu = (vector(f"mlp.act_fn.alpha_{x}", "ffn", 1) for x in "pn")
    fields: dict[str, Any] = {}
    words = c.size("output_vocab_size", c.vocab_size)
    if words != c.vocab_size:
        head = matrix("lm_head.weight", "head", words, c.hidden_size, "vocab")
        fields = {"head": "none", "outer": (Rows((head,)),)}
        c.ignore("tie_word_embeddings")
    return c.card(
        attention_bias=c.attention_bias,
        qk_norm="head",
        blocks=(Rows(tuple(xielu)),),
        **fields,
    )
