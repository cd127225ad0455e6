"""Mixtures of experts like ``glm_moe``'s whose attention is not Llama's, most of it in windows:
Trinity (``afmoe``), Laguna, MiMo V2 Flash (arXiv:2601.02780), Command A MoE."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.glm_moe import KEYS as KEYS
from paramcalc.families.glm_moe import mixture
from paramcalc.families.names import LLAMA, MOE, Names
from paramcalc.families.stacks import Layers, both

TYPES: dict[str, dict[str, Any]] = {
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
        num_shared_experts=2,
        num_dense_layers=1,
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
        num_attention_heads_per_layer=None,
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
        n_routed_experts=256,
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
        num_shared_experts=0,
    ),
}

OWN_NAMES: dict[str, dict[str, str]] = {
    "afmoe": {
        "attention.gate": "self_attn.gate_proj",
        "norm3": "pre_mlp_layernorm",
        "norm4": "post_mlp_layernorm",
        "ffn.router": "mlp.router.gate",
        "ffn.router.correction": "mlp.expert_bias !",
    },
    "laguna": {"attention.gate": "self_attn.g_proj"},
}


def NAMES(c: Config) -> Names:
    """Experts stacked, gate and up in one; each type's own words for the rest."""
    return LLAMA | MOE | OWN_NAMES.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """The shared part; what a type adds comes from its own function."""
    own, layers = OWN[c.model_type](c)
    return mixture(c, own, layers)


def trinity(c: Config) -> tuple[dict[str, Any], Layers]:
    """A gate as large as Q on attention's output, four norms, a stored balancing value."""
    c.ignore("global_attn_every_n_layers")
    fields = {
        "qk_norm": "head",
        "attention_gate": "element",
        "norms_per_layer": 4,
        "router_correction": "parameter",
    }
    windows = c.windows(lambda i: (i + 1) % c.size("global_attn_every_n_layers") != 0)
    return fields, both(windows, c.dense(c.num_dense_layers))


def laguna(c: Config) -> tuple[dict[str, Any], Layers]:
    """One gate a head, and layers may have numbers of heads of their own."""
    key = "num_attention_heads_per_layer"
    heads = c.per_layer(key, c.size("num_hidden_layers"), c.get(key))
    c.ignore("num_attention_heads")  # where the list states all of them
    own: Layers = [{} if h is None else {"n_heads": h} for h in heads]
    gate = c.get("gating", True)
    if not isinstance(gate, bool | str):
        c.fail("gating", gate, "must be true, false or text")
    per_head = gate is True or gate == "per-head"
    fields = {
        "qk_norm": "head",
        "attention_gate": "head" if per_head else "element",
        "d_shared": c.shared_expert_intermediate_size,
        "router_correction": "parameter",
    }
    return fields, both(c.windows(lambda i: False), c.dense(1), own)


def mimo(c: Config) -> tuple[dict[str, Any], Layers]:
    """Five of six layers see a window and have twice the KV heads, and a sink a head; values are
    narrower than keys, and the output matrix never has a bias."""
    if c.has("sliding_window_size"):
        window = c.size("sliding_window_size") + 1
    else:
        window = c.size("sliding_window")
    flags = c.windows(lambda i: not (i == 0 or (i + 1) % 6 == 0))
    kv = 2 * c.size("num_key_value_heads")
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


def command(c: Config) -> tuple[dict[str, Any], Layers]:
    """Command A's layers (``cohere2``) with experts; the first layers may be dense and wider."""
    first = c.get("first_k_dense_replace", 0)
    if type(first) is not int:
        c.fail("first_k_dense_replace", first, "must be a whole number")
    wide = c.get("prefix_dense_intermediate_size") or c.intermediate_size

    def slides(i: int) -> bool:
        if i < first:
            return (i + 1) % c.size("prefix_dense_sliding_window_pattern") != 0
        return (i - int(first) + 1) % c.size("sliding_window_pattern") != 0

    c.ignore("prefix_dense_sliding_window_pattern", "sliding_window_pattern")
    layers = both(c.windows(slides), [{**d, "d_ff": wide} if d else {} for d in c.dense(first)])
    fields = {
        "norm": "layer",
        "norm_bias": False,
        "norms_per_layer": 1,
        "d_expert": c.intermediate_size,
        "router_correction": "none",
    }
    return fields, layers


OWN = {
    "afmoe": trinity,
    "laguna": laguna,
    "mimo_v2_flash": mimo,
    "cohere2_moe": command,
}
