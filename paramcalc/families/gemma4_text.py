"""Gemma 4's language models (ai.google.dev/gemma/docs/core): five of six layers see a window, the
full ones have wider heads and may take their keys as values; last layers may reuse the keys and
values of the last layer of their kind before them; small models have per-layer embeddings, and the
26B-A4B runs experts beside a dense network that every token passes."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, Block, Rows
from paramcalc.families.config import Config
from paramcalc.families.gemma3n import (
    PER_LAYER,
    owners,
    per_layer_outer,
    per_layer_rows,
    types_of,
)
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Cache, Tensor
from paramcalc.sight import Both, BothWindow, Causal, Sight, Window

NAMES = (
    LLAMA
    | PER_LAYER
    | {
        "norm3": "pre_feedforward_layernorm",
        "norm4": "post_feedforward_layernorm",
        "norm5": "post_feedforward_layernorm_1",
        "norm6": "post_feedforward_layernorm_2",
        "norm7": "pre_feedforward_layernorm_2",
        "ffn.shared.gate": "mlp.gate_proj",
        "ffn.shared.up": "mlp.up_proj",
        "ffn.shared.down": "mlp.down_proj",
        "ffn.router": "router.proj",
        "ffn.router.scale": "router.scale !",
        "ffn.router.expert_scale": "router.per_expert_scale !",
        "ffn.experts.*.gate": "experts.gate_up_proj !",
        "ffn.experts.*.up": "experts.gate_up_proj !",
        "ffn.experts.*.down": "experts.down_proj !",
    }
)

_TEXT: dict[str, Any] = dict(
    vocab_size=262144,
    hidden_size=2304,
    intermediate_size=9216,
    num_hidden_layers=30,
    num_attention_heads=8,
    num_key_value_heads=4,
    head_dim=256,
    max_position_embeddings=131072,
    tie_word_embeddings=True,
    attention_bias=False,
    sliding_window=512,
    layer_types=None,
    use_bidirectional_attention=None,
    attention_k_eq_v=False,
    num_kv_shared_layers=0,
    use_double_wide_mlp=False,
)

TYPES: dict[str, dict[str, Any]] = {
    "gemma4_text": _TEXT
    | dict(
        vocab_size_per_layer_input=262144,
        hidden_size_per_layer_input=256,
        enable_moe_block=False,
        num_experts=None,
        top_k_experts=None,
        moe_intermediate_size=None,
    ),
    "gemma4_unified_text": _TEXT | dict(max_position_embeddings=262144, sliding_window=1024),
}

ASSISTANTS = ("gemma4_assistant", "gemma4_unified_assistant")
"""Types whose layers all read the keys and values of another model."""


def read(c: Config) -> dict[str, Any]:
    """Each layer by its kind; the last one is always full."""
    c.strict = True
    c.ignore("use_double_wide_mlp", "vocab_size_per_layer_input")
    n, rich = c.num_hidden_layers, c.model_type == "gemma4_text"
    causal = c.get("use_bidirectional_attention") != "all"
    kinds = [*types_of(c, 6)[: n - 1], "full_attention"]
    first_reusing = _owners(c, kinds)
    own = _overrides(c, kinds)
    per_layer = rich and c.hidden_size_per_layer_input > 0
    experts = _experts(c) if rich else {}
    side: list[Block] = [Rows((Tensor("layer_scalar", "residual", (1,), "buffer"),))]
    if per_layer:
        side.append(per_layer_rows(c))
    if experts:
        side.append(_router_scales(c))
    rows: Layers = []
    for i, kind in enumerate(kinds):
        sliding = kind == "sliding_attention"
        layer: dict[str, Any] = {"window": c.sliding_window} if sliding else {}
        layer |= own.get(i, {})
        parts = "qkvo" if sliding or not c.attention_k_eq_v else "qko"
        if i >= first_reusing:
            parts = "qo"
            layer["label"] = f"{kind.removesuffix('_attention')}-reusing"
            layer["d_ff"] = c.intermediate_size * (2 if c.use_double_wide_mlp else 1)
        if parts == "qkvo":
            rows.append(layer | {"blocks": tuple(side)})
        else:
            blocks = (*_attention(c, layer, parts, causal), *side)
            rows.append(layer | {"attention": False, "blocks": blocks})
    return c.card(
        gated_ffn=True,
        attention_bias=c.attention_bias,
        qk_norm="head",
        causal=causal,
        outer=(per_layer_outer(c),) if per_layer else None,
        norms_per_layer=7 if experts else 4,
        **experts,
        **stack(rows),
    )


def _owners(c: Config, kinds: list[str]) -> int:
    """How many first layers have keys and values: all by default, none in an assistant."""
    n, shared = len(kinds), c.num_kv_shared_layers
    lender = c.outer.get("model_type") in ASSISTANTS and not shared
    return 0 if lender or shared == n else owners(c, kinds)


def _overrides(c: Config, kinds: list[str]) -> dict[int, dict[str, Any]]:
    """What single layers state: under ``per_layer_config``, else full layers' own heads."""
    c.ignore("global_head_dim", "num_global_key_value_heads")
    stated = c.get("per_layer_config")
    if stated is None:
        full = {"head_dim": c.get("global_head_dim", 512)}
        if c.attention_k_eq_v and c.get("num_global_key_value_heads"):
            full["n_kv_heads"] = c.num_global_key_value_heads
        return {i: full for i, kind in enumerate(kinds) if kind == "full_attention"}
    fields = {"head_dim": "head_dim", "num_key_value_heads": "n_kv_heads"}
    found: dict[int, dict[str, Any]] = {}
    if not isinstance(stated, dict):
        c.fail("per_layer_config", stated, "must be a section")
    for number, keys in stated.items():
        if not (str(number).isdecimal() and int(number) < len(kinds) and isinstance(keys, dict)):
            c.fail(f"per_layer_config.{number}", keys, f"needs a layer below {len(kinds)}")
        if not all(type(value) is int and value > 0 for value in keys.values()):
            c.fail(f"per_layer_config.{number}", keys, "must hold whole numbers of at least 1")
        found[int(number)] = {c.choose("per_layer_config", k, fields): v for k, v in keys.items()}
    return found


def _attention(c: Config, layer: dict[str, Any], parts: str, causal: bool) -> tuple[Block, ...]:
    """Attention without some of its matrices. Keys that serve as values are still kept twice: as
    keys they are scaled and rotated, as values they are not."""
    window = layer.get("window")
    sight: Sight = Causal() if causal else Both()
    if window:
        sight = Window(window) if causal else BothWindow(window)
    width, heads = layer.get("head_dim", c.head_dim), layer.get("n_kv_heads", c.num_key_value_heads)
    block = Attention(
        "attention",
        c.hidden_size,
        c.num_attention_heads,
        heads,
        width,
        width,
        sight,
        parts if c.attention_bias else "",
        "head",
        cached=False,
        parts=parts,
    )
    if "k" not in parts or not causal:
        return (block,)
    return block, Rows((Cache("attention.kv", 2 * heads * width, sight),))


def _experts(c: Config) -> dict[str, Any]:
    """The fields of the experts, and of the dense network beside them; none where it is alone."""
    if not c.enable_moe_block:
        c.ignore("num_experts", "top_k_experts", "moe_intermediate_size")
        return {}
    for key in ("num_experts", "top_k_experts", "moe_intermediate_size"):
        if type(getattr(c, key)) is not int or getattr(c, key) < 1:
            c.fail(key, getattr(c, key), "must be at least 1 with enable_moe_block")
    return dict(
        n_experts=c.num_experts,
        top_k=c.top_k_experts,
        d_expert=c.moe_intermediate_size,
        d_shared=c.intermediate_size,
    )


def _router_scales(c: Config) -> Rows:
    """One scale a channel before the router, one an expert after it."""
    return Rows(
        (
            Tensor("ffn.router.scale", "router", (c.hidden_size,), "scale"),
            Tensor("ffn.router.expert_scale", "router", (c.num_experts,), "scale"),
        )
    )
