"""HRM-Text (sapientinc/HRM-Text-1B, after arXiv:2506.21734): two stacks of layers take turns on the
same tokens, the low one ``L_cycles`` times and then the high one, ``H_cycles`` times over. Norms
have no weights."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, FeedForward
from paramcalc.blocks.again import Again
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.sight import Causal

_LAYER = {name: path for name, path in LLAMA.items() if name.startswith(("attention.", "ffn."))}
_LAYER["attention.gate"] = "self_attn.gate_proj"

NAMES = LLAMA | {
    f"{stack}.{name}": f"model.{stack[0].upper()}_module.layers.{{i}}.{path} ^"
    for stack in ("low", "high")
    for name, path in _LAYER.items()
}

TYPES: dict[str, dict[str, Any]] = {
    "hrm_text": dict(
        vocab_size=151808,
        hidden_size=1536,
        intermediate_size=4096,
        num_hidden_layers=16,
        num_attention_heads=12,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=128,
        H_cycles=2,
        L_cycles=3,
        num_layers_per_stack=None,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """A layer here is one of the low stack and one of the high stack. A saved config states
    ``num_hidden_layers`` as the passes through all of them, beside ``num_layers_per_stack``."""
    high, low = c.size("H_cycles"), c.size("L_cycles")
    c.ignore("L_bp_cycles", "embedding_scale", "prefix_lm", "num_key_value_heads")
    fields: dict[str, Any] = {}
    if c.num_layers_per_stack is not None:
        c.ignore("num_hidden_layers")
        fields["n_layers"] = c.size("num_layers_per_stack")
        c.keys["n_layers"] = "num_layers_per_stack"
    return c.card(
        gated_ffn=True,
        norm="none",
        attention=False,
        ffn=False,
        blocks=(layer(c, "low", high * low), layer(c, "high", high)),
        outer=(Rows((vector("model.z_L_init", "residual", c.hidden_size),)),),
        n_kv_heads=None,
        **fields,
    )


def layer(c: Config, stack: str, times: int) -> Again:
    """Attention whose output is gated value by value, and a gated network."""
    d, heads, width = c.hidden_size, c.size("num_attention_heads"), c.size("head_dim")
    attention = Attention(
        f"{stack}.attention",
        d,
        heads,
        heads,
        width,
        width,
        Causal(),
        "qkvog" if c.attention_bias else "",
        gate="element",
    )
    network = FeedForward(f"{stack}.ffn", d, c.size("intermediate_size"), True, c.mlp_bias)
    return Again((attention, network), times)
