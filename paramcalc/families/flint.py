"""Mixtures of experts with windows in most layers and norms on the heads of Q and K.

Flint (RecursiveSI) has one sink a head; Beam gated attention and four norms; Kolibri 1 (Aleph
Alpha) four norms; Lara 4 Mini (Translated) delta nets in two of five layers.
"""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, MOE, Names
from paramcalc.families.qwen_next import delta
from paramcalc.families.stacks import Layers, both, stack

TYPES: dict[str, dict[str, Any]] = {
    "flint": dict(
        vocab_size=150144,
        hidden_size=2048,
        intermediate_size=6144,
        num_hidden_layers=49,
        num_attention_heads=32,
        num_key_value_heads=4,
        max_position_embeddings=262144,
        tie_word_embeddings=False,
        sliding_window=513,
        decoder_sparse_step=1,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=1024,
        num_experts_per_tok=6,
        num_experts=256,
        mlp_only_layers=None,
        layer_types=None,
        head_dim=128,
        attention_bias=False,
    ),
    "beam": dict(
        vocab_size=151936,
        hidden_size=5120,
        intermediate_size=20480,
        num_hidden_layers=52,
        num_attention_heads=48,
        num_key_value_heads=8,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        attention_bias=False,
        sliding_window=512,
        moe_intermediate_size=2560,
        num_experts_per_tok=8,
        num_experts=256,
        head_dim=128,
        layer_types=None,
        mlp_layer_types=None,
    ),
    "kolibri1": dict(
        vocab_size=128000,
        hidden_size=2560,
        num_hidden_layers=50,
        num_attention_heads=48,
        num_key_value_heads=4,
        max_position_embeddings=262144,
        tie_word_embeddings=False,
        sliding_window=513,
        moe_intermediate_size=512,
        num_experts_per_tok=6,
        num_experts=384,
        head_dim=128,
        shared_expert_intermediate_size=512,
        layer_types=None,
    ),
    "lara_mini": dict(
        vocab_size=151936,
        hidden_size=1024,
        num_hidden_layers=34,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        attention_bias=False,
        head_dim=128,
        linear_conv_kernel_dim=4,
        linear_key_head_dim=128,
        linear_value_head_dim=128,
        linear_num_key_heads=8,
        linear_num_value_heads=16,
        moe_intermediate_size=512,
        shared_expert_intermediate_size=512,
        num_experts_per_tok=4,
        num_experts=128,
        layer_types=None,
        sliding_window=512,
    ),
}

KEYS = {"num_experts": ("num_local_experts",)}

_SHARED = {f"ffn.shared.{x}": f"mlp.shared_expert.{x}_proj" for x in ("gate", "up", "down")}
_MIXER = "linear_attn"
_OWN: dict[str, dict[str, str]] = {
    "flint": _SHARED,
    "beam": {
        "attention.gate": "self_attn.gate_proj",
        "norm3": "pre_feedforward_layernorm",
        "norm4": "post_feedforward_layernorm",
    },
    "kolibri1": {"norm3": "post_self_attn_layernorm", "norm4": "post_mlp_layernorm"},
    "lara_mini": _SHARED
    | {
        **{f"mixer.{x}": f"{_MIXER}.in_proj_qkv" for x in "qkv"},
        "mixer.gate": f"{_MIXER}.in_proj_z",
        "mixer.beta": f"{_MIXER}.in_proj_b",
        "mixer.decay": f"{_MIXER}.in_proj_a",
        "mixer.conv": f"{_MIXER}.conv1d",
        "mixer.decay_shift": f"{_MIXER}.dt_bias !",
        "mixer.rates": f"{_MIXER}.A_log !",
        "mixer.norm": f"{_MIXER}.norm",
        "mixer.o": f"{_MIXER}.out_proj",
    },
}


def NAMES(c: Config) -> Names:
    """Llama's with stacked experts, and each type's own."""
    return LLAMA | MOE | _OWN[c.model_type]


def read(c: Config) -> dict[str, Any]:
    """The shared part, and each type's own function."""
    own, each = OWN[c.model_type](c)
    fields: dict[str, Any] = {
        "gated_ffn": True,
        "attention_bias": bool(c.get("attention_bias", False)),
        "qk_norm": "head",
        "n_experts": c.num_experts,
        "top_k": c.num_experts_per_tok,
        "d_expert": c.moe_intermediate_size,
        "d_shared": c.get("shared_expert_intermediate_size") or None,
    }
    return c.card(**(fields | own | stack(each)))


Parts = tuple[dict[str, Any], Layers]


def flint(c: Config) -> Parts:
    """The first two layers see everything and have no experts, unless the config lists others."""
    last = c.size("num_hidden_layers") - 1
    windows = c.windows(lambda i: i >= 2 and i % 4 != 1 and i != last)
    only, step = c.get("mlp_only_layers", [0, 1]), c.whole("decoder_sparse_step", 0)
    if not isinstance(only, list):
        c.fail("mlp_only_layers", only, "must list the numbers of layers")
    if not c.num_experts:
        only = list(range(last + 1))
    dense = c.dense(lambda i: i in only or step < 1 or (i + 1) % step != 0)
    return {"sinks": True}, both(windows, dense)


def beam(c: Config) -> Parts:
    """A gate as large as Q, and one value a head beside it; the last layer sees everything."""
    last = c.size("num_hidden_layers") - 1
    bias = vector("self_attn.gate_bias", "attention", c.num_attention_heads)
    fields = {
        "attention_gate": "element",
        "norms_per_layer": 4,
        "router_correction": "buffer",
        "blocks": (Rows((bias,)),),
    }
    return fields, both(c.windows(lambda i: (i + 1) % 6 != 0 and i != last), c.dense(3))


def kolibri(c: Config) -> Parts:
    """Every fifth layer sees everything; all have experts."""
    fields = {"norms_per_layer": 4, "router_correction": "buffer"}
    return fields, c.windows(lambda i: (i + 1) % 5 != 0)


LARA = ("linear", "sliding", "linear", "full", "sliding")


def lara(c: Config) -> Parts:
    """Delta nets, windows and full attention in turn; all have experts."""
    n = c.size("num_hidden_layers")
    fields: dict[str, dict[str, Any]] = {
        "linear_attention": delta(c),
        "sliding_attention": {"window": c.sliding_window},
        "full_attention": {},
    }
    stated = c.get("layer_types", [f"{LARA[i % len(LARA)]}_attention" for i in range(n)])
    listed = c.per_layer("layer_types", n, stated)
    return {}, [c.choose("layer_types", kind, fields) for kind in listed]


OWN = {"flint": flint, "beam": beam, "kolibri1": kolibri, "lara_mini": lara}
