"""Mamba (arXiv:2312.00752), Falcon Mamba (arXiv:2410.05355), whose norms inside the mixer have no
weights, and Mamba 2 (arXiv:2405.21060): one mixer and one norm a layer, no feed-forward part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.blocks.mamba import Mamba, Mamba2
from paramcalc.errors import ConfigError
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.numbers import ceil_div
from paramcalc.spelling import shown

MAMBA = {
    "mixer.in": "in_proj",
    "mixer.conv": "conv1d",
    "mixer.x": "x_proj",
    "mixer.dt": "dt_proj",
    "mixer.dt_shift": "dt_bias !",
    "mixer.rates": "A_log !",
    "mixer.skip": "D !",
    "mixer.norm": "norm",
    "mixer.out": "out_proj",
}
"""A mixer's tensors, under its own name."""


def mixer_names(place: str) -> dict[str, str]:
    """Return the names of a Mamba mixer that stands at ``place``."""
    return {row: f"{place}.{path}" for row, path in MAMBA.items()}


NAMES: Names = mixer_names("mixer") | {
    "layers": "backbone.layers",
    "embedding": "backbone.embeddings",
    "final_norm": "backbone.norm_f",
    "head": "lm_head",
    "norm1": "norm",
}

_MAMBA = dict(
    vocab_size=50280,
    hidden_size=768,
    state_size=16,
    num_hidden_layers=32,
    expand=2,
    conv_kernel=4,
    use_bias=False,
    use_conv_bias=True,
    time_step_rank=None,
    tie_word_embeddings=True,
)

TYPES: dict[str, dict[str, Any]] = {
    "mamba": dict(_MAMBA),
    "falcon_mamba": dict(_MAMBA),
    "mamba2": dict(
        vocab_size=32768,
        hidden_size=4096,
        num_heads=128,
        head_dim=64,
        state_size=128,
        num_hidden_layers=64,
        expand=2,
        conv_kernel=4,
        n_groups=8,
        use_bias=False,
        use_conv_bias=True,
        tie_word_embeddings=False,
    ),
}


_SSM = {
    "d_state": "state_size",
    "d_conv": "conv_kernel",
    "expand": "expand",
    "dt_rank": "time_step_rank",
    "conv_bias": "use_conv_bias",
    "bias": "use_bias",
    "headdim": "head_dim",
    "ngroups": "n_groups",
}


def older(data: Mapping[str, Any], model_type: str, where: str) -> Mapping[str, Any]:
    """Return the keys of a configuration in the first release's own layout under today's names.

    Its vocabulary is rounded up to ``pad_vocab_size_multiple`` (8), its head is tied unless it says
    not, and Mamba 2 has a state of 128 and one group where ``ssm_cfg`` says nothing
    (github.com/state-spaces/mamba: mamba_ssm/models/config_mamba.py, mixer_seq_simple.py). Raises
    ``ConfigError`` for what the types here have not: attention, a feed-forward part, LayerNorm.
    """
    if "ssm_cfg" not in data:
        return data
    ssm = data["ssm_cfg"] or {}
    if not isinstance(ssm, dict):
        raise ConfigError(f"{where}ssm_cfg = {shown(ssm)}: must be a section; change it")
    if (ssm.get("layer") == "Mamba2") != (model_type == "mamba2"):
        other = "mamba2" if ssm.get("layer") == "Mamba2" else "mamba"
        raise ConfigError(f"{where}ssm_cfg.layer: is not {model_type}'s; give --like {other}")
    for key, none in (("attn_layer_idx", []), ("d_intermediate", 0), ("rms_norm", True)):
        if data.get(key, none) != none:
            value = shown(data[key])
            raise ConfigError(f"{where}{key} = {value}: is not read; only {shown(none)} is")
    found = {k: v for k, v in data.items() if k not in ("ssm_cfg", "attn_cfg", "tie_embeddings")}
    if model_type == "mamba2":
        ssm = {"d_state": 128, "ngroups": 1, "headdim": 64, **ssm}
        width = found.get("hidden_size", found.get("d_model"))
        sizes = ssm.get("expand", 2), width, ssm["headdim"]
        if all(type(size) is int and size > 0 for size in sizes):
            found.setdefault("num_heads", sizes[0] * sizes[1] // sizes[2])
    for key, value in ssm.items():
        if key != "layer":
            found.setdefault(_SSM.get(key, f"ssm_cfg.{key}"), value)
    vocab, step = found.get("vocab_size"), found.get("pad_vocab_size_multiple", 8)
    if type(vocab) is int and type(step) is int and step > 0:
        found["vocab_size"] = ceil_div(vocab, step) * step
    found.setdefault("tie_word_embeddings", data.get("tie_embeddings", True))
    return found


def read(c: Config) -> dict[str, Any]:
    """The inner width is the stream's times ``expand``; Mamba's may be stated, Mamba 2's not."""
    c.strict = True
    c.ignore("intermediate_size", "time_step_rank", "residual_in_fp32", "rescale_prenorm_residual")
    c.ignore("use_mambapy", "use_falcon_mambapy", "use_associative_scan", "chunk_size")
    c.ignore("time_step_limit", "time_step_scale", "rms_norm", "pad_vocab_size_multiple", "d_inner")
    inner = c.expand * c.hidden_size
    if c.model_type == "mamba2":
        mixer: Mamba | Mamba2 = mamba2(c, inner)
    else:
        mixer = mamba(c, c.size("intermediate_size", inner))
    return c.card(
        n_heads=None,
        head_dim=None,
        d_ff=None,
        attention=False,
        ffn=False,
        norms_per_layer=1,
        blocks=(mixer,),
    )


def mamba(c: Config, inner: int) -> Mamba:
    """Return Mamba's mixer."""
    return Mamba(
        "mixer",
        c.hidden_size,
        inner,
        c.state_size,
        rank(c, "time_step_rank"),
        c.conv_kernel,
        c.use_conv_bias,
        c.use_bias,
    )


def mamba2(c: Config, inner: int) -> Mamba2:
    """Return Mamba 2's mixer. Raises ``ConfigError`` where the heads do not fill its width."""
    heads, width = c.num_heads, c.head_dim
    if heads * width != inner:
        c.fail(
            "num_heads", heads, f"times head_dim = {width} must be expand x hidden_size = {inner}"
        )
    return Mamba2(
        "mixer",
        c.hidden_size,
        heads,
        width,
        groups(c, "n_groups", heads),
        c.state_size,
        c.conv_kernel,
        c.use_conv_bias,
        c.use_bias,
        c.use_bias,
    )


def rank(c: Config, key: str) -> int:
    """The width of the step's bottleneck: a sixteenth of the stream, rounded up, if not stated."""
    stated = c.get(key, "auto")
    if stated == "auto":
        return int(-(-c.hidden_size // 16))
    if type(stated) is not int or stated < 1:
        c.fail(key, stated, 'must be a whole number, at least 1, or "auto"')
    return int(stated)


def groups(c: Config, key: str, heads: int) -> int:
    """How many groups share coefficients. Raises ``ConfigError`` where heads are left over."""
    count = getattr(c, key)
    if type(count) is not int or count < 1 or heads % count:
        c.fail(key, count, f"must divide the {heads} heads")
    return int(count)
