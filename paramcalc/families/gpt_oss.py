"""gpt-oss (arXiv:2508.10925): biases on attention, router and experts, one sink a head, windows in
every second layer; experts stored as (E, in, out)."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import stack

_EXPERTS = "mlp.experts.gate_up_proj"

NAMES = LLAMA | {
    "ffn.router": "mlp.router",
    "ffn.experts.*.gate": f"{_EXPERTS} !T",
    "ffn.experts.*.up": f"{_EXPERTS} !T",
    "ffn.experts.*.gate.bias": f"{_EXPERTS}_bias !",
    "ffn.experts.*.up.bias": f"{_EXPERTS}_bias !",
    "ffn.experts.*.down": "mlp.experts.down_proj !T",
    "ffn.experts.*.down.bias": "mlp.experts.down_proj_bias !",
}

TYPES: dict[str, dict[str, Any]] = {
    "gpt_oss": dict(
        num_hidden_layers=36,
        vocab_size=201088,
        hidden_size=2880,
        intermediate_size=2880,
        head_dim=64,
        num_attention_heads=64,
        num_key_value_heads=8,
        tie_word_embeddings=False,
        max_position_embeddings=131072,
        num_experts_per_tok=4,
        sliding_window=128,
        attention_bias=True,
        num_experts=128,
    ),
}

KEYS = {"num_experts": ("num_local_experts",), "num_experts_per_tok": ("experts_per_token",)}


def read(c: Config) -> dict[str, Any]:
    """Every layer has experts of ``intermediate_size``."""
    return c.card(
        gated_ffn=True,
        attention_bias=c.attention_bias,
        sinks=True,
        n_experts=c.num_experts,
        top_k=c.num_experts_per_tok,
        router_bias=True,
        expert_bias=True,
        **stack(c.windows(lambda i: (i + 1) % 2 == 1)),
    )
