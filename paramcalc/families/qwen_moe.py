"""Qwen's mixtures of experts: Qwen 1.5 and 2 MoE (arXiv:2407.10671) with a gated shared network,
Qwen 3 MoE (arXiv:2505.09388) without."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import Layers, both, stack

NAMES = (
    LLAMA
    | MOE
    | {
        "ffn.shared.gate": "mlp.shared_expert.gate_proj",
        "ffn.shared.up": "mlp.shared_expert.up_proj",
        "ffn.shared.down": "mlp.shared_expert.down_proj",
    }
)

TYPES: dict[str, dict[str, Any]] = {
    "qwen2_moe": dict(
        vocab_size=151936,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=16,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        use_sliding_window=False,
        sliding_window=4096,
        max_window_layers=28,
        decoder_sparse_step=1,
        moe_intermediate_size=1408,
        shared_expert_intermediate_size=5632,
        num_experts_per_tok=4,
        num_experts=60,
        mlp_only_layers=None,
        qkv_bias=True,
        layer_types=None,
    ),
    "qwen3_moe": dict(
        vocab_size=151936,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        attention_bias=False,
        use_sliding_window=False,
        sliding_window=4096,
        decoder_sparse_step=1,
        moe_intermediate_size=768,
        num_experts_per_tok=8,
        num_experts=128,
        mlp_only_layers=None,
    ),
}

KEYS = {"num_experts": ("num_local_experts",)}


def dense_layers(c: Config) -> Layers:
    """Layers listed in ``mlp_only_layers``, or off the step, have one network."""
    only, step = c.get("mlp_only_layers", []), c.get("decoder_sparse_step", 1)
    if not isinstance(only, list | tuple):
        c.fail("mlp_only_layers", only, "must be a list")
    if not c.num_experts:
        return [{"n_experts": 0}] * c.size("num_hidden_layers")
    return c.dense(lambda i: i in only or step < 1 or (i + 1) % step != 0)


def experts(c: Config) -> dict[str, Any]:
    """The experts' fields, a shared network's too where the type has one."""
    shared = c.get("shared_expert_intermediate_size", 0)
    fields = {"d_shared": shared, "shared_gate": True} if shared else {}
    return {
        "n_experts": c.num_experts,
        "top_k": c.num_experts_per_tok,
        "d_expert": c.moe_intermediate_size,
        **fields,
    }


def read(c: Config) -> dict[str, Any]:
    """Windows only in Qwen 2, in every second layer where they are switched on."""
    fields: dict[str, Any] = {}
    windows: Layers = [{} for _ in range(c.size("num_hidden_layers"))]
    if c.model_type == "qwen2_moe":
        fields["attention_bias"] = "qkv" if c.qkv_bias else ""
        if c.get("use_sliding_window", False):
            windows = c.windows(lambda i: (i + 1) % 2 == 1 and i < c.get("max_window_layers", 28))
    else:
        fields |= {"attention_bias": c.attention_bias, "qk_norm": "head"}
        if c.get("use_sliding_window", False):
            windows = c.windows(lambda i: True)
    c.ignore("sliding_window", "layer_types")
    fields |= experts(c) | stack(both(windows, dense_layers(c)))
    return c.card(gated_ffn=True, **fields)
