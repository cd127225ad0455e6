"""MiniMax M3's text model: GQA with norms on Q and K, a few small heads that pick blocks of
positions in sparse layers, experts beside a shared network in most layers."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, matrix, scale
from paramcalc.families.config import Config, Layers, both, stack
from paramcalc.families.names import LLAMA, MOE
from paramcalc.ledger import Cache, Operation
from paramcalc.sight import Causal

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


INDEXER = (
    "index_n_heads",
    "index_head_dim",
    "index_block_size",
    "index_topk_blocks",
    "index_local_blocks",
)


def read(c: Config) -> dict[str, Any]:
    """Dense layers have a width of their own; the released file nests the indexer's sizes."""
    c.ignore(*INDEXER)
    n, frequency = c.num_hidden_layers, c.get("moe_layer_freq")
    dense = c.dense(lambda i: False if frequency is None else not frequency[i])
    wide = c.dense_intermediate_size
    network: Layers = [{**d, "d_ff": wide} if d else {} for d in dense]
    kinds = c.per_layer("layer_types", n, c.get("layer_types") or "full_attention")
    words = {"full_attention": False, "minimax_m3_sparse": True}
    sparse = [c.choose("layer_types", kind, words) for kind in kinds]
    picked: Layers = [{"blocks": (indexer(c),)} if flag else {} for flag in sparse]
    return c.card(
        gated_ffn=True,
        qk_norm="head",
        n_experts=c.num_experts,
        top_k=c.num_experts_per_tok,
        d_expert=c.intermediate_size,
        d_shared=c.shared_intermediate_size,
        router_correction="buffer",
        **stack(both(network, picked)),
    )


def indexer(c: Config) -> Rows:
    """Small heads of Q and one K score every position; a block is kept by its best score."""
    d, heads, width = c.hidden_size, c.index_n_heads, c.index_head_dim
    own = "self_attn.indexer"
    return Rows(
        (
            matrix(f"{own}.q_proj.weight", "attention", heads * width, d),
            matrix(f"{own}.k_proj.weight", "attention", width, d),
            scale(f"{own}.q_norm.weight", width),
            scale(f"{own}.k_norm.weight", width),
            Operation(f"{own}.scores", "attention", 2 * heads * width, Causal()),
            Cache(f"{own}.keys", width, Causal()),
        )
    )
