"""Inkling (thinkingmachines/Inkling): five of six layers see a window; a learned profile over
distance is added to the scores; short convolutions follow K, V and both sublayers; the router
scores shared experts beside the routed ones."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Block, FeedForward
from paramcalc.blocks.rows import Rows, matrix, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import Layers, both, stack
from paramcalc.ledger import Cache, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State

_SHARED = {f"ffn.shared.experts.*.{x}": f"mlp.shared_experts.{x}_proj !" for x in ("gate", "up")}

NAMES = (
    LLAMA
    | MOE
    | _SHARED
    | {
        "embedding_norm": "model.embed_tokens.embed_norm",
        "attention.relative": "self_attn.r_proj",
        "attention.profiles": "self_attn.rel_logits_proj.proj !T",
        "attention.k_conv": "self_attn.k_sconv.conv1d",
        "attention.v_conv": "self_attn.v_sconv.conv1d",
        "attention.conv": "attn_sconv.conv1d",
        "ffn.conv": "mlp_sconv.conv1d",
        "ffn.scale": "mlp.global_scale !",
        "ffn.router.shared": "mlp.gate",
        "ffn.router.scale": "mlp.gate.global_scale !",
        "ffn.shared.experts.*.down": "mlp.shared_experts.down_proj !",
    }
)

TYPES: dict[str, dict[str, Any]] = {
    "inkling_text": dict(
        vocab_size=201024,
        hidden_size=6144,
        num_hidden_layers=66,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=128,
        swa_num_attention_heads=64,
        swa_num_key_value_heads=16,
        swa_head_dim=128,
        sliding_window_size=512,
        d_rel=16,
        rel_extent=1024,
        local_layer_ids=None,
        layer_types=None,
        max_position_embeddings=131072,
        conv_kernel_size=4,
        mlp_layer_types=None,
        dense_mlp_idx=0,
        intermediate_size=24576,
        dense_intermediate_size=None,
        moe_intermediate_size=3072,
        n_routed_experts=256,
        num_experts_per_tok=6,
        n_shared_experts=2,
        num_mtp_layers=None,
    ),
}

WRAPS = {
    "inkling_mm_model": {"as": "inkling_text"},
}

KEYS = {
    "sliding_window_size": ("sliding_window",),
    "n_routed_experts": ("num_local_experts",),
    "conv_kernel_size": ("sconv_kernel_size",),
    "max_position_embeddings": ("model_max_length",),
}


def read(c: Config) -> dict[str, Any]:
    """Sliding layers have heads of their own; the head is never tied, and is not cut to
    ``unpadded_vocab_size``. Checkpoints state the experts' width as ``intermediate_size`` and the
    dense layers' as ``dense_intermediate_size``."""
    c.strict = True
    c.ignore("tie_word_embeddings", "unpadded_vocab_size", "number_of_conv_states")
    c.ignore("log_scaling_n_floor", "logits_mup_width_multiplier", "shared_expert_sink")
    c.ignore("chain_hidden_post_norm", "mtp_hidden_states_first", "mtp_local_layer_ids")
    c.ignore("moe_intermediate_size")
    c.leave_out("num_mtp_layers", "layers of multi-token prediction")
    dense, expert = c.dense_intermediate_size, c.intermediate_size
    if dense is None:
        dense, expert = expert, c.moe_intermediate_size
    sliding, kinds = slides(c), [bool(kind) for kind in c.dense(c.dense_mlp_idx)]
    own = {slide: _attention(c, slide) for slide in dict.fromkeys(sliding)}
    wide = {kind: _network(c, kind, dense, expert) for kind in dict.fromkeys(kinds)}
    heads, networks = [own[slide] for slide in sliding], [wide[kind] for kind in kinds]
    joined: Layers = [
        {**layer, "blocks": one["blocks"] + other["blocks"]}
        for layer, one, other in zip(both(heads, networks), heads, networks, strict=True)
    ]
    return c.card(
        gated_ffn=True,
        qk_norm="head",
        embedding_norm=True,
        tie_embeddings=False,
        **stack(joined),
    )


def slides(c: Config) -> list[bool]:
    """Which layers see a window: as listed, else all but every sixth."""
    c.ignore(*(own + key for own in ("", "swa_") for key in HEADS), "rel_extent", "local_layer_ids")
    n, kinds = c.num_hidden_layers, c.layer_types
    if kinds is not None:
        words = {"hybrid": False, "hybrid_sliding": True}
        return [c.choose("layer_types", k, words) for k in c.per_layer("layer_types", n, kinds)]
    listed = c.get("local_layer_ids")
    if listed is None:
        return [(i + 1) % 6 != 0 for i in range(n)]
    if not isinstance(listed, list):
        c.fail("local_layer_ids", listed, "must be a list")
    return [i in listed for i in range(n)]


HEADS = ("num_attention_heads", "num_key_value_heads", "head_dim")


def heads_of(c: Config, sliding: bool) -> dict[str, Any]:
    """The heads of a kind of layer, and its window, as fields."""
    keys = [f"swa_{key}" if sliding else key for key in HEADS]
    heads, kv, width = (c.size(key) for key in keys)
    if heads % kv:
        c.fail(keys[1], kv, f"must divide {keys[0]} = {heads}")
    fields = {"n_heads": heads, "n_kv_heads": kv, "head_dim": width}
    if sliding:
        fields["window"] = c.size("sliding_window_size")
    return fields


def convolution(name: str, channels: Num, kernel: Num) -> Rows:
    """A causal convolution of each channel with itself. The cache holds the last ``kernel`` values
    a channel, as the framework does (a step needs one less)."""
    return Rows(
        (
            Tensor(name, "mixer", (channels, 1, kernel), "conv"),
            Cache(f"{name}.state", channels * kernel, State(), of="state"),
        )
    )


def profiles(c: Config, sliding: bool) -> Rows:
    """A token and head mix ``d_rel`` profiles into one value for each distance up to the window, or
    in full layers ``rel_extent``."""
    heads = heads_of(c, sliding)["n_heads"]
    mixed, extent = c.size("d_rel"), c.size("sliding_window_size" if sliding else "rel_extent")
    return Rows(
        (
            matrix("attention.relative", "attention", heads * mixed, c.hidden_size),
            Tensor("attention.profiles", "attention", (extent, mixed), runs=heads),
        )
    )


def _attention(c: Config, sliding: bool) -> dict[str, Any]:
    fields, kernel = heads_of(c, sliding), c.size("conv_kernel_size")
    width = fields["n_kv_heads"] * fields["head_dim"]
    blocks: tuple[Block, ...] = (
        profiles(c, sliding),
        convolution("attention.k_conv", width, kernel),
        convolution("attention.v_conv", width, kernel),
        convolution("attention.conv", c.hidden_size, kernel),
        convolution("ffn.conv", c.hidden_size, kernel),
    )
    return fields | {"blocks": blocks}


def _network(c: Config, dense: bool, width: int, expert: int) -> dict[str, Any]:
    """A gated network, or experts of which the shared ones are routed to as well; a learned scale
    in either."""
    if dense:
        scale = Rows((vector("ffn.scale", "ffn", 1),))
        return {"n_experts": 0, "d_ff": width, "blocks": (scale,)}
    d, shared = c.hidden_size, c.size("n_shared_experts")
    network = FeedForward("ffn.shared.experts.*", d, expert, True, False, shared, shared)
    rows = (
        matrix("ffn.router.shared", "router", shared, d),
        vector("ffn.router.scale", "router", 1),
        *network.rows(),
    )
    return {
        "n_experts": c.size("n_routed_experts"),
        "top_k": c.size("num_experts_per_tok"),
        "d_expert": expert,
        "router_correction": "buffer",
        "blocks": (Rows(rows),),
    }
