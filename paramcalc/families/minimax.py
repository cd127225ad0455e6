"""MiniMax-Text-01 and M1 (arXiv:2501.08313): lightning attention in most layers, softmax attention
in the others, experts in all."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.linear_attention import LightningAttention
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import Layers, stack

_QKV = dict.fromkeys(("mixer.q", "mixer.k", "mixer.v"), "self_attn.qkv_proj")
NAMES = (
    LLAMA
    | MOE
    | _QKV
    | {
        "mixer.gate": "self_attn.output_gate",
        "mixer.norm": "self_attn.norm",
        "mixer.o": "self_attn.out_proj",
    }
)

TYPES: dict[str, dict[str, Any]] = {
    "minimax": dict(
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
        layer_types=None,
        attn_type_list=None,
    ),
}

KEYS = {"num_local_experts": ("num_experts",)}


def read(c: Config) -> dict[str, Any]:
    """Every second layer is linear unless the file lists the layers' kinds."""
    c.strict = True
    parts = ("full_attn", "linear_attn", "mlp", "layernorm_full_attention")
    c.ignore("block_size", *(f"{part}_{x}_factor" for part in parts for x in ("alpha", "beta")))
    width = c.head_dim or c.share("hidden_size", "num_attention_heads")
    lightning = LightningAttention("mixer", c.hidden_size, c.num_attention_heads, width)
    scanning = dict(label="lightning", attention=False, norms_per_layer=2, blocks=(lightning,))
    seeing = dict(label="attention", window=c.get("sliding_window", 0))
    kinds: Layers = [seeing if yes else scanning for yes in softmax(c)]
    return c.card(
        head_dim=width,
        gated_ffn=True,
        n_experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
        **stack(kinds),
    )


def softmax(c: Config) -> list[bool]:
    """Which layers have softmax attention."""
    n = c.num_hidden_layers
    if c.layer_types is not None:
        among = {"linear_attention": False, "full_attention": True}
        kinds = c.per_layer("layer_types", n)
        return [bool(c.choose("layer_types", kind, among)) for kind in kinds]
    if c.attn_type_list is not None:  # as MiniMax itself wrote them
        return [bool(kind) for kind in c.per_layer("attn_type_list", n)]
    return [(i + 1) % 2 != 0 for i in range(n)]
