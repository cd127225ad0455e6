"""Llama 4: attention in chunks in three layers of four, experts in every layer or every second,
each beside a shared network; experts stored as (E, in, out)."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, both, stack

_EXPERTS = "feed_forward.experts.gate_up_proj"

NAMES = LLAMA | {
    "ffn.gate": "feed_forward.gate_proj",
    "ffn.up": "feed_forward.up_proj",
    "ffn.down": "feed_forward.down_proj",
    "ffn.router": "feed_forward.router",
    "ffn.experts.*.gate": f"{_EXPERTS} !T",
    "ffn.experts.*.up": f"{_EXPERTS} !T",
    "ffn.experts.*.down": "feed_forward.experts.down_proj !T",
    "ffn.shared.gate": "feed_forward.shared_expert.gate_proj",
    "ffn.shared.up": "feed_forward.shared_expert.up_proj",
    "ffn.shared.down": "feed_forward.shared_expert.down_proj",
}

WRAPS = {
    "llama4": {"as": "llama4_text"},
}

TYPES: dict[str, dict[str, Any]] = {
    "llama4_text": dict(
        vocab_size=202048,
        hidden_size=5120,
        intermediate_size=8192,
        intermediate_size_mlp=16384,
        num_hidden_layers=48,
        num_attention_heads=40,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        num_experts_per_tok=1,
        num_local_experts=16,
        moe_layers=None,
        interleave_moe_layer_step=1,
        use_qk_norm=True,
        no_rope_layers=None,
        no_rope_layer_interval=4,
        attention_chunk_size=8192,
        layer_types=None,
        attention_bias=False,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Layers with experts are listed, or every ``interleave_moe_layer_step``-th is one."""
    c.ignore("use_qk_norm")  # a norm without weights
    n, moe = c.size("num_hidden_layers"), c.get("moe_layers")
    c.ignore("interleave_moe_layer_step")  # stands behind a list
    if moe is None:
        step = c.size("interleave_moe_layer_step")
        moe = range(step - 1, n, step)
    elif not isinstance(moe, list | tuple):
        c.fail("moe_layers", moe, "must be a list")
    wide = c.intermediate_size_mlp
    network: Layers = [{} if i in moe else {"n_experts": 0, "d_ff": wide} for i in range(n)]
    fields = {
        "gated_ffn": True,
        "attention_bias": c.attention_bias,
        "n_experts": c.num_local_experts,
        "top_k": c.num_experts_per_tok,
        "d_expert": c.intermediate_size,
        "n_shared_experts": 1,
    }
    return c.card(**(fields | stack(both(chunks(c), network))))


def chunks(c: Config) -> Layers:
    """A chunk for the layers with rotary positions; the others see everything."""
    n, size = c.size("num_hidden_layers"), c.get("attention_chunk_size", 0)
    c.ignore("no_rope_layers", "no_rope_layer_interval")
    kinds, rotary = c.get("layer_types"), c.get("no_rope_layers")
    if kinds is not None:
        words = {"full_attention": 0, "chunked_attention": 1}
        rotary = [c.choose("layer_types", k, words) for k in c.per_layer("layer_types", n, kinds)]
    elif not rotary:
        every = c.size("no_rope_layer_interval")
        rotary = [(i + 1) % every for i in range(n)]
    flags = c.per_layer("no_rope_layers", n, rotary)
    return [{"chunk": size} if flag and size else {} for flag in flags]
