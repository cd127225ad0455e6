"""Decoders built of BART's layers: OPT (arXiv:2205.01068), XGLM (arXiv:2112.10668), BioGPT
(arXiv:2210.10341)."""

from __future__ import annotations

from typing import Any

from paramcalc.families.bart import unfed
from paramcalc.families.config import Config
from paramcalc.families.names import Names

TYPES: dict[str, dict[str, Any]] = {
    "opt": dict(
        vocab_size=50272,
        hidden_size=768,
        num_hidden_layers=12,
        max_position_embeddings=2048,
        do_layer_norm_before=True,
        word_embed_proj_dim=None,
        num_attention_heads=12,
        enable_bias=True,
        layer_norm_elementwise_affine=True,
        tie_word_embeddings=True,
        intermediate_size=3072,
    ),
    "xglm": dict(
        vocab_size=256008,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        num_attention_heads=16,
        hidden_size=1024,
        num_hidden_layers=24,
        intermediate_size=4096,
    ),
    "biogpt": dict(
        vocab_size=42384,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    ),
}

KEYS = {
    "hidden_size": ("d_model",),
    "num_hidden_layers": ("num_layers",),
    "num_attention_heads": ("attention_heads",),
    "intermediate_size": ("ffn_dim",),
}

_ROOTS = {"opt": "model.decoder", "xglm": "model", "biogpt": "biogpt"}


def NAMES(c: Config) -> Names:
    """BART's names under each type's own root."""
    root, kind = _ROOTS[c.model_type], c.model_type
    return {
        "layers": f"{root}.layers",
        "embedding": f"{root}.embed_tokens",
        "embedding.project": f"{root}.project_in",
        "head.project": f"{root}.project_out",
        "positions": f"{root}.embed_positions",
        "final_norm": f"{root}.{'final_layer_norm' if kind == 'opt' else 'layer_norm'}",
        "head": "output_projection" if kind == "biogpt" else "lm_head",
        "norm1": "self_attn_layer_norm",
        "norm2": "final_layer_norm",
        **{f"attention.{x}": f"self_attn.{x}_proj" for x in "qkv"},
        "attention.o": "self_attn.out_proj",
        "ffn.up": "fc1",
        "ffn.down": "fc2",
        "cross_norm": "encoder_attn_layer_norm",
        **{f"cross_attention.{x}": f"encoder_attn.{x}_proj" for x in "qkv"},
        "cross_attention.o": "encoder_attn.out_proj",
    }


def read(c: Config) -> dict[str, Any]:
    """Two rows more in the table of positions; XGLM's sinusoids are not stored.

    OPT-350M has a narrower embedding and, being post-norm, no norm at the end.
    """
    fields: dict[str, Any] = {"gpt2": True, "position_offset": 2}
    if c.model_type == "xglm":
        fields = {"gpt2": True, "positions": "none"}
        if c.get("add_cross_attention", False):
            fields |= {"blocks": (unfed(c, "qkvo", "num_attention_heads"),), "norms_per_layer": 2}
    if c.model_type == "opt":
        width, bias = c.get("word_embed_proj_dim") or c.hidden_size, c.enable_bias
        fields |= {
            "d_embedding": width if width != c.hidden_size else None,
            "attention_bias": bias,
            "ffn_bias": bias,
            "final_norm": c.do_layer_norm_before and not c.get("_remove_final_layer_norm", False),
            "norm": "layer" if c.layer_norm_elementwise_affine else "none",
        }
    return c.card(n_kv_heads=None, head_dim=None, **fields)
