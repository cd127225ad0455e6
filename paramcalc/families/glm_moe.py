"""Mixtures with dense layers first, a balancing value an expert and a shared network: GLM-4.5
(arXiv:2508.06471), dots.llm1 (arXiv:2506.05767), EXAONE MoE, Hunyuan 3, Sarvam, Solar Open, and
Mellum 2 and ERNIE 4.5, which differ in some of these. ``window_moe`` has those whose attention is
not Llama's."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.deepseek import prediction
from paramcalc.families.names import LLAMA, MOE, Names
from paramcalc.families.stacks import Layers, both, stack

TYPES: dict[str, dict[str, Any]] = {
    "glm4_moe": dict(
        vocab_size=151552,
        hidden_size=4096,
        intermediate_size=10944,
        num_hidden_layers=46,
        num_attention_heads=96,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        moe_intermediate_size=1408,
        num_experts_per_tok=8,
        n_shared_experts=1,
        first_k_dense_replace=1,
        use_qk_norm=False,
        n_routed_experts=128,
        num_nextn_predict_layers=1,
    ),
    "dots1": dict(
        vocab_size=152064,
        hidden_size=4608,
        intermediate_size=10944,
        moe_intermediate_size=1408,
        num_hidden_layers=62,
        num_attention_heads=32,
        num_key_value_heads=32,
        n_shared_experts=None,
        num_experts_per_tok=None,
        first_k_dense_replace=0,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        sliding_window=4096,
        max_window_layers=62,
        n_routed_experts=None,
    ),
    "exaone_moe": dict(
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        sliding_window=4096,
        sliding_window_pattern=4,
        first_k_dense_replace=1,
        moe_intermediate_size=1024,
        num_experts=64,
        num_experts_per_tok=8,
        num_shared_experts=1,
    ),
    "hy_v3": dict(
        vocab_size=120832,
        hidden_size=4096,
        intermediate_size=13312,
        num_hidden_layers=80,
        num_attention_heads=64,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        num_experts=192,
        num_experts_per_tok=8,
        moe_intermediate_size=1536,
        num_shared_experts=1,
    ),
    "sarvam_moe": dict(
        vocab_size=262144,
        hidden_size=4096,
        intermediate_size=8192,
        num_hidden_layers=19,
        num_attention_heads=64,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        moe_intermediate_size=1024,
        num_experts_per_tok=6,
        n_shared_experts=1,
        first_k_dense_replace=1,
        use_qk_norm=True,
        head_dim=64,
        n_routed_experts=128,
        num_nextn_predict_layers=0,
    ),
    "solar_open": dict(
        vocab_size=196608,
        hidden_size=4096,
        num_hidden_layers=48,
        num_attention_heads=64,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        moe_intermediate_size=1280,
        num_experts_per_tok=8,
        n_shared_experts=1,
        head_dim=128,
        n_routed_experts=128,
    ),
    "mellum": dict(
        vocab_size=98304,
        hidden_size=2304,
        intermediate_size=7168,
        num_hidden_layers=28,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        sliding_window=1024,
        moe_intermediate_size=896,
        num_experts_per_tok=8,
        num_experts=64,
        head_dim=128,
        num_nextn_predict_layers=None,
    ),
    "ernie4_5_moe": dict(
        vocab_size=103424,
        hidden_size=2560,
        intermediate_size=12288,
        num_hidden_layers=28,
        num_attention_heads=20,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        moe_intermediate_size=1536,
        moe_layer_start_index=1,
        moe_layer_end_index=-1,
        moe_layer_interval=1,
        moe_num_experts=64,
        moe_k=6,
        moe_num_shared_experts=2,
        use_bias=False,
    ),
}

KEYS = {
    "num_experts": ("num_local_experts",),
    "n_routed_experts": ("num_local_experts", "num_experts"),
    "moe_num_experts": ("num_experts",),
    "moe_k": ("num_experts_per_tok",),
    "n_shared_experts": ("num_shared_experts",),
    "attention_bias": ("use_qkv_bias",),
    "num_nextn_predict_layers": ("num_mtp_layers",),
}

OWN_NAMES: dict[str, dict[str, str]] = {
    "ernie4_5_moe": {
        "ffn.router.correction": "mlp.gate.moe_statics.e_score_correction_bias !R",
    },
    "hy_v3": {"ffn.router.correction": "mlp.e_score_correction_bias !"},
}


def NAMES(c: Config) -> Names:
    """Experts stacked, gate and up in one; each type's own words for the rest."""
    return LLAMA | MOE | OWN_NAMES.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """The shared part; what a type adds comes from its own function."""
    own, layers = OWN[c.model_type](c)
    return mixture(c, own, layers)


def mixture(c: Config, own: dict[str, Any], layers: Layers) -> dict[str, Any]:
    """Routed and shared experts, a balancing value in the router; ``own`` fields go before."""
    count = ("num_experts", "n_routed_experts", "moe_num_experts")
    shared = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
    fields: dict[str, Any] = {
        "gated_ffn": True,
        "attention_bias": bool(c.own("attention_bias", "use_bias", default=False)),
        "n_experts": own.get("n_experts") or c.own(*count),
        "top_k": own.get("top_k") or c.own("num_experts_per_tok", "moe_k"),
        "d_expert": c.get("moe_intermediate_size") or c.intermediate_size,
        "n_shared_experts": c.own(*shared, default=0) or None,
        "router_correction": "buffer",
    }
    if "mtp" not in own:
        for key in KEYS["num_nextn_predict_layers"] + ("num_nextn_predict_layers",):
            c.leave_out(key, "multi-token-prediction layers")
    return c.card(**(fields | own | stack(layers)))


def glm(c: Config) -> tuple[dict[str, Any], Layers]:
    """GLM-4.5 and Sarvam: no bias on the output matrix; norms on Q and K are a switch. Their
    prediction layers are counted beside the model only where the file itself states them."""
    fields = {
        "attention_bias": "qkv" if c.attention_bias else "",
        "qk_norm": "head" if c.use_qk_norm else "none",
        "head_dim": c.get("head_dim") or c.size("hidden_size") // c.size("num_attention_heads"),
        "mtp": prediction(c) if c.has("num_nextn_predict_layers") else None,
    }
    return fields, c.dense(c.first_k_dense_replace)


def hunyuan(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K; biases on every network but the routed experts. A shared network of no
    experts is as wide as a dense layer's."""
    fields = {"qk_norm": "head", "ffn_bias": c.mlp_bias, "expert_bias": False}
    if not c.get("num_shared_experts", 0):
        fields["d_shared"] = c.intermediate_size
    return fields, c.dense(1)


def solar(c: Config) -> tuple[dict[str, Any], Layers]:
    """Experts in every layer, no bias on the output matrix."""
    c.ignore("intermediate_size")
    bias = "qkv" if c.attention_bias else ""
    return {"attention_bias": bias, "d_ff": c.moe_intermediate_size}, c.dense(0)


def dots(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K; windows past ``max_window_layers``. The type itself has no experts to
    start from: where the file states none, those of dots.llm1 are taken."""
    fields: dict[str, Any] = {"qk_norm": "head"}
    first = c.first_k_dense_replace
    if c.get("n_routed_experts") is None:
        c.assumed.append(
            "n_routed_experts is not stated: 128 of which 6 work on a token, 2 shared, after one"
            " dense layer, as in dots.llm1"
        )
        fields |= {"n_experts": 128, "top_k": c.get("num_experts_per_tok", 6)}
        fields["n_shared_experts"] = c.get("n_shared_experts", 2)
        first = first if c.has("first_k_dense_replace") else 1
    last = c.get("max_window_layers", 62)
    windows = c.windows(lambda i: bool(c.get("sliding_window", 0)) and i >= last)
    return fields, both(windows, c.dense(first))


def exaone(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K, windows in three layers of four."""
    period = c.sliding_window_pattern if c.get("sliding_window", 0) else 0
    windows = c.windows(lambda i: bool(period) and (i + 1) % period != 0)
    return {"qk_norm": "head"}, both(windows, c.dense(c.first_k_dense_replace))


def mellum(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K, no shared network, no balancing value."""
    fields = {"qk_norm": "head", "router_correction": "none"}
    c.ignore("mtp_layer_types", "mtp_mlp_layer_types")
    return fields, both(c.windows(lambda i: False), c.dense(0))


def ernie(c: Config) -> tuple[dict[str, Any], Layers]:
    """Experts between two layers at an interval; a stored balancing value."""
    start, end = c.need("moe_layer_start_index"), c.need("moe_layer_end_index")
    step = c.size("moe_layer_interval")
    last = c.size("num_hidden_layers") - 1 if end == -1 else end
    fields = {
        "ffn_bias": c.use_bias,
        "head_bias": c.use_bias,
        "expert_bias": False,
        "router_correction": "parameter",
    }
    return fields, c.dense(lambda i: (i + 1) % step != 0 or not start <= i <= last)


OWN = {
    "glm4_moe": glm,
    "sarvam_moe": glm,
    "hy_v3": hunyuan,
    "solar_open": solar,
    "dots1": dots,
    "exaone_moe": exaone,
    "mellum": mellum,
    "ernie4_5_moe": ernie,
}
