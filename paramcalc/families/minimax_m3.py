"""MiniMax M3's text model: GQA with norms on Q and K, a few small heads that pick blocks of
positions in sparse layers, experts beside a shared network in most layers."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention
from paramcalc.blocks.rows import Rows, matrix, scale
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import Layers, both, stack
from paramcalc.ledger import Cache, Operation
from paramcalc.sight import Blocks, Causal

_SHARED = "mlp.shared_experts.gate_up_proj"

NAMES = (
    LLAMA
    | MOE
    | {
        "ffn.gate": "mlp.gate_up_proj",
        "ffn.up": "mlp.gate_up_proj",
        "ffn.shared.gate": _SHARED,
        "ffn.shared.up": _SHARED,
        "ffn.router.correction": "mlp.e_score_correction_bias !",
    }
)

TYPES: dict[str, dict[str, Any]] = {
    "minimax_m3_vl_text": dict(
        vocab_size=200064,
        hidden_size=6144,
        intermediate_size=3072,
        num_hidden_layers=60,
        num_attention_heads=64,
        num_key_value_heads=4,
        head_dim=128,
        max_position_embeddings=524288,
        tie_word_embeddings=False,
        num_experts_per_tok=4,
        dense_intermediate_size=12288,
        shared_intermediate_size=3072,
        index_n_heads=4,
        index_head_dim=128,
        index_block_size=128,
        index_topk_blocks=16,
        index_local_blocks=1,
        layer_types=None,
        num_experts=128,
    ),
}

KEYS = {"num_experts": ("num_local_experts",)}

INDEXER = {
    "index_n_heads": "sparse_num_index_heads",
    "index_head_dim": "sparse_index_dim",
    "index_block_size": "sparse_block_size",
    "index_topk_blocks": "sparse_topk_blocks",
}
"""Sizes of the indexer, and what they are called in the section the released file keeps them in."""


def read(c: Config) -> dict[str, Any]:
    """Dense layers have a width of their own, sparse ones an indexer."""
    c.ignore(*INDEXER, "index_local_blocks")
    n, nested = c.size("num_hidden_layers"), c.sub("sparse_attention_config")
    frequency = c.per_layer("moe_layer_freq", n, c.get("moe_layer_freq", 1))
    dense = c.dense(lambda i: not frequency[i])
    wide = c.dense_intermediate_size
    network: Layers = [{**d, "d_ff": wide} if d else {} for d in dense]
    kinds, words = c.get("layer_types"), {"full_attention": False, "minimax_m3_sparse": True}
    if kinds is None:
        flags = nested.per_layer("sparse_attention_freq", n, nested.get("sparse_attention_freq", 0))
    else:
        every = c.per_layer("layer_types", n, kinds)
        flags = [c.choose("layer_types", kind, words) for kind in every]
    sparse: dict[str, Any] = {}
    if any(flags):
        sparse = {"attention": False, "norms_per_layer": 2, "blocks": picking(c, nested)}
    fields = {
        "gated_ffn": True,
        "qk_norm": "head",
        "n_experts": c.num_experts,
        "top_k": c.num_experts_per_tok,
        "d_expert": c.intermediate_size,
        "d_shared": c.shared_intermediate_size,
        "router_correction": "buffer",
    }
    layers = both(network, [sparse if flag else {} for flag in flags])
    return c.card(**(fields | stack(layers)))


def picking(c: Config, nested: Config) -> tuple[Attention, Rows]:
    """Attention to the blocks that small heads pick: they score every position with one key a
    position, and a block is as good as its best score. The own block is always among them."""
    small_heads, small, block, best = (nested.size(b, c.get(a)) for a, b in INDEXER.items())
    d, heads, width = (c.size(x) for x in ("hidden_size", "num_attention_heads", "head_dim"))
    kv = c.size("num_key_value_heads")
    if heads % kv:
        c.fail("num_key_value_heads", kv, f"must divide num_attention_heads = {heads}")
    sight = Blocks(block, best)
    own = "self_attn.indexer"
    indexer = (
        matrix(f"{own}.q_proj.weight", "attention", small_heads * small, d),
        matrix(f"{own}.k_proj.weight", "attention", small, d),
        scale(f"{own}.q_norm.weight", small),
        scale(f"{own}.k_norm.weight", small),
        Operation(f"{own}.scores", "attention", 2 * small_heads * small, Causal()),
        Cache(f"{own}.keys", small, Causal()),
    )
    attention = Attention("attention", d, heads, kv, width, width, sight, qk_norm="head")
    return attention, Rows(indexer)
