"""ZAYA1 (arXiv:2511.17127): attention inside a compressed space, where convolutions mix queries and
keys along the sequence and half of each value is the token before's (CCA, arXiv:2510.04476), and
experts behind a router that is a network itself and remembers the layer before. One choice of the
router is to skip."""

from __future__ import annotations

from typing import Any, Literal

from paramcalc.blocks import FeedForward, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import scale, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import layers
from paramcalc.ledger import Cache, Operation, Tensor
from paramcalc.sight import Causal, Sight, State, Window

_SELF = "self_attn.qkv_proj"
NAMES = LLAMA | {
    "attention.q": f"{_SELF}.q_proj",
    "attention.k": f"{_SELF}.k_proj",
    "attention.v": f"{_SELF}.v_proj_current",
    "attention.v_before": f"{_SELF}.v_proj_delayed",
    "attention.conv": f"{_SELF}.conv_qk_depthwise",
    "attention.conv_heads": f"{_SELF}.conv_qk_grouped",
    "attention.temperature": "self_attn.qk_norm.temp !",
    "ffn.router.down": "mlp.gate.down_proj",
    "ffn.router.norm": "mlp.gate.router_mlp.norm",
    "ffn.router.fc1": "mlp.gate.router_mlp.fc1",
    "ffn.router.fc2": "mlp.gate.router_mlp.fc2",
    "ffn.router": "mlp.gate.router_mlp.out_proj",
    "ffn.router.before": "mlp.gate.router_states_scale !",
    "ffn.router.correction": "mlp.gate.balancing_biases !",
    "ffn.experts.*.gate": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.up": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.down": "mlp.experts.down_proj !",
}

TYPES: dict[str, dict[str, Any]] = {
    "zaya": dict(
        vocab_size=262272,
        hidden_size=2048,
        num_hidden_layers=40,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=128,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        sliding_window=None,
        moe_intermediate_size=2048,
        num_experts_per_tok=1,
        num_experts=16,
        layer_types=None,
        attention_bias=False,
        lm_head_bias=False,
        router_hidden_size=256,
        cca_time0=2,
        cca_time1=2,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Layers differ by their window alone, and the first by what its router lacks."""
    c.strict = True
    n, d = c.size("num_hidden_layers"), c.hidden_size
    among = {"hybrid": False, "hybrid_sliding": True}
    kinds = c.per_layer("layer_types", n, c.get("layer_types", "hybrid"))
    sights: list[Sight] = []
    for kind in kinds:
        sliding = c.choose("layer_types", kind, among)
        sights.append(Window(c.need("sliding_window")) if sliding else Causal())
    c.ignore("sliding_window")
    residuals = Rows(
        tuple(
            vector(f"post_{part}_residual_scale.{side}_{what}", "residual", d)
            for part in ("attention", "mlp")
            for side in ("hidden_states", "residual")
            for what in ("scale", "bias")
        )
    )
    heads = {sight: attention(c, sight) for sight in dict.fromkeys(sights)}
    networks = [experts(c, False), *([experts(c, True)] * (n - 1))]
    every = [
        dict(blocks=(heads[sight], network, residuals))
        for sight, network in zip(sights, networks, strict=True)
    ]
    first = (vector(f"model.input_hidden_states_{x}", "residual", d) for x in ("scale", "bias"))
    return c.card(
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        attention=False,
        ffn=False,
        norms_per_layer=2,
        head_bias=c.lm_head_bias,
        outer=(Rows(tuple(first)),),
        layers=layers(every),
    )


def attention(c: Config, sight: Sight) -> Rows:
    """Return the attention. Beside keys and values the cache holds what the convolutions and the
    next token's value look back on."""
    d, heads, kv, width = c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim
    if kv < 1 or heads % kv:
        c.fail("num_key_value_heads", kv, f"must divide num_attention_heads = {heads}")
    bias, half = c.attention_bias, kv * width // 2
    channels = (heads + kv) * width
    own: Literal["attention"] = "attention"
    parts = (("q", heads * width), ("k", kv * width), ("v", half), ("v_before", half))
    convolutions = (
        ("conv", (channels, 1, c.cca_time0)),
        ("conv_heads", (channels, width, c.cca_time1)),
    )
    back = c.cca_time0 + c.cca_time1 - 2
    return Rows(
        (
            *(
                row
                for part, wide in parts
                for row in linear(f"{own}.{part}", own, wide, d, bias=bias, shard="column")
            ),
            *(Tensor(f"{own}.{x}", own, shape, "conv", "column") for x, shape in convolutions),
            *(Tensor(f"{own}.{x}.bias", own, (channels,), "bias") for x, _ in convolutions),
            scale(f"{own}.temperature", kv),
            *linear(f"{own}.o", own, d, heads * width, bias=bias, shard="row"),
            Operation(f"{own}.scores", own, 2 * heads * width, sight),
            Operation(f"{own}.values", own, 2 * heads * width, sight),
            Cache(f"{own}.kv", 2 * kv * width, sight),
            Cache(f"{own}.conv_state", channels * back, State(), of="state"),
            Cache(f"{own}.before", half, State(), of="state"),
        )
    )


def experts(c: Config, remembers: bool) -> Rows:
    """Return router and experts; the router has one choice more than there are experts."""
    d, wide, count, top = c.hidden_size, c.router_hidden_size, c.num_experts, c.num_experts_per_tok
    own = "ffn.router"
    inner = FeedForward(
        "ffn.experts.*", d, c.moe_intermediate_size, True, False, count, top, expert=True
    )
    return Rows(
        (
            *linear(f"{own}.down", "router", wide, d, bias=True),
            *Norm(f"{own}.norm", (wide,), False).rows(),
            *linear(f"{own}.fc1", "router", wide, wide, bias=True),
            *linear(f"{own}.fc2", "router", wide, wide, bias=True),
            *linear(own, "router", count + 1, wide),
            *([Tensor(f"{own}.before", "router", (wide,), "scale")] if remembers else []),
            Tensor(f"{own}.correction", "router", (count + 1,), "buffer"),
            *inner.rows(),
        )
    )
