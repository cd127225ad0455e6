"""Decoders that mix Mamba 2 with attention: Bamba and Granite 4, where a few layers attend and the
others scan (Granite with experts beside a shared network, or that network alone), and Falcon-H1
(arXiv:2507.22448), where every layer does both side by side."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.mamba import Mamba2
from paramcalc.families.config import Config
from paramcalc.families.mamba import groups, mixer_names
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import Layers, stack

_BAMBA = {
    "final_norm": "model.final_layernorm",
    "norm2": "pre_ff_layernorm",
    "ffn.gate": "feed_forward.gate_proj",
    "ffn.up": "feed_forward.up_proj",
    "ffn.down": "feed_forward.down_proj",
}
_GRANITE = {
    "ffn.router": "block_sparse_moe.router",
    "ffn.experts.*.gate": "block_sparse_moe.experts.gate_up_proj !",
    "ffn.experts.*.up": "block_sparse_moe.experts.gate_up_proj !",
    "ffn.experts.*.down": "block_sparse_moe.experts.down_proj !",
    "ffn.shared.gate": "shared_mlp.input_linear",
    "ffn.shared.up": "shared_mlp.input_linear",
    "ffn.shared.down": "shared_mlp.output_linear",
    "ffn.gate": "shared_mlp.input_linear",
    "ffn.up": "shared_mlp.input_linear",
    "ffn.down": "shared_mlp.output_linear",
}

_SCALED = ("lm_head", "key", "attention_in", "attention_out", "ssm_in", "ssm_out")
"""What Falcon-H1 scales by numbers of its config."""

_MAMBA = dict(
    mamba_n_heads=128,
    mamba_d_head=None,
    mamba_n_groups=1,
    mamba_d_state=256,
    mamba_d_conv=4,
    mamba_expand=2,
    mamba_conv_bias=True,
    mamba_proj_bias=False,
    attention_bias=False,
    tie_word_embeddings=False,
    hidden_size=4096,
    num_hidden_layers=32,
    num_attention_heads=32,
)

TYPES: dict[str, dict[str, Any]] = {
    "bamba": dict(
        _MAMBA,
        vocab_size=128000,
        intermediate_size=14336,
        num_key_value_heads=8,
        max_position_embeddings=262144,
        attn_layer_indices=[],
        mlp_bias=False,
    ),
    "falcon_h1": dict(
        _MAMBA,
        vocab_size=128000,
        intermediate_size=14336,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        mamba_d_ssm=1024,
        mamba_rms_norm=False,
        projectors_bias=False,
        mlp_bias=False,
    ),
    "granitemoehybrid": dict(
        _MAMBA,
        vocab_size=32000,
        intermediate_size=11008,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        num_local_experts=8,
        num_experts_per_tok=2,
        shared_intermediate_size=1024,
        layer_types=None,
    ),
}

KEYS = {"layer_types": ("layers_block_type",), "num_local_experts": ("num_experts",)}


def NAMES(c: Config) -> Names:
    """Granite's feed-forward part has its own names, Bamba's and Falcon's differ from Llama's."""
    own = _GRANITE if c.model_type == "granitemoehybrid" else _BAMBA
    return LLAMA | mixer_names("mamba") | own


def read(c: Config) -> dict[str, Any]:
    """What each layer holds, and Granite's experts."""
    c.strict = True
    c.ignore("mamba_chunk_size", "time_step_limit", "mamba_norm_before_gate")
    c.ignore("mlp_multipliers", "ssm_multipliers", "layers_block_type", "layer_types")
    c.ignore(*(f"{part}_multiplier" for part in _SCALED))
    fields: dict[str, Any] = {"attention_bias": c.attention_bias}
    if c.model_type == "granitemoehybrid":
        fields |= feed_forward(c)
    else:
        fields["ffn_bias"] = c.mlp_bias
    return c.card(gated_ffn=True, **fields, **stack(mixers(c)))


def mixers(c: Config) -> Layers:
    """Return the fields of each layer: none for attention."""
    n = c.num_hidden_layers
    if c.model_type == "falcon_h1":
        return [dict(norms_per_layer=2, blocks=(mixer(c),))] * n
    if c.model_type == "bamba":
        attending = set(c.get("attn_layer_indices", []))
        full = [i in attending for i in range(n)]
    elif c.layer_types is None:
        full = [False] * n
    else:
        among = {"attention": True, "full_attention": True, "mamba": False}
        among["linear_attention"] = False
        full = [c.choose("layer_types", kind, among) for kind in c.per_layer("layer_types", n)]
    mixing = scanning(c) if not all(full) else {}
    return [dict(label="attention") if yes else mixing for yes in full]


def scanning(c: Config) -> dict[str, Any]:
    """Return the fields of a layer with a Mamba 2 mixer instead of attention."""
    return dict(label="mamba", attention=False, norms_per_layer=2, blocks=(mixer(c),))


def mixer(c: Config) -> Mamba2:
    """Return the mixer. Raises ``ConfigError`` where the heads do not fill the inner width."""
    inner = c.get("mamba_d_ssm", c.mamba_expand * c.hidden_size)
    heads = c.mamba_n_heads
    if heads < 1 or inner % heads:
        c.fail("mamba_n_heads", heads, f"must divide the mixer's width of {inner}")
    width = c.get("mamba_d_head", "auto")
    if width not in ("auto", inner // heads):
        c.fail("mamba_d_head", width, f"times mamba_n_heads = {heads} must be {inner}")
    falcon = c.model_type == "falcon_h1"
    return Mamba2(
        "mixer",
        c.hidden_size,
        heads,
        inner // heads,
        groups(c, "mamba_n_groups", heads),
        c.mamba_d_state,
        c.mamba_d_conv,
        c.mamba_conv_bias,
        c.mamba_proj_bias,
        c.projectors_bias if falcon else c.mamba_proj_bias,
        c.mamba_rms_norm if falcon else True,
    )


def feed_forward(c: Config) -> dict[str, Any]:
    """Return Granite's: routed experts beside a shared network, or that network alone."""
    if not c.num_local_experts:
        return dict(d_ff=c.shared_intermediate_size)
    return dict(
        n_experts=c.num_local_experts,
        top_k=c.num_experts_per_tok,
        d_expert=c.intermediate_size,
        d_shared=c.shared_intermediate_size,
    )
