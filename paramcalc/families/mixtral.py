"""Mixtures of experts on Llama's layers, experts in every one: Mixtral (arXiv:2401.04088), OLMoE
(arXiv:2409.02060), FlexOlmo, Phi 3.5 MoE, Granite MoE, Hunyuan, Aria, MiniMax M2."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE, Names
from paramcalc.families.stacks import stack

TYPES: dict[str, dict[str, Any]] = {
    "mixtral": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=None,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=None,
        num_experts_per_tok=2,
        num_local_experts=8,
    ),
    "olmoe": dict(
        vocab_size=50304,
        hidden_size=2048,
        intermediate_size=2048,
        num_hidden_layers=16,
        num_attention_heads=16,
        num_key_value_heads=None,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        clip_qkv=None,
        num_experts_per_tok=8,
        num_experts=64,
    ),
    "flex_olmo": dict(
        vocab_size=100352,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        num_experts_per_tok=5,
        num_experts=7,
    ),
    "phimoe": dict(
        vocab_size=32064,
        hidden_size=4096,
        intermediate_size=6400,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=None,
        num_experts_per_tok=2,
        attention_bias=False,
        lm_head_bias=False,
        num_local_experts=16,
    ),
    "granitemoe": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        num_experts_per_tok=2,
        num_local_experts=8,
    ),
    "granitemoe_swa": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        num_experts_per_tok=2,
        shared_intermediate_size=0,
        sliding_window=128,
        num_local_experts=8,
    ),
    "granitemoeshared": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        num_experts_per_tok=2,
        shared_intermediate_size=0,
        num_local_experts=8,
    ),
    "hunyuan_v1_moe": dict(
        vocab_size=290943,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        num_experts=1,
        head_dim=None,
        moe_topk=1,
    ),
    "aria_text": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=4096,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
        moe_num_shared_experts=2,
        moe_num_experts=8,
        moe_topk=2,
    ),
    "minimax_m2": dict(
        vocab_size=200064,
        hidden_size=3072,
        intermediate_size=1536,
        num_hidden_layers=62,
        num_attention_heads=48,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=196608,
        tie_word_embeddings=False,
        num_experts_per_tok=8,
        num_local_experts=256,
    ),
}

KEYS = {
    "num_experts": ("num_local_experts",),
    "num_local_experts": ("num_experts",),
    "moe_topk": ("num_experts_per_tok",),
}

_GRANITE = {
    "ffn.router": "block_sparse_moe.router",
    "ffn.experts.*.gate": "block_sparse_moe.experts.gate_up_proj !",
    "ffn.experts.*.up": "block_sparse_moe.experts.gate_up_proj !",
    "ffn.experts.*.down": "block_sparse_moe.experts.down_proj !",
    "ffn.shared.gate": "shared_mlp.input_linear",
    "ffn.shared.up": "shared_mlp.input_linear",
    "ffn.shared.down": "shared_mlp.output_linear",
}
_OWN: dict[str, dict[str, str]] = {
    "flex_olmo": {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"},
    "phimoe": {"ffn.router": "mlp.router"},
    "granitemoe": _GRANITE,
    "granitemoe_swa": _GRANITE,
    "granitemoeshared": _GRANITE,
    "hunyuan_v1_moe": {
        "attention.q_norm": "self_attn.query_layernorm",
        "attention.k_norm": "self_attn.key_layernorm",
        "ffn.router": "mlp.gate.wg",
        "ffn.shared.gate": "mlp.shared_mlp.gate_proj",
        "ffn.shared.up": "mlp.shared_mlp.up_proj",
        "ffn.shared.down": "mlp.shared_mlp.down_proj",
    },
    "aria_text": {
        "ffn.router": "mlp.router",
        "ffn.experts.*.gate": "mlp.experts.gate_up_proj !T",
        "ffn.experts.*.up": "mlp.experts.gate_up_proj !T",
        "ffn.experts.*.down": "mlp.experts.down_proj !T",
    },
}


def NAMES(c: Config) -> Names:
    """Experts stacked, gate and up in one; each type's own words for the rest."""
    return LLAMA | MOE | _OWN.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """What each type adds to Mixtral."""
    kind = c.model_type
    layers = c.size("num_hidden_layers") if kind == "hunyuan_v1_moe" else 1
    width, count, top = (_same(c, names, layers) for names in SIZES)
    fields: dict[str, Any] = {"attention_bias": bool(c.own("attention_bias", default=False))}
    if kind in ("mixtral", "phimoe"):
        fields["window"] = c.get("sliding_window", 0) or None
    if kind in ("olmoe", "flex_olmo", "minimax_m2"):
        fields["qk_norm"] = "full"
    if kind == "olmoe":
        even = c.share("hidden_size", "num_attention_heads")
        if c.get("head_dim", even) != even:  # its norms on Q and K take no other
            c.fail("head_dim", c.head_dim, f"must be hidden_size / num_attention_heads = {even}")
    if kind == "minimax_m2":
        fields["router_correction"] = "buffer"
    if kind == "phimoe":
        top = 2  # SparseMixer, its router, picks two whatever the file says
        fields |= {"norm": "layer", "head_bias": c.lm_head_bias}
    if kind.startswith("granitemoe") and kind != "granitemoe":
        fields["d_shared"] = c.shared_intermediate_size or None
    if kind == "granitemoe_swa":
        fields |= {"sinks": True, **stack(c.windows(lambda i: i % 4 != 0))}
    if kind == "hunyuan_v1_moe":
        fields |= {"qk_norm": "head", "d_shared": width}
    if kind == "aria_text":
        shared = c.moe_num_shared_experts
        fields |= {"n_shared_experts": shared, "ffn_bias": c.mlp_bias, "expert_bias": False}
    if kind == "minimax_m2":
        c.leave_out("use_mtp", "multi-token-prediction modules")
        c.ignore("num_mtp_modules", "mtp_transformer_layers", "use_routing_bias")
    c.ignore("clip_qkv", "use_qk_norm", "qk_norm_type", "shared_intermediate_size")
    c.ignore("moe_intermediate_size", "num_shared_expert")  # the class reads neither
    return c.card(gated_ffn=True, n_experts=count, top_k=top, d_expert=width, d_ff=width, **fields)


SIZES = (
    ("intermediate_size",),
    ("num_experts", "num_local_experts", "moe_num_experts"),
    ("num_experts_per_tok", "moe_topk"),
)


def _same(c: Config, names: tuple[str, ...], n: int) -> Any:
    """Hunyuan may state a list with one entry a layer; its class builds equal layers."""
    key = next(name for name in names if name in TYPES[c.model_type])
    values = c.per_layer(key, n)
    if c.model_type != "hunyuan_v1_moe":
        return getattr(c, key)
    if any(value != values[0] for value in values):
        c.fail(key, values, "layers of different sizes are not read")
    if type(values[0]) is not int:
        c.fail(key, values[0], "must be a whole number")
    return values[0]
