"""OLMo Hybrid: gated delta nets behind a norm in three layers of four; in the fourth OLMo 2's
attention (arXiv:2501.00656), with norms after it."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Norm
from paramcalc.blocks.delta import GatedDelta
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, stack

NAMES = LLAMA | {
    "norm1": "post_attention_layernorm",
    "norm.before": "input_layernorm",
    "norm.after": "post_feedforward_layernorm",
    "mixer.q": "linear_attn.q_proj",
    "mixer.k": "linear_attn.k_proj",
    "mixer.v": "linear_attn.v_proj",
    "mixer.gate": "linear_attn.g_proj",
    "mixer.beta": "linear_attn.b_proj",
    "mixer.decay": "linear_attn.a_proj",
    "mixer.conv": "linear_attn.conv1d",
    "mixer.decay_shift": "linear_attn.dt_bias !",
    "mixer.rates": "linear_attn.A_log !",
    "mixer.norm": "linear_attn.o_norm",
    "mixer.o": "linear_attn.o_proj",
}

TYPES: dict[str, dict[str, Any]] = {
    "olmo_hybrid": dict(
        vocab_size=100352,
        hidden_size=3840,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=30,
        num_key_value_heads=None,
        max_position_embeddings=65536,
        tie_word_embeddings=False,
        attention_bias=False,
        layer_types=None,
        linear_num_key_heads=None,
        linear_num_value_heads=None,
        linear_key_head_dim=None,
        linear_value_head_dim=None,
        linear_conv_kernel_dim=4,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Each kind of layer has two norms, one of them in the same place."""
    c.strict = True
    c.ignore("linear_allow_neg_eigval", "linear_dt_init_floor")
    c.ignore("linear_a_log_min", "linear_a_log_max", "linear_dt_min", "linear_dt_max")
    before, after = (Norm(f"norm.{side}", (c.hidden_size,), False) for side in ("before", "after"))
    scanning = dict(label="delta", attention=False, blocks=(delta(c), before))
    attending = dict(label="attention", blocks=(after,))
    kinds: Layers = [attending if yes else scanning for yes in attentions(c)]
    return c.card(
        gated_ffn=True,
        norms_per_layer=1,
        qk_norm="full",
        attention_bias=c.attention_bias,
        **stack(kinds),
    )


def attentions(c: Config) -> list[bool]:
    """Which layers attend: as listed, else every fourth, and the last where there is no fourth."""
    n = c.num_hidden_layers
    if c.layer_types is not None:
        among = {"linear_attention": False, "full_attention": True}
        kinds = c.per_layer("layer_types", n)
        return [bool(c.choose("layer_types", kind, among)) for kind in kinds]
    return [i % 4 == 3 or (n < 4 and i == n - 1) for i in range(n)]


def delta(c: Config) -> GatedDelta:
    """Return the delta net: as many heads as attention has, keys of three quarters of the stream
    shared out, values twice as wide, unless stated."""
    keys = c.size("linear_num_key_heads", c.num_attention_heads)
    heads = c.size("linear_num_value_heads", c.num_attention_heads)
    if heads % keys:
        c.fail("linear_num_value_heads", heads, f"linear_num_key_heads = {keys} must divide it")
    key_dim = c.size("linear_key_head_dim", int(0.75 * c.hidden_size / keys))
    value_dim = c.size("linear_value_head_dim", 2 * key_dim)
    kernel = c.linear_conv_kernel_dim
    return GatedDelta("mixer", c.hidden_size, keys, heads, key_dim, value_dim, kernel)
