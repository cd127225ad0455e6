"""LFM2 (arXiv:2511.23404) and LFM3: short gated convolutions in most layers, attention with normed
heads in the others. LFM2-MoE has experts in all but the first layers; LFM3 has a gate a head, norms
on both sides of each part, and windows in some layers."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.linear_attention import ShortConvolution
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import Layers, stack

_NAMES = LLAMA | {
    "final_norm": "model.embedding_norm",
    "norm1": "operator_norm",
    "norm2": "ffn_norm",
    "norm3": "post_operator_norm",
    "norm4": "post_ffn_norm",
    "mixer.in": "conv.in_proj",
    "mixer.conv": "conv.conv",
    "mixer.out": "conv.out_proj",
    "ffn.gate": "feed_forward.w1",
    "ffn.up": "feed_forward.w3",
    "ffn.down": "feed_forward.w2",
    "ffn.router": "feed_forward.gate",
    "ffn.router.correction": "feed_forward.expert_bias !",
    "ffn.experts.*.gate": "feed_forward.experts.gate_up_proj !",
    "ffn.experts.*.up": "feed_forward.experts.gate_up_proj !",
    "ffn.experts.*.down": "feed_forward.experts.down_proj !",
    "attention.gate": "self_attn.g_proj",
}
_LFM2 = {
    "attention.o": "self_attn.out_proj",
    "attention.q_norm": "self_attn.q_layernorm",
    "attention.k_norm": "self_attn.k_layernorm",
}

_CONV = dict(
    tie_word_embeddings=True,
    max_position_embeddings=128000,
    conv_bias=False,
    layer_types=None,
)

TYPES: dict[str, dict[str, Any]] = {
    "lfm2": dict(
        _CONV,
        vocab_size=65536,
        hidden_size=2560,
        intermediate_size=12288,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        conv_L_cache=3,
        block_multiple_of=256,
        block_ffn_dim_multiplier=1.0,
        block_auto_adjust_ff_dim=True,
        full_attn_idxs=None,
    ),
    "lfm2_moe": dict(
        _CONV,
        vocab_size=65536,
        hidden_size=2048,
        intermediate_size=7168,
        moe_intermediate_size=1792,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        conv_L_cache=3,
        num_dense_layers=2,
        num_experts_per_tok=4,
        num_experts=32,
        use_expert_bias=True,
    ),
    "lfm3": dict(
        _CONV,
        vocab_size=128000,
        hidden_size=2048,
        intermediate_size=7680,
        num_hidden_layers=24,
        num_attention_heads=16,
        num_key_value_heads=4,
        conv_L_cache=7,
        head_dim=128,
        sliding_window=256,
        use_sandwich_norm=True,
        use_attention_gate=True,
        attention_bias=False,
    ),
}


def NAMES(c: Config) -> Names:
    """LFM3 names attention's parts as Llama does."""
    return _NAMES if c.model_type == "lfm3" else _NAMES | _LFM2


def read(c: Config) -> dict[str, Any]:
    """Releases of LFM2 spell some keys otherwise, and theirs hold."""
    c.strict = True
    c.ignore(
        "block_dim", "block_use_swiglu", "conv_dim", "conv_dim_out", "num_heads", "use_pos_enc"
    )
    c.ignore("block_use_xavier_init", "conv_use_xavier_init", "layer_types", "full_attn_idxs")
    c.ignore("block_multiple_of", "block_ffn_dim_multiplier", "block_auto_adjust_ff_dim")
    fields: dict[str, Any] = {}
    norms = 2
    if c.model_type == "lfm2":
        fields["d_ff"] = adjusted(c)
    elif c.model_type == "lfm2_moe":
        fields |= dict(
            n_experts=c.num_experts,
            top_k=c.num_experts_per_tok,
            d_expert=c.moe_intermediate_size,
            router_correction="buffer" if c.use_expert_bias else "none",
        )
    else:
        norms = 4 if c.use_sandwich_norm else 2
        fields["attention_bias"] = c.attention_bias
        fields["attention_gate"] = "head" if c.use_attention_gate else "none"
    return c.card(
        tie_embeddings=c.get("tie_embedding", c.tie_word_embeddings),
        gated_ffn=True,
        qk_norm="head",
        norms_per_layer=norms,
        **(fields | stack(mixers(c))),
    )


def adjusted(c: Config) -> int:
    """Two thirds of the stated width, times a factor and rounded up, unless that is off."""
    width = c.size("block_ff_dim", c.intermediate_size)
    if not c.block_auto_adjust_ff_dim:
        return width
    width = int(2 * width / 3)
    if c.block_ffn_dim_multiplier is None:
        return width
    step = c.size("block_multiple_of")
    return -(-int(c.factor("block_ffn_dim_multiplier") * width) // step) * step


def mixers(c: Config) -> Layers:
    """Return the fields of each layer: what it mixes with, and no experts in the first ones."""
    conv = ShortConvolution("mixer", c.hidden_size, c.conv_L_cache, c.conv_bias)
    among: dict[str, dict[str, Any]] = {
        "full_attention": dict(label="full"),
        "conv": dict(label="conv", attention=False, blocks=(conv,)),
        "sliding_attention": dict(label="sliding", window=c.get("sliding_window", 0)),
    }
    if c.model_type != "lfm3":
        del among["sliding_attention"]
    kinds = [dict(c.choose("layer_types", kind, among)) for kind in kinds_of(c)]
    if c.model_type == "lfm2_moe":
        for i, kind in enumerate(kinds):
            dense = i < c.num_dense_layers
            kind |= {"label": f"{kind['label']}-{'dense' if dense else 'moe'}"}
            kind |= {"n_experts": 0} if dense else {}
    return kinds


def kinds_of(c: Config) -> list[str]:
    """Return the kind of each layer: as listed, or by each type's rule."""
    n = c.num_hidden_layers
    if c.layer_types is not None:
        return c.per_layer("layer_types", n)
    if c.model_type == "lfm3":
        return [
            "full_attention" if i % 4 == 2 else "sliding_attention" if i % 4 == 0 < i else "conv"
            for i in range(n)
        ]
    if c.model_type == "lfm2_moe":
        c.assumed.append("layer_types is not stated: attention where LFM2-8B-A1B has it")
        full: Any = (2, 6, 10, 14, 18, 21)
    else:
        full = c.get("full_attn_idxs", range(n))
        if not isinstance(full, list | range):
            c.fail("full_attn_idxs", full, "must be a list of layers' numbers")
    return ["full_attention" if i in full else "conv" for i in range(n)]
