"""CPM-Ant 10B (OpenBMB 2022): a decoder that reads its text both ways and adds to the scores one
learned value for each pair of segments and each bucket of distance, shared by all layers."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention
from paramcalc.blocks.rows import Rows
from paramcalc.families.config import Config
from paramcalc.ledger import Tensor
from paramcalc.sight import Both

_ATTENTION = "self_att.self_attention"
NAMES = {
    "layers": "cpmant.encoder.layers",
    "embedding": "cpmant.input_embedding",
    "prompts": "cpmant.input_embedding",
    "segments": "cpmant.segment_embedding",
    "relative_positions": "cpmant.position_bias.relative_attention_bias !",
    "final_norm": "cpmant.encoder.output_layernorm",
    "head": "lm_head",
    "norm1": "self_att.layernorm_before_attention",
    "norm2": "ffn.layernorm_before_ffn",
    **{f"attention.{x}": f"{_ATTENTION}.project_{x}" for x in "qkv"},
    "attention.o": f"{_ATTENTION}.attention_out",
    "ffn.gate": "ffn.ffn.w_in.w_0",
    "ffn.up": "ffn.ffn.w_in.w_1",
    "ffn.down": "ffn.ffn.w_out",
}

TYPES: dict[str, dict[str, Any]] = {
    "cpmant": dict(
        vocab_size=30720,
        hidden_size=4096,
        num_attention_heads=32,
        head_dim=128,
        intermediate_size=10240,
        num_hidden_layers=48,
        position_bias_num_buckets=512,
        prompt_types=32,
        prompt_length=32,
        segment_types=32,
    ),
}

KEYS = {"head_dim": ("dim_head",), "intermediate_size": ("dim_ff",)}


def read(c: Config) -> dict[str, Any]:
    """The prompts' rows stand behind the words' in one table, so the head is a matrix of its own
    whatever the config says. A text's own prompt counts among its tokens."""
    d, heads = c.size("hidden_size"), c.size("num_attention_heads")
    width = c.get("head_dim") or c.share("hidden_size", "num_attention_heads")
    c.ignore("position_bias_max_distance", "tie_word_embeddings")
    prompts, segments = c.size("prompt_types") * c.size("prompt_length"), c.size("segment_types")
    tables = (
        Tensor("prompts", "embedding", (prompts, d), "lookup", "vocab"),
        Tensor("segments", "embedding", (segments, d), "lookup"),
    )
    return c.card(
        context=None,
        n_kv_heads=None,
        head_dim=width,
        gated_ffn=True,
        relative_buckets=segments**2 + c.size("position_bias_num_buckets"),
        attention=False,
        norms_per_layer=2,
        blocks=(Attention("attention", d, heads, heads, width, width, Both()),),
        outer=(Rows(tables),),
        tie_embeddings=False,
    )
