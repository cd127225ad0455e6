"""GPT-2 (Radford et al. 2019): biases everywhere, learned positions, QKV fused as (in, out)."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config

NAMES = {
    "layers": "transformer.h",
    "embedding": "transformer.wte",
    "positions": "transformer.wpe",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "norm1": "ln_1",
    "norm2": "ln_2",
    "attention.q": "attn.c_attn T",
    "attention.k": "attn.c_attn T",
    "attention.v": "attn.c_attn T",
    "attention.o": "attn.c_proj T",
    "ffn.up": "mlp.c_fc T",
    "ffn.down": "mlp.c_proj T",
}

TYPES = {
    "gpt2": dict(
        vocab_size=50257,
        max_position_embeddings=1024,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=None,
        tie_word_embeddings=True,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """A plain network of 4 d unless ``n_inner`` says otherwise."""
    return c.card(gpt2=True)
