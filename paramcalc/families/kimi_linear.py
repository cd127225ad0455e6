"""Kimi Linear (arXiv:2510.26692) and Ling 3 (Bailing): delta attention in most layers, latent
attention in every fourth or sixth, and DeepSeek-V3's experts."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.kda import KimiDelta
from paramcalc.blocks.linear import linear
from paramcalc.families import deepseek
from paramcalc.families.config import Config
from paramcalc.families.stacks import layers

NAMES = deepseek.NAMES | {
    "attention.gate": "self_attn.g_proj",
    "mixer.q": "self_attn.q_proj",
    "mixer.k": "self_attn.k_proj",
    "mixer.v": "self_attn.v_proj",
    "mixer.conv": "self_attn.conv1d",
    "mixer.decay": "self_attn.forget_gate.f_proj",
    "mixer.decay_down": "self_attn.forget_gate.f_a_proj",
    "mixer.decay_up": "self_attn.forget_gate.f_b_proj",
    "mixer.decay_shift": "self_attn.forget_gate.dt_bias !",
    "mixer.rates": "self_attn.forget_gate.A_log !",
    "mixer.beta": "self_attn.b_proj",
    "mixer.gate": "self_attn.g_proj",
    "mixer.gate_down": "self_attn.g_a_proj",
    "mixer.gate_up": "self_attn.g_b_proj",
    "mixer.norm": "self_attn.o_norm",
    "mixer.o": "self_attn.o_proj",
}

KEYS = deepseek.KEYS | {
    "max_position_embeddings": ("model_max_length",),
    "num_experts_per_tok": ("num_experts_per_token",),
}

TYPES = {
    "kimi_linear": dict(
        vocab_size=163840,
        hidden_size=2304,
        intermediate_size=9216,
        moe_intermediate_size=1024,
        num_hidden_layers=27,
        num_attention_heads=32,
        n_shared_experts=1,
        n_routed_experts=256,
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_rope_head_dim=64,
        v_head_dim=128,
        qk_nope_head_dim=128,
        num_experts_per_tok=8,
        max_position_embeddings=1048576,
        attention_bias=False,
        first_k_dense_replace=1,
        mlp_layer_types=None,
        layer_types=None,
        linear_head_dim=128,
        linear_num_heads=32,
        linear_conv_kernel_dim=4,
    ),
    "bailing_hybrid": dict(
        vocab_size=157184,
        hidden_size=2560,
        intermediate_size=6144,
        moe_intermediate_size=768,
        num_hidden_layers=42,
        num_attention_heads=32,
        n_shared_experts=1,
        n_routed_experts=512,
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_rope_head_dim=64,
        v_head_dim=128,
        qk_nope_head_dim=128,
        num_experts_per_tok=8,
        max_position_embeddings=262144,
        attention_bias=False,
        first_k_dense_replace=2,
        mlp_layer_types=None,
        layer_types=None,
        layer_group_size=6,
        head_dim=128,
        short_conv_kernel_size=4,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """The classes never tie the head. Ling's latent attention has a gate of one value a head."""
    ling = c.model_type == "bailing_hybrid"
    c.ignore("tie_word_embeddings", "kda_safe_gate", "layer_group_size", "moe_renormalize")
    d, heads = c.size("hidden_size"), c.size("num_attention_heads")
    latent: dict[str, Any] = {}
    if ling:
        gate = Rows(tuple(linear("attention.gate", "attention", heads, d, shard="column")))
        latent = dict(blocks=(gate,))
    delta = dict(attention=False, norms_per_layer=2, blocks=(mixer(c),))
    kinds = [
        feed | (latent if full else delta)
        for feed, full in zip(deepseek.feed_forward(c), attentions(c), strict=True)
    ]
    if c.get("num_nextn_predict_layers", 0):
        c.left_out.append("layers of multi-token prediction (num_nextn_predict_layers)")
    return c.card(
        **deepseek.latent(c),
        **deepseek.experts(c),
        layers=layers(kinds),
        tie_embeddings=False,
    )


def attentions(c: Config) -> list[bool]:
    """Which layers have latent attention: as listed by kind or by number (from 1), or every fourth
    after the first; in Ling the last of each group."""
    n = deepseek.depth(c)
    kinds = c.layer_types
    if kinds is not None:
        among = {"full_attention": True, "linear_attention": False}
        every = c.per_layer("layer_types", n, kinds)
        return [c.choose("layer_types", kind, among) for kind in every]
    if c.model_type == "bailing_hybrid":
        size = c.size("layer_group_size")
        return [(i + 1) % size == 0 for i in range(n)]
    stated = c.sub("linear_attn_config")
    full, others = stated.get("full_attn_layers"), stated.get("kda_layers")
    if full is None or others is None:
        return [i > 0 and i % 4 == 0 for i in range(n)]
    found = dict.fromkeys(_numbers(c, others), False) | dict.fromkeys(_numbers(c, full), True)
    if found.keys() != set(range(1, n + 1)):
        c.fail("linear_attn_config", [*others, *full], f"must name each of the {n} layers")
    return [found[i + 1] for i in range(n)]


def _numbers(c: Config, found: Any) -> list[int]:
    if not isinstance(found, list) or any(type(number) is not int for number in found):
        c.fail("linear_attn_config", found, "must hold lists of layers' numbers")
    return list(found)


def mixer(c: Config) -> KimiDelta:
    """The delta attention. Ling sizes it by the plain keys; its ``head_dim`` is no other's."""
    if c.model_type == "bailing_hybrid":
        width = c.size("linear_head_dim", c.head_dim)
        heads = c.size("linear_num_heads", c.num_attention_heads)
        kernel = c.size("linear_conv_kernel_dim", c.short_conv_kernel_size)
        return KimiDelta("mixer", c.hidden_size, heads, width, kernel, False, (heads,))
    stated = c.sub("linear_attn_config")
    width = stated.size("head_dim", c.linear_head_dim)
    heads = stated.size("num_heads", c.linear_num_heads)
    kernel = stated.size("short_conv_kernel_size", c.linear_conv_kernel_dim)
    return KimiDelta("mixer", c.hidden_size, heads, width, kernel, True, (1, 1, heads, 1))
