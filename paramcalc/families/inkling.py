"""Inkling: short convolutions on keys, values and both halves of a layer, relative positions made
from the stream, windows in most layers; routed experts beside shared ones that the router weighs
too."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, matrix, scale, vector
from paramcalc.families.config import Config, Layers, both, stack
from paramcalc.families.names import LLAMA, MOE
from paramcalc.ledger import Cache, Row, Tensor
from paramcalc.sight import State

NAMES = LLAMA | MOE | {"mlp.gate.shared": "mlp.gate"}

TYPES: dict[str, dict[str, Any]] = {
    "inkling_text": dict(
        vocab_size=201024,
        unpadded_vocab_size=None,
        hidden_size=6144,
        num_hidden_layers=66,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=128,
        swa_num_attention_heads=64,
        swa_num_key_value_heads=16,
        swa_head_dim=128,
        d_rel=16,
        rel_extent=1024,
        log_scaling_n_floor=None,
        log_scaling_alpha=0.1,
        local_layer_ids=None,
        layer_types=None,
        max_position_embeddings=131072,
        conv_kernel_size=4,
        intermediate_size=24576,
        moe_intermediate_size=3072,
        num_experts_per_tok=6,
        n_shared_experts=2,
        shared_expert_sink=True,
        route_scale=8.0,
        logits_mup_width_multiplier=24.0,
        chain_hidden_post_norm=False,
        mtp_hidden_states_first=True,
        mtp_local_layer_ids=None,
        sliding_window=512,
        num_experts=256,
    ),
}

KEYS = {
    "sliding_window": ("sliding_window_size",),
    "num_experts": ("n_routed_experts", "num_local_experts"),
    "conv_kernel_size": ("sconv_kernel_size",),
    "max_position_embeddings": ("model_max_length",),
}

WORDS = {"hybrid": False, "hybrid_sliding": True}


def sliding(c: Config, local: list[int] | None) -> list[bool]:
    """Which layers see a window: listed, or five of six."""
    n = c.num_hidden_layers
    kinds = c.get("layer_types")
    if kinds is not None:
        return [
            bool(c.choose("layer_types", k, WORDS)) for k in c.per_layer("layer_types", n, kinds)
        ]
    return [i in local if local is not None else (i + 1) % 6 != 0 for i in range(n)]


def read(c: Config) -> dict[str, Any]:
    """Windowed layers have numbers of heads of their own."""
    d = c.hidden_size
    dense = c.dense(c.get("dense_mlp_idx", 0))
    wide, narrow = c.intermediate_size, c.moe_intermediate_size
    if c.has("dense_intermediate_size"):
        wide, narrow = c.get("dense_intermediate_size"), wide
    each: Layers = []
    for window, layer in zip(sliding(c, c.get("local_layer_ids")), dense, strict=True):
        prefix = "swa_" if window else ""
        heads = getattr(c, f"{prefix}num_attention_heads")
        kv, width = getattr(c, f"{prefix}num_key_value_heads"), getattr(c, f"{prefix}head_dim")
        extent = c.sliding_window if window else c.rel_extent
        rows = (
            positions(c, heads, extent)
            + _convolutions(c, kv * width)
            + _experts(c, bool(layer), narrow)
        )
        fields = {
            "n_heads": heads,
            "n_kv_heads": kv,
            "head_dim": width,
            "blocks": (Rows(tuple(rows)),),
        }
        each.append(fields | ({"window": c.sliding_window} if window else {}))
    norm = scale("model.embed_tokens.embed_norm.weight", d)
    c.ignore(*QUIET)
    return c.card(
        n_heads=c.num_attention_heads,
        d_ff=wide,
        gated_ffn=True,
        qk_norm="head",
        n_experts=c.num_experts,
        top_k=c.num_experts_per_tok,
        d_expert=narrow,
        router_correction="buffer",
        outer=(Rows((norm,)),),
        **stack(both(each, dense)),
    )


QUIET = (
    "unpadded_vocab_size",
    "log_scaling_n_floor",
    "log_scaling_alpha",
    "shared_expert_sink",
    "logits_mup_width_multiplier",
    "chain_hidden_post_norm",
    "mtp_hidden_states_first",
    "mtp_local_layer_ids",
    "number_of_conv_states",
    "route_scale",
    "swa_head_dim",
    "swa_num_attention_heads",
    "swa_num_key_value_heads",
)


def positions(c: Config, heads: int, extent: int) -> list[Row]:
    """``d_rel`` values a head, each head's turned into one logit for every distance."""
    return [
        matrix("self_attn.r_proj.weight", "attention", heads * c.d_rel, c.hidden_size),
        Tensor("self_attn.rel_logits_proj.proj", "attention", (c.d_rel, extent), runs=heads),
    ]


def _convolutions(c: Config, keys: int) -> list[Row]:
    """Four depthwise convolutions; the cache keeps the last inputs of each, one fewer than taps."""
    d, kernel = c.hidden_size, c.conv_kernel_size
    rows: list[Row] = []
    for name, size in (
        ("self_attn.k_sconv", keys),
        ("self_attn.v_sconv", keys),
        ("attn_sconv", d),
        ("mlp_sconv", d),
    ):
        rows.append(Tensor(f"{name}.conv1d.weight", "mixer", (size, 1, kernel), "conv"))
        rows.append(Cache(f"{name}.state", size * (kernel - 1), State(), of="state"))
    return rows


def _experts(c: Config, dense: bool, width: int) -> list[Row]:
    """The router weighs the shared experts too; a scale multiplies all."""
    if dense:
        return [vector("mlp.global_scale", "ffn", 1)]
    d, shared = c.hidden_size, c.n_shared_experts
    return [
        vector("mlp.gate.global_scale", "router", 1),
        Tensor("mlp.gate.shared", "router", (shared, d)),
        Tensor("mlp.shared_experts.gate_proj", "ffn", (shared, width, d)),
        Tensor("mlp.shared_experts.up_proj", "ffn", (shared, width, d)),
        Tensor("mlp.shared_experts.down_proj", "ffn", (shared, d, width)),
    ]
