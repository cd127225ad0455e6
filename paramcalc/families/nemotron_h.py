"""Nemotron-H (arXiv:2504.03624) and Nemotron 3: a layer is one thing, Mamba 2, attention, a plain
network or plain experts, behind one norm. Experts may work in a narrower latent space."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import FeedForward, MixtureOfExperts, Rows
from paramcalc.blocks.linear import linear
from paramcalc.blocks.mamba import Mamba2
from paramcalc.families.config import Config
from paramcalc.families.mamba import groups, mixer_names
from paramcalc.families.names import Names
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Row

NAMES: Names = mixer_names("mixer") | {
    "layers": "model.layers",
    "embedding": "model.embeddings",
    "final_norm": "model.norm_f",
    "head": "lm_head",
    "norm1": "norm",
    "attention.q": "mixer.q_proj",
    "attention.k": "mixer.k_proj",
    "attention.v": "mixer.v_proj",
    "attention.o": "mixer.o_proj",
    "ffn.up": "mixer.up_proj",
    "ffn.down": "mixer.down_proj",
    "ffn.router": "mixer.gate",
    "ffn.router.correction": "mixer.gate.e_score_correction_bias !",
    "ffn.experts.*.up": "mixer.experts.up_proj !",
    "ffn.experts.*.down": "mixer.experts.down_proj !",
    "ffn.shared.up": "mixer.shared_experts.up_proj",
    "ffn.shared.down": "mixer.shared_experts.down_proj",
    "ffn.latent.down": "mixer.fc1_latent_proj",
    "ffn.latent.up": "mixer.fc2_latent_proj",
}

TYPES: dict[str, dict[str, Any]] = {
    "nemotron_h": dict(
        vocab_size=131072,
        hidden_size=4096,
        layers_block_type=None,
        tie_word_embeddings=False,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=4096,
        intermediate_size=21504,
        mlp_bias=False,
        ssm_state_size=128,
        mamba_num_heads=128,
        mamba_head_dim=64,
        n_groups=8,
        conv_kernel=4,
        use_conv_bias=True,
        use_bias=False,
        n_routed_experts=8,
        moe_intermediate_size=7688,
        moe_shared_expert_intermediate_size=7688,
        moe_latent_size=None,
        num_experts_per_tok=2,
        hybrid_override_pattern=None,
    ),
}

KEYS = {
    "layers_block_type": ("layer_types",),
    "n_groups": ("mamba_n_groups",),
    "conv_kernel": ("mamba_d_conv",),
    "use_conv_bias": ("mamba_conv_bias",),
    "n_routed_experts": ("num_local_experts",),
}

_LETTERS = {"M": "linear_attention", "E": "moe", "*": "full_attention", "-": "mlp"}
_WORDS = {word: word for word in _LETTERS.values()} | {
    "mamba": "linear_attention",
    "attention": "full_attention",
}


def read(c: Config) -> dict[str, Any]:
    """As many layers as the list or pattern of their kinds names."""
    c.strict = True
    c.ignore("num_hidden_layers", "attention_bias", "mamba_proj_bias", "sliding_window", "expand")
    c.ignore(
        "tie_word_embeddings",
        "chunk_size",
        "time_step_limit",
        "residual_in_fp32",
        "rescale_prenorm_residual",
    )
    c.ignore("n_shared_experts", "moe_shared_expert_overlap", "mtp_layers_block_type")
    c.ignore("mamba_expand", "mamba_chunk_size", "mamba_dt_limit")
    if c.get("num_nextn_predict_layers", 0):
        c.left_out.append("layers of multi-token prediction (num_nextn_predict_layers)")
    kinds = kinds_of(c)
    held: dict[str, dict[str, Any]] = {
        "linear_attention": dict(label="mamba", attention=False, ffn=False, blocks=(mixer(c),)),
        "full_attention": dict(label="attention", ffn=False),
        "mlp": dict(label="dense", attention=False),
        "moe": dict(label="moe", attention=False, ffn=False, blocks=(experts(c),)),
    }
    layers: Layers = [held[kind] for kind in kinds]
    return c.card(
        n_layers=len(kinds),
        norms_per_layer=1,
        gated_ffn=False,
        ffn_bias=c.mlp_bias,
        tie_embeddings=False,  # the class never ties
        **stack(layers),
    )


def kinds_of(c: Config) -> list[str]:
    """Return what each layer is: by the list, else by the pattern's letters, else one of each.

    Raises ``ConfigError``.
    """
    stated, pattern = c.layers_block_type, c.hybrid_override_pattern
    if stated is not None:
        if not isinstance(stated, list | tuple) or not stated:
            c.fail("layers_block_type", stated, "must be a list with an entry a layer")
        return [c.choose("layers_block_type", kind, _WORDS) for kind in stated]
    if pattern is not None:
        if not isinstance(pattern, str) or not pattern:
            c.fail("hybrid_override_pattern", pattern, "must be a letter a layer")
        return [c.choose("hybrid_override_pattern", letter, _LETTERS) for letter in pattern]
    return ["linear_attention", "moe", "full_attention", "mlp"]


def mixer(c: Config) -> Mamba2:
    """Return the mixer; its width is its own, whatever ``expand`` says."""
    heads = c.mamba_num_heads
    return Mamba2(
        "mixer",
        c.hidden_size,
        heads,
        c.mamba_head_dim,
        groups(c, "n_groups", heads),
        c.ssm_state_size,
        c.conv_kernel,
        c.use_conv_bias,
        c.use_bias,
        c.use_bias,
    )


def experts(c: Config) -> Rows:
    """Return the experts. In a latent space their own matrices shrink; router and shared network
    read the stream."""
    count, top = c.n_routed_experts, c.num_experts_per_tok
    if top > count:
        c.fail("num_experts_per_tok", top, f"cannot exceed n_routed_experts = {count}", "lower it")
    d, wide, bias = c.hidden_size, c.moe_intermediate_size, c.mlp_bias
    shared = c.moe_shared_expert_intermediate_size or c.intermediate_size
    around = MixtureOfExperts(
        "ffn", d, count, top, wide, False, bias, d_shared=shared, correction="buffer"
    )
    if c.moe_latent_size is None:
        return Rows(tuple(around.rows()))
    latent = c.size("moe_latent_size")
    inner = FeedForward("ffn.experts.*", latent, wide, False, False, count, top, expert=True)
    rows: list[Row] = [row for row in around.rows() if ".experts." not in row.name]
    rows += inner.rows()
    rows += linear("ffn.latent.down", "ffn", latent, d, bias=bias)
    rows += linear("ffn.latent.up", "ffn", d, latent, bias=bias)
    return Rows(tuple(rows))
