"""Mixtures with dense layers first, a balancing value an expert and a shared network: GLM-4.5
(arXiv:2508.06471), dots.llm1 (arXiv:2506.05767), EXAONE MoE, Hunyuan 3, Sarvam, Solar Open, Trinity
(``afmoe``), Laguna, Mellum, MiMo V2 Flash (arXiv:2601.02780), ERNIE 4.5, Command A MoE."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config, Layers, both, stack
from paramcalc.families.deepseek import prediction
from paramcalc.families.names import LLAMA, MOE, Names

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
        num_experts=128,
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
        num_experts=None,
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
        n_shared_experts=1,
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
        n_shared_experts=1,
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
        num_experts=128,
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
        num_experts=128,
    ),
    "afmoe": dict(
        vocab_size=200192,
        hidden_size=2048,
        intermediate_size=6144,
        moe_intermediate_size=1408,
        num_hidden_layers=32,
        num_attention_heads=16,
        num_key_value_heads=None,
        head_dim=128,
        max_position_embeddings=16384,
        tie_word_embeddings=False,
        num_experts=64,
        num_experts_per_tok=6,
        global_attn_every_n_layers=4,
        sliding_window=1024,
        attention_bias=False,
        n_shared_experts=2,
        first_k_dense_replace=1,
    ),
    "laguna": dict(
        vocab_size=100352,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=40,
        num_attention_heads=48,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=512,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        num_experts_per_tok=8,
        num_experts=256,
        head_dim=128,
        attention_bias=False,
        gating=True,
        num_attention_heads_per_layer=None,
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
    "mimo_v2_flash": dict(
        vocab_size=152576,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=48,
        num_attention_heads=64,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        moe_intermediate_size=2048,
        num_experts_per_tok=8,
        head_dim=192,
        v_head_dim=128,
        sliding_window=129,
        num_experts=256,
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
        num_experts=64,
        num_experts_per_tok=6,
        n_shared_experts=2,
        attention_bias=False,
    ),
    "cohere2_moe": dict(
        vocab_size=256000,
        hidden_size=8192,
        intermediate_size=22528,
        num_hidden_layers=40,
        num_attention_heads=64,
        num_key_value_heads=None,
        head_dim=128,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=4096,
        num_experts_per_tok=2,
        num_experts=8,
        prefix_dense_sliding_window_pattern=1,
        prefix_dense_intermediate_size=None,
        sliding_window_pattern=4,
        n_shared_experts=0,
    ),
}

KEYS = {
    "num_experts": ("num_local_experts", "n_routed_experts", "moe_num_experts"),
    "num_experts_per_tok": ("moe_k",),
    "n_shared_experts": ("num_shared_experts", "moe_num_shared_experts"),
    "attention_bias": ("use_qkv_bias", "use_bias"),
    "first_k_dense_replace": ("num_dense_layers",),
    "num_nextn_predict_layers": ("num_mtp_layers",),
}

_OWN: dict[str, dict[str, str]] = {
    "afmoe": {
        "attention.gate": "self_attn.gate_proj",
        "norm3": "pre_mlp_layernorm",
        "norm4": "post_mlp_layernorm",
        "ffn.router": "mlp.router.gate",
        "ffn.router.correction": "mlp.expert_bias !",
    },
    "laguna": {"attention.gate": "self_attn.g_proj"},
    "ernie4_5_moe": {
        "ffn.router.correction": "mlp.gate.moe_statics.e_score_correction_bias !R",
    },
    "hy_v3": {"ffn.router.correction": "mlp.e_score_correction_bias !"},
}


def NAMES(c: Config) -> Names:
    """Experts stacked, gate and up in one; each type's own words for the rest."""
    return LLAMA | MOE | _OWN.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """The shared part; what a type adds comes from its own function."""
    own, layers = OWN[c.model_type](c) if c.model_type in OWN else plain(c)
    shared = c.get("n_shared_experts", 0)
    width = c.get("moe_intermediate_size") or c.intermediate_size
    fields: dict[str, Any] = {
        "gated_ffn": True,
        "attention_bias": bool(c.get("attention_bias", False)),
        "n_experts": c.need("num_experts"),
        "top_k": c.need("num_experts_per_tok"),
        "d_expert": width,
        "n_shared_experts": shared or None,
        "router_correction": "buffer",
    }
    return c.card(**(fields | own | stack(layers)))


def plain(c: Config) -> tuple[dict[str, Any], Layers]:
    """Full attention, the first layers dense: GLM-4.5, Sarvam, Hunyuan 3, Solar Open.

    GLM and Sarvam never have a bias on the output matrix; GLM may lack the norms on Q and K.
    """
    kind = c.model_type
    fields: dict[str, Any] = {}
    if kind in ("glm4_moe", "sarvam_moe"):
        fields["attention_bias"] = "qkv" if c.attention_bias else ""
        fields["qk_norm"] = "head" if c.use_qk_norm else "none"
        fields["head_dim"] = c.get("head_dim") or c.hidden_size // c.num_attention_heads
        if c.has("num_nextn_predict_layers"):
            fields["mtp"] = prediction(c)
    elif kind == "hy_v3":
        fields |= {"qk_norm": "head", "ffn_bias": c.mlp_bias, "expert_bias": False}
        return fields, c.dense(1)
    elif kind == "solar_open":
        fields["d_ff"] = c.moe_intermediate_size
        c.ignore("intermediate_size")
        return fields, c.dense(0)
    return fields, c.dense(c.first_k_dense_replace)


def dots(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K; windows past ``max_window_layers``."""
    windows = c.windows(
        lambda i: bool(c.get("sliding_window", 0)) and i >= c.get("max_window_layers", 62)
    )
    return {"qk_norm": "head"}, both(windows, c.dense(c.first_k_dense_replace))


def exaone(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K, windows in three layers of four."""
    period = c.sliding_window_pattern if c.get("sliding_window", 0) else 0
    if isinstance(period, str):
        sliding = [period[i % len(period)] == "L" for i in range(c.num_hidden_layers)]
    else:
        sliding = [bool(period) and (i + 1) % period != 0 for i in range(c.num_hidden_layers)]
    windows = c.windows(lambda i: sliding[i])
    return {"qk_norm": "head"}, both(windows, c.dense(c.first_k_dense_replace))


def trinity(c: Config) -> tuple[dict[str, Any], Layers]:
    """A gate as large as Q on attention's output, four norms, a stored balancing value."""
    period = c.global_attn_every_n_layers
    fields = {
        "qk_norm": "head",
        "attention_gate": "element",
        "norms_per_layer": 4,
        "router_correction": "parameter",
    }
    windows = c.windows(lambda i: (i + 1) % period != 0)
    return fields, both(windows, c.dense(c.first_k_dense_replace))


def laguna(c: Config) -> tuple[dict[str, Any], Layers]:
    """One gate a head, and layers may have numbers of heads of their own."""
    n = c.num_hidden_layers
    heads = c.per_layer("num_attention_heads_per_layer", n, c.get("num_attention_heads_per_layer"))
    own: Layers = [{} if h is None else {"n_heads": h} for h in heads]
    gate = c.gating
    per_head = gate is True or gate == "per-head"
    fields = {
        "qk_norm": "head",
        "attention_gate": "head" if per_head else "element",
        "d_shared": c.shared_expert_intermediate_size,
        "router_correction": "parameter",
    }
    return fields, both(c.windows(lambda i: False), c.dense(1), own)


def mellum(c: Config) -> tuple[dict[str, Any], Layers]:
    """Norms on Q and K, no shared network, no balancing value."""
    fields = {"qk_norm": "head", "router_correction": "none"}
    return fields, both(c.windows(lambda i: False), c.dense(0))


def mimo(c: Config) -> tuple[dict[str, Any], Layers]:
    """Five of six layers see a window and have twice the KV heads, and a sink a head; values are
    narrower than keys, and the output matrix never has a bias."""
    if c.has("sliding_window_size"):
        window = c.get("sliding_window_size") + 1
    else:
        window = c.sliding_window
    flags = c.windows(lambda i: not (i == 0 or (i + 1) % 6 == 0))
    kv = 2 * c.num_key_value_heads
    windows: Layers = [
        {"window": window, "n_kv_heads": kv, "sinks": True} if flag else {} for flag in flags
    ]
    c.ignore(
        "sliding_window_size",
        "attention_chunk_size",
        "swa_num_attention_heads",
        "swa_head_dim",
        "swa_num_key_value_heads",
        "swa_v_head_dim",
        "swa_rope_theta",
        "n_shared_experts",
        "add_swa_attention_sink_bias",
        "hybrid_layer_pattern",
        "moe_layer_freq",
        "hybrid_block_size",
    )
    fields = {
        "v_head_dim": c.v_head_dim,
        "attention_bias": "qkv" if c.attention_bias else "",
        "n_shared_experts": None,
    }
    return fields, both(windows, c.dense(1))


def ernie(c: Config) -> tuple[dict[str, Any], Layers]:
    """Experts between two layers at an interval; a stored balancing value."""
    start, end, step = c.moe_layer_start_index, c.moe_layer_end_index, c.moe_layer_interval
    last = c.num_hidden_layers - 1 if end == -1 else end
    if step < 1:
        c.fail("moe_layer_interval", step, "must be at least 1", "raise it")
    fields = {
        "ffn_bias": bool(c.attention_bias),
        "head_bias": bool(c.attention_bias),
        "expert_bias": False,
        "router_correction": "parameter",
    }
    return fields, c.dense(lambda i: (i + 1) % step != 0 or not start <= i <= last)


def command(c: Config) -> tuple[dict[str, Any], Layers]:
    """Command A's layers (``cohere2``) with experts; the first layers may be dense and wider."""
    first = c.get("first_k_dense_replace", 0)
    wide = c.get("prefix_dense_intermediate_size") or c.intermediate_size
    prefix, period = c.prefix_dense_sliding_window_pattern, c.sliding_window_pattern
    windows = c.windows(
        lambda i: (i + 1) % prefix != 0 if i < first else (i - first + 1) % period != 0
    )
    layers = both(windows, [{**d, "d_ff": wide} if d else {} for d in c.dense(first)])
    fields = {
        "norm": "layer",
        "norm_bias": False,
        "norms_per_layer": 1,
        "d_expert": c.intermediate_size,
        "router_correction": "none",
    }
    return fields, layers


OWN = {
    "dots1": dots,
    "exaone_moe": exaone,
    "afmoe": trinity,
    "laguna": laguna,
    "mellum": mellum,
    "mimo_v2_flash": mimo,
    "ernie4_5_moe": ernie,
    "cohere2_moe": command,
}
