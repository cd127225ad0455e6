"""JetMoE (arXiv:2404.07413): experts in attention too, which share keys and values: each has its
own Q and output matrix, and k of them work on a token."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.ledger import Cache, Operation, Shard, Tensor
from paramcalc.sight import Causal

_IN, _OUT = "mlp.input_linear", "mlp.output_linear"
_KV = "self_attention.kv_proj"

NAMES = LLAMA | {
    "attention.router": "self_attention.experts.router.layer",
    "attention.experts.*.q": "self_attention.experts.input_linear",
    "attention.experts.*.o": "self_attention.experts.output_linear",
    "attention.k": _KV,
    "attention.v": _KV,
    "ffn.router": "mlp.router.layer",
    "ffn.experts.*.gate": _IN,
    "ffn.experts.*.up": _IN,
    "ffn.experts.*.down": _OUT,
}

TYPES: dict[str, dict[str, Any]] = {
    "jetmoe": dict(
        vocab_size=32000,
        hidden_size=2048,
        num_hidden_layers=12,
        num_key_value_heads=16,
        intermediate_size=5632,
        max_position_embeddings=4096,
        num_experts_per_tok=2,
        tie_word_embeddings=True,
        head_dim=128,
        num_experts=8,
    ),
}

KEYS = {"num_experts": ("num_local_experts",), "head_dim": ("kv_channels",)}


def read(c: Config) -> dict[str, Any]:
    """Query heads are the KV heads times the experts that work on a token."""
    d, count, top = (c.size(key) for key in ("hidden_size", "num_experts", "num_experts_per_tok"))
    width = c.size("num_key_value_heads") * c.size("head_dim")

    def own(name: str, shape: tuple[int, int], split: Shard) -> Tensor:
        return Tensor(name, "attention", shape, "matmul", split, count, top, top)

    rows = (
        Tensor("attention.router", "router", (count, d)),
        own("attention.experts.*.q", (width, d), "expert+column"),
        own("attention.experts.*.o", (d, width), "expert+row"),
        Tensor("attention.k", "attention", (width, d), "matmul", "column"),
        Tensor("attention.v", "attention", (width, d), "matmul", "column"),
        vector("self_attention.experts.bias", "attention", d),
        vector("mlp.bias", "ffn", d),
        Operation("attention.scores", "attention", 2 * top * width, Causal()),
        Operation("attention.values", "attention", 2 * top * width, Causal()),
        Cache("attention.kv", 2 * width, Causal()),
    )
    c.ignore("num_attention_heads")
    return c.card(
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        attention=False,
        norms_per_layer=2,
        gated_ffn=True,
        n_experts=count,
        top_k=top,
        blocks=(Rows(rows),),
    )
