"""dots3-note (dots studio): DeepSeek-V3.2's layers, three of four of them with latent attention
over a window and sizes of their own, a gate a head and a norm of the rotary key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paramcalc.blocks import LatentAttention, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families import deepseek
from paramcalc.families.config import Config
from paramcalc.families.stacks import layers
from paramcalc.ledger import Row
from paramcalc.sight import Causal, Sight, Sparse, Window

NAMES = deepseek.NAMES | {
    "attention.k_norm": "self_attn.k_rope_only_layernorm",
    "attention.gate": "self_attn.g_proj",
}

KEYS = deepseek.KEYS | {
    "shared_experts_intermediate_size": ("moe_shared_expert_intermediate_size",),
    "sliding_window": ("sliding_window_size",),
}

TYPES = {
    "dots3_note_text": dict(
        vocab_size=152064,
        hidden_size=5120,
        intermediate_size=13824,
        moe_intermediate_size=1536,
        num_hidden_layers=46,
        num_attention_heads=128,
        n_shared_experts=1,
        n_routed_experts=256,
        kv_lora_rank=512,
        q_lora_rank=1024,
        qk_rope_head_dim=64,
        v_head_dim=128,
        qk_nope_head_dim=128,
        num_experts_per_tok=8,
        max_position_embeddings=524288,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_layer_types=None,
        index_topk=2048,
        index_head_dim=128,
        index_n_heads=64,
        layer_types=None,
        sliding_window=None,
        shared_experts_intermediate_size=1536,
        per_layer_config=None,
        swa_num_attention_heads=64,
        swa_q_lora_rank=1024,
        swa_kv_lora_rank=1024,
        swa_head_dim=256,
        swa_qk_nope_head_dim=192,
        swa_qk_rope_head_dim=None,
        swa_v_head_dim=128,
    ),
}

WRAPS = {
    "dots3_note": {"as": "dots3_note_text"},
}

_SIZES = (
    "num_attention_heads",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
)
"""Keys that a layer may have a value of its own for."""


def read(c: Config) -> dict[str, Any]:
    """One dense layer, then experts; the shared expert has a width of its own."""
    c.ignore("num_key_value_heads", "head_dim", "qk_head_dim", "swa_num_key_value_heads")
    c.ignore("mlp_bias", "index_n_heads", "index_head_dim")
    kinds = zip(deepseek.feed_forward(c), attentions(c), sizes(c), strict=True)
    fields = deepseek.experts(c) | dict(n_shared_experts=None)
    shared = c.size("shared_experts_intermediate_size") * c.get("n_shared_experts", 0)
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        attention=False,
        norms_per_layer=2,
        gated_ffn=True,
        **fields,
        d_shared=shared or None,
        layers=layers(
            feed | dict(blocks=(Rows(tuple(attention(c, kind, own))),)) for feed, kind, own in kinds
        ),
    )


def attentions(c: Config) -> list[str]:
    """The kind of each layer: the first two and then every fourth see far, through an indexer
    unless ``use_dsa`` is off."""
    n = deepseek.depth(c)
    kinds = c.layer_types
    if kinds is None:
        wide = not c.get("use_sliding_window", True)
        far = "indexed_attention"
        kinds = [far if wide or i < 2 or i % 4 == 1 else "sliding_attention" for i in range(n)]
    indexed = c.get("use_dsa", None if c.has("per_layer_config") else True)
    among = {kind: kind for kind in ("full_attention", "indexed_attention", "sliding_attention")}
    if indexed is not None:
        far = "indexed_attention" if indexed else "full_attention"
        among |= dict(full_attention=far, indexed_attention=far)
    return [c.choose("layer_types", kind, among) for kind in c.per_layer("layer_types", n, kinds)]


def sizes(c: Config) -> list[Mapping[str, int]]:
    """The sizes of each layer's attention: the model's, with what the layer or its kind says."""
    usual = {key: c.size(key) for key in _SIZES}
    given = c.per_layer_config
    if given is None:
        rotary = c.size("swa_head_dim") - c.size("swa_qk_nope_head_dim")
        local = {key: c.size(f"swa_{key}", rotary) for key in _SIZES}
        return [local if kind == "sliding_attention" else usual for kind in attentions(c)]
    own: dict[int, dict[str, int]] = {}
    for key, changes in given.items() if isinstance(given, dict) else ():
        if not str(key).isdigit() or not isinstance(changes, dict):
            c.fail("per_layer_config", key, "must be a layer's number with a section")
        for name, value in changes.items():
            if name not in (*_SIZES, "num_key_value_heads", "head_dim", "sliding_window"):
                c.fail(f"per_layer_config.{key}.{name}", value, "is not read for one layer alone")
            if type(value) is not int or value < 1:
                c.fail(f"per_layer_config.{key}.{name}", value, "must be at least 1", "raise it")
        own[int(key)] = changes
    return [usual | own.get(i, {}) for i in range(deepseek.depth(c))]


def attention(c: Config, kind: str, own: Mapping[str, int]) -> Iterator[Row]:
    """Latent attention, a gate of one value a head, and a norm of the rotary key."""
    indexed = kind == "indexed_attention"
    window = own.get("sliding_window") or c.size("sliding_window", 512)
    sights: dict[str, Sight] = {
        "full_attention": Causal(),
        "indexed_attention": Sparse(c.size("index_topk")),
        "sliding_attention": Window(window),
    }
    heads, rotary = own["num_attention_heads"], own["qk_rope_head_dim"]
    yield from LatentAttention(
        "attention",
        c.hidden_size,
        heads,
        own["q_lora_rank"],
        own["kv_lora_rank"],
        own["qk_nope_head_dim"],
        rotary,
        own["v_head_dim"],
        sights[kind],
        c.index_n_heads if indexed else None,
        c.index_head_dim if indexed else None,
        "qko" if c.attention_bias else "",
    ).rows()
    yield from Norm("attention.k_norm", (rotary,), False).rows()
    yield from linear("attention.gate", "attention", heads, c.hidden_size, shard="column")
