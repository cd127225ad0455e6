"""DeepSeek-V3 (arXiv:2412.19437): latent attention, dense layers first, then shared and routed
experts with a balancing value each; one layer beside the model predicts the token after next."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MLA, MOE
from paramcalc.ledger import Tensor

NAMES = LLAMA | MLA | MOE

TYPES = {
    "deepseek_v3": dict(
        vocab_size=129280,
        hidden_size=7168,
        intermediate_size=18432,
        moe_intermediate_size=2048,
        num_hidden_layers=61,
        num_attention_heads=128,
        num_key_value_heads=128,
        n_shared_experts=1,
        n_routed_experts=256,
        num_experts_per_tok=8,
        kv_lora_rank=512,
        q_lora_rank=1536,
        qk_rope_head_dim=64,
        qk_nope_head_dim=128,
        v_head_dim=128,
        first_k_dense_replace=3,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """MLA in every layer; ``first_k_dense_replace`` layers have a dense network."""
    c.ignore("num_key_value_heads", "head_dim")  # every head has its own part of the latent
    experts = dict(
        n_experts=c.n_routed_experts,
        top_k=c.num_experts_per_tok,
        d_expert=c.moe_intermediate_size,
        n_shared_experts=c.n_shared_experts,
        router_correction="buffer",
    )
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        gated_ffn=True,
        mla=dict(
            q_lora_rank=c.q_lora_rank,
            kv_lora_rank=c.kv_lora_rank,
            qk_nope_head_dim=c.qk_nope_head_dim,
            qk_rope_head_dim=c.qk_rope_head_dim,
            v_head_dim=c.v_head_dim,
        ),
        attention_bias="qko" if c.attention_bias else None,
        n_dense_layers=c.first_k_dense_replace,
        **experts,
        mtp=prediction(c),
    )


def prediction(c: Config) -> list[dict[str, Any]] | None:
    """The layers of multi-token prediction: an own embedding and head, two norms, a projection of
    the joined streams, and one layer with experts (section 2.2)."""
    n = c.get("num_nextn_predict_layers", 0)
    if not n:
        return None
    d, vocab = c.hidden_size, c.vocab_size
    extra = Rows(
        (
            Tensor("embed_tokens.weight", "embedding", (vocab, d), "lookup", "vocab"),
            *Norm("enorm.weight", (d,), False).rows(),
            *Norm("hnorm.weight", (d,), False).rows(),
            *linear("eh_proj.weight", "ffn", d, 2 * d),
            *Norm("shared_head.norm.weight", (d,), False).rows(),
            Tensor("shared_head.head.weight", "head", (vocab, d), "matmul", "vocab"),
        )
    )
    return [dict(repeat=n, blocks=(extra,))]
