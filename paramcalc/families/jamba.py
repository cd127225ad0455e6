"""Jamba (arXiv:2403.19887): one layer in eight attends and the others are Mamba's, with norms on
step and coefficients; every second layer has experts instead of one network."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.mamba import Mamba
from paramcalc.families.config import Config
from paramcalc.families.mamba import mixer_names, rank
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, stack

NAMES = (
    LLAMA
    | mixer_names("mamba")
    | {
        "final_norm": "model.final_layernorm",
        "norm2": "pre_ff_layernorm",
        "mixer.dt_norm": "mamba.dt_layernorm",
        "mixer.b_norm": "mamba.b_layernorm",
        "mixer.c_norm": "mamba.c_layernorm",
        "ffn.gate": "feed_forward.gate_proj",
        "ffn.up": "feed_forward.up_proj",
        "ffn.down": "feed_forward.down_proj",
        "ffn.router": "feed_forward.router",
        "ffn.experts.*.gate": "feed_forward.experts.gate_up_proj !",
        "ffn.experts.*.up": "feed_forward.experts.gate_up_proj !",
        "ffn.experts.*.down": "feed_forward.experts.down_proj !",
    }
)

TYPES: dict[str, dict[str, Any]] = {
    "jamba": dict(
        vocab_size=65536,
        tie_word_embeddings=False,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=262144,
        num_experts_per_tok=2,
        num_experts=16,
        expert_layer_period=2,
        expert_layer_offset=1,
        attn_layer_period=8,
        attn_layer_offset=4,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank=None,
        mamba_conv_bias=True,
        mamba_proj_bias=False,
    ),
}

KEYS = {"num_experts": ("num_local_experts",)}


def read(c: Config) -> dict[str, Any]:
    """A layer attends, and has experts, where its number leaves the right remainder."""
    c.strict = True
    c.ignore("use_mambapy", "use_associative_scan", "mamba_dt_rank", "mamba_inner_layernorms")
    c.ignore("layers_block_type", "layer_types", "layers_num_experts")
    n = c.num_hidden_layers
    scanning = dict(attention=False, norms_per_layer=2, blocks=(mixer(c),))
    fields: dict[str, Any] = {}
    routed = [False] * n
    if c.num_experts > 1:
        fields = dict(n_experts=c.num_experts, top_k=c.num_experts_per_tok)
        routed = every(c, "expert_layer", n)
    layers: Layers = [
        {
            "label": f"{'attention' if attends else 'mamba'}-{'moe' if moe else 'dense'}",
            **({} if attends else scanning),
            **({} if moe else {"n_experts": 0}),
        }
        for attends, moe in zip(every(c, "attn_layer", n), routed, strict=True)
    ]
    return c.card(gated_ffn=True, **(fields | stack(layers)))


def every(c: Config, what: str, n: int) -> list[bool]:
    """Return which of ``n`` layers a period and an offset pick. Raises ``ConfigError``."""
    period, offset = getattr(c, f"{what}_period"), getattr(c, f"{what}_offset")
    if offset >= period:
        c.fail(f"{what}_offset", offset, f"must be below {what}_period = {period}", "lower it")
    return [i % period == offset for i in range(n)]


def mixer(c: Config) -> Mamba:
    """Return the mixer of a layer that does not attend."""
    return Mamba(
        "mixer",
        c.hidden_size,
        c.mamba_expand * c.hidden_size,
        c.mamba_d_state,
        rank(c, "mamba_dt_rank"),
        c.mamba_d_conv,
        c.mamba_conv_bias,
        c.mamba_proj_bias,
        normed=True,
    )
