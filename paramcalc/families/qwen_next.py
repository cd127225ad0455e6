"""Qwen3-Next and the text models of Qwen 3.5: gated delta nets in three layers of four, attention
with a gate as wide as its output in the fourth, and (but for the dense Qwen 3.5) many small experts
beside a gated shared one."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Norm, Rows
from paramcalc.blocks.delta import GatedDelta
from paramcalc.blocks.linear import linear
from paramcalc.families import qwen_moe
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.stacks import Layers, both, stack

_NAMES = qwen_moe.NAMES | {
    "attention.gate": "self_attn.q_proj",
    "mixer.conv": "linear_attn.conv1d",
    "mixer.decay_shift": "linear_attn.dt_bias !",
    "mixer.rates": "linear_attn.A_log !",
    "mixer.norm": "linear_attn.norm",
    "mixer.o": "linear_attn.out_proj",
    "mtp.fc": "mtp.fc ^",
    "mtp.pre_fc_norm_embedding": "mtp.pre_fc_norm_embedding ^",
    "mtp.pre_fc_norm_hidden": "mtp.pre_fc_norm_hidden ^",
    "mtp.norm": "mtp.norm ^",
}
_FUSED = dict.fromkeys(("q", "k", "v", "gate"), "qkvz") | dict.fromkeys(("beta", "decay"), "ba")
_SPLIT = dict.fromkeys(("q", "k", "v"), "qkv") | {"gate": "z", "beta": "b", "decay": "a"}

_DELTA = dict(
    max_position_embeddings=32768,
    tie_word_embeddings=False,
    attention_bias=False,
    head_dim=256,
    linear_conv_kernel_dim=4,
    linear_key_head_dim=128,
    linear_value_head_dim=128,
    linear_num_key_heads=16,
    linear_num_value_heads=32,
    layer_types=None,
)

TYPES: dict[str, dict[str, Any]] = {
    "qwen3_next": dict(
        _DELTA,
        vocab_size=151936,
        hidden_size=2048,
        intermediate_size=5632,
        num_hidden_layers=48,
        num_attention_heads=16,
        num_key_value_heads=2,
        decoder_sparse_step=1,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        num_experts_per_tok=10,
        num_experts=512,
        mlp_only_layers=[],
    ),
    "qwen3_5_text": dict(
        _DELTA,
        vocab_size=248320,
        hidden_size=4096,
        intermediate_size=12288,
        num_hidden_layers=32,
        num_attention_heads=16,
        num_key_value_heads=4,
    ),
    "qwen3_5_moe_text": dict(
        _DELTA,
        vocab_size=248320,
        hidden_size=2048,
        num_hidden_layers=40,
        num_attention_heads=16,
        num_key_value_heads=2,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        num_experts_per_tok=8,
        num_experts=256,
    ),
}

KEYS = qwen_moe.KEYS


def NAMES(c: Config) -> Names:
    """Qwen3-Next fuses what Qwen 3.5 keeps apart."""
    parts = _FUSED if c.model_type == "qwen3_next" else _SPLIT
    return _NAMES | {f"mixer.{part}": f"linear_attn.in_proj_{path}" for part, path in parts.items()}


def read(c: Config) -> dict[str, Any]:
    """A dense network in Qwen 3.5's smaller models, and in the layers that Qwen3-Next lists."""
    c.strict = True
    fields: dict[str, Any] = {"attention_bias": "qkvgo" if c.attention_bias else ""}
    kinds = mixers(c)
    if c.model_type == "qwen3_next":
        kinds = both(kinds, qwen_moe.dense_layers(c))
    if c.model_type != "qwen3_5_text":
        fields |= qwen_moe.experts(c)
    c.ignore("full_attention_interval", "attn_output_gate", "mlp_only_layers")
    c.ignore("mtp_use_dedicated_embeddings")
    return c.card(
        gated_ffn=True,
        qk_norm="head",
        attention_gate="element",
        mtp=prediction(c),
        **(fields | stack(kinds)),
    )


def mixers(c: Config) -> Layers:
    """Return the fields of each layer: none for attention, else those of a delta net."""
    n, step = c.num_hidden_layers, c.get("full_attention_interval", 4)
    if c.layer_types is not None:
        among = {"linear_attention": False, "full_attention": True}
        full = [c.choose("layer_types", x, among) for x in c.per_layer("layer_types", n)]
    elif type(step) is int and step > 0:
        full = [(i + 1) % step == 0 for i in range(n)]
    else:
        c.fail("full_attention_interval", step, "must be at least 1", "raise it")
    return [dict(label="attention") if yes else delta(c) for yes in full]


def delta(c: Config) -> dict[str, Any]:
    """Return the fields of a layer with a delta net instead of attention."""
    heads, keys = c.size("linear_num_value_heads"), c.size("linear_num_key_heads")
    if heads % keys:
        c.fail("linear_num_value_heads", heads, f"linear_num_key_heads = {keys} must divide it")
    block = GatedDelta(
        "mixer",
        c.hidden_size,
        keys,
        heads,
        c.size("linear_key_head_dim"),
        c.size("linear_value_head_dim"),
        c.size("linear_conv_kernel_dim"),
    )
    return dict(label="delta", attention=False, norms_per_layer=2, blocks=(block,))


def prediction(c: Config) -> list[dict[str, Any]] | None:
    """The layers of multi-token prediction: attention in each, before the first a norm on either
    stream and a projection of both, a norm at the end. Embedding and head are the model's."""
    n, d = c.whole("mtp_num_hidden_layers", 0), c.hidden_size
    if not n:
        return None
    norms = ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm")
    around = Rows(
        (
            *linear("fc", "ffn", d, 2 * d),
            *(row for name in norms for row in Norm(name, (d,), False).rows()),
        )
    )
    return [dict(repeat=1, blocks=(around,)), *([dict(repeat=n - 1)] if n > 1 else [])]
