"""DeepSeek-V2 (arXiv:2405.04434), V3 (arXiv:2412.19437) and V3.2, and the decoders built like them:
latent attention, dense layers first, then shared and routed experts.

V3 adds a balancing value an expert and one layer beside the model that predicts the token after
next; V3.2 an indexer that picks the positions a token attends to; GLM-5 shares one layer's choice
with the next ones. MiniCPM3 and Youtu-LLM have latent attention and no experts. A.X K1 puts a norm
after the experts.
"""

from __future__ import annotations

from typing import Any

from paramcalc import rules
from paramcalc.blocks import Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MLA, MOE
from paramcalc.families.stacks import layers
from paramcalc.ledger import Tensor

NAMES = LLAMA | MLA | MOE | {"ffn.after": "mlp.post_mlp_layernorm"}

KEYS = {
    "n_routed_experts": ("num_local_experts", "num_experts"),
    "n_shared_experts": ("num_shared_experts",),
    "num_nextn_predict_layers": ("num_mtp_layers",),
}

_LATENT = dict(
    kv_lora_rank=512,
    q_lora_rank=1536,
    qk_rope_head_dim=64,
    qk_nope_head_dim=128,
    v_head_dim=128,
    tie_word_embeddings=False,
    attention_bias=False,
)
_V3 = dict(
    _LATENT,
    vocab_size=129280,
    hidden_size=7168,
    intermediate_size=18432,
    moe_intermediate_size=2048,
    num_hidden_layers=61,
    num_attention_heads=128,
    n_shared_experts=1,
    n_routed_experts=256,
    num_experts_per_tok=8,
    first_k_dense_replace=3,
    max_position_embeddings=4096,
)

TYPES = {
    "deepseek_v2": dict(
        _LATENT,
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=11008,
        moe_intermediate_size=1407,
        num_hidden_layers=32,
        num_attention_heads=32,
        n_shared_experts=2,
        n_routed_experts=64,
        num_experts_per_tok=None,
        first_k_dense_replace=0,
        max_position_embeddings=2048,
        mlp_bias=False,
    ),
    "deepseek_v3": dict(_V3),
    "deepseek_v32": dict(
        _V3,
        max_position_embeddings=163840,
        index_topk=2048,
        index_head_dim=128,
        index_n_heads=64,
        mlp_layer_types=None,
    ),
    "axk1": dict(
        _V3,
        vocab_size=163840,
        num_attention_heads=64,
        n_routed_experts=192,
        first_k_dense_replace=1,
        max_position_embeddings=32768,
        mlp_layer_types=None,
    ),
    "glm4_moe_lite": dict(
        _V3,
        vocab_size=154880,
        hidden_size=2048,
        intermediate_size=10240,
        moe_intermediate_size=1536,
        num_hidden_layers=47,
        num_attention_heads=20,
        n_routed_experts=64,
        q_lora_rank=768,
        v_head_dim=256,
        qk_nope_head_dim=192,
        num_experts_per_tok=4,
        first_k_dense_replace=1,
        max_position_embeddings=202752,
        mlp_layer_types=None,
    ),
    "glm_moe_dsa": dict(
        _V3,
        vocab_size=154880,
        hidden_size=6144,
        intermediate_size=12288,
        num_hidden_layers=78,
        num_attention_heads=64,
        q_lora_rank=2048,
        v_head_dim=256,
        qk_nope_head_dim=192,
        max_position_embeddings=202752,
        index_topk=2048,
        index_head_dim=128,
        index_n_heads=32,
        mlp_layer_types=None,
        indexer_types=None,
        index_topk_pattern=None,
        index_topk_freq=1,
        index_skip_topk_offset=2,
    ),
    "sarvam_mla": dict(
        _V3,
        vocab_size=262144,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=32,
        num_attention_heads=64,
        n_routed_experts=128,
        q_lora_rank=None,
        first_k_dense_replace=1,
    ),
    "minicpm3": dict(
        _LATENT,
        vocab_size=73448,
        hidden_size=2560,
        intermediate_size=6400,
        num_hidden_layers=62,
        num_attention_heads=40,
        max_position_embeddings=32768,
        tie_word_embeddings=True,
        mlp_bias=False,
        kv_lora_rank=256,
        q_lora_rank=768,
        qk_nope_head_dim=64,
        qk_rope_head_dim=32,
        v_head_dim=None,
    ),
    "youtu": dict(
        _LATENT,
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=32,
        num_attention_heads=16,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Latent attention in every layer, experts in all but the dense ones."""
    fields = latent(c)
    if c.get("n_routed_experts") is None:
        return c.card(**fields, ffn_bias=c.get("mlp_bias", False))
    fields |= experts(c)
    kinds = feed_forward(c)
    if c.model_type == "axk1":
        after = Norm("ffn.after", (c.hidden_size,), False)
        kinds = [kind or dict(blocks=(after,)) for kind in kinds]
    if c.get("index_topk_freq") is not None:
        chosen = {True: {}, False: dict(mla=fields["mla"] | UNINDEXED)}
        kinds = [kind | chosen[own] for kind, own in zip(kinds, indexers(c), strict=True)]
    return c.card(**fields, **stack(kinds), mtp=prediction(c))


def latent(c: Config) -> dict[str, Any]:
    """The attention, as fields. Every head has its own part of the latent: no KV heads."""
    c.ignore("num_key_value_heads", "head_dim", "qk_head_dim", "scale_emb", "dim_model_base")
    c.ignore("layer_types", "mlp_bias", "indexer_rope_interleave")
    v_head_dim = c.v_head_dim
    if v_head_dim is None:
        v_head_dim = c.share("hidden_size", "num_attention_heads")
    return dict(
        n_kv_heads=None,
        head_dim=None,
        gated_ffn=True,
        attention_bias="qko" if c.attention_bias else None,
        mla=dict(
            q_lora_rank=c.q_lora_rank,
            kv_lora_rank=c.kv_lora_rank,
            qk_nope_head_dim=c.qk_nope_head_dim,
            qk_rope_head_dim=c.qk_rope_head_dim,
            v_head_dim=v_head_dim,
            index_n_heads=c.get("index_n_heads"),
            index_head_dim=c.get("index_head_dim"),
            index_top_k=c.get("index_topk"),
        ),
    )


UNINDEXED = dict(index_n_heads=None, index_head_dim=None)
"""What a layer's attention lacks where it follows the choice of an earlier layer's indexer."""


def experts(c: Config) -> dict[str, Any]:
    """The routed and shared experts, as fields; only V2 routes without a balancing value."""
    older = c.model_type == "deepseek_v2"
    top_k = c.num_experts_per_tok
    if top_k is None:
        c.assumed.append("num_experts_per_tok is not stated: 6, as in DeepSeek-V2")
        top_k = 6
    return dict(
        n_experts=c.n_routed_experts,
        top_k=top_k,
        d_expert=c.moe_intermediate_size,
        n_shared_experts=c.get("n_shared_experts", 0),
        ffn_bias=older and c.get("mlp_bias", False),
        expert_bias=False,
        router_correction="none" if older else "buffer",
    )


def depth(c: Config) -> int:
    """The number of layers, where a list with an entry a layer is about to be made."""
    n = c.size("num_hidden_layers")
    if n > rules.MOST_LAYERS:
        c.fail("num_hidden_layers", n, f"must be at most {rules.MOST_LAYERS:,}", "lower it")
    return n


def feed_forward(c: Config) -> list[dict[str, Any]]:
    """The fields of each layer: none where it has experts, ``n_experts=0`` where it is dense."""
    n = depth(c)
    stated = c.get("mlp_layer_types")
    c.ignore("first_k_dense_replace", "moe_layer_freq")
    if stated is not None:
        among = {"dense": False, "sparse": True}
        every = c.per_layer("mlp_layer_types", n, stated)
        sparse = [c.choose("mlp_layer_types", kind, among) for kind in every]
    else:
        first, step = c.get("first_k_dense_replace", 1), c.get("moe_layer_freq", 1)
        if isinstance(step, list):
            takes = [bool(x) for x in c.per_layer("moe_layer_freq", n, step)]
        elif type(step) is int and step > 0:
            takes = [i % step == 0 for i in range(n)]
        else:
            c.fail("moe_layer_freq", step, "must be at least 1", "raise it")
        sparse = [i >= first and taken for i, taken in enumerate(takes)]
    return [{} if yes else dict(n_experts=0) for yes in sparse]


def stack(kinds: list[dict[str, Any]]) -> dict[str, Any]:
    """The layers: a count of dense ones where those come first and nothing else differs."""
    dense = [bool(kind) for kind in kinds]
    first = sum(dense)
    if all(kind in ({}, dict(n_experts=0)) for kind in kinds) and all(dense[:first]):
        return dict(n_dense_layers=first)
    return dict(layers=layers(kinds))


def indexers(c: Config) -> list[bool]:
    """Which layers have an indexer of their own (GLM-5): each, unless a pattern says otherwise."""
    n = depth(c)
    pattern = c.indexer_types if c.indexer_types is not None else c.index_topk_pattern
    if pattern is None:
        step, skipped = max(c.index_topk_freq, 1), c.get("index_skip_topk_offset", 0)
        return [max(i - skipped + 1, 0) % step == 0 for i in range(n)]
    among = {"full": True, "shared": False, "F": True, "S": False}
    kinds = list(pattern) if isinstance(pattern, str) else pattern
    return [
        c.choose("indexer_types", kind, among) for kind in c.per_layer("indexer_types", n, kinds)
    ]


def prediction(c: Config) -> list[dict[str, Any]] | None:
    """The layers of multi-token prediction: an own embedding and head, two norms, a projection of
    the joined streams, and one layer with experts (V3, section 2.2)."""
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
