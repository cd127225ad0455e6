"""Hunyuan V4 (Tencent): latent attention whose indexers serve several layers, with a gate and
sinks, one dense layer, experts, and several residual streams."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.hyper import HyperConnection, HyperHead
from paramcalc.blocks.linear import linear
from paramcalc.families import deepseek
from paramcalc.families.config import Config
from paramcalc.families.deepseek_v4 import NAMES as STREAMS
from paramcalc.ledger import Tensor

NAMES = (
    deepseek.NAMES
    | {name: path for name, path in STREAMS.items() if "streams" in name}
    | {"attention.gate": "self_attn.gate_proj"}
)

KEYS = deepseek.KEYS

TYPES = {
    "hy_v4": dict(
        vocab_size=120832,
        hidden_size=2816,
        intermediate_size=6912,
        moe_intermediate_size=768,
        num_hidden_layers=34,
        num_attention_heads=32,
        max_position_embeddings=262144,
        tie_word_embeddings=False,
        attention_bias=False,
        n_routed_experts=256,
        n_shared_experts=1,
        num_experts_per_tok=8,
        q_lora_rank=1536,
        kv_lora_rank=512,
        qk_nope_head_dim=192,
        qk_rope_head_dim=64,
        v_head_dim=256,
        mlp_layer_types=None,
        index_topk=2048,
        index_head_dim=128,
        index_n_heads=16,
        indexer_types=None,
        hc_mult=4,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """The first layer and every fourth after it have an indexer; the next three follow it."""
    d, heads, streams = c.size("hidden_size"), c.size("num_attention_heads"), c.size("hc_mult")
    fields = deepseek.latent(c) | deepseek.experts(c)
    n = deepseek.depth(c)
    shared = fields["mla"] | deepseek.UNINDEXED
    types = c.indexer_types
    if types is None:
        types = ["full" if i == 0 or i % 4 == 1 else "shared" for i in range(n)]
    among = {"full": {}, "shared": dict(mla=shared)}
    every = c.per_layer("indexer_types", n, types)
    kinds = [
        kind | c.choose("indexer_types", own, among)
        for kind, own in zip(deepseek.feed_forward(c), every, strict=True)
    ]
    extra = Rows(
        (
            *linear("attention.gate", "attention", heads * c.size("v_head_dim"), d, shard="column"),
            Tensor("attention.sinks", "attention", (heads,), "bias", "column"),
        )
    )
    return c.card(
        **fields,
        **deepseek.stack(kinds),
        blocks=(
            extra,
            HyperConnection("attention.streams", d, streams, False),
            HyperConnection("ffn.streams", d, streams, False),
        ),
        outer=(HyperHead("streams", d, streams),),
    )
