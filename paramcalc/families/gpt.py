"""GPT-2's kin: SantaCoder and StarCoder (arXiv:2305.06161, one KV head), GPT-Neo, GPT-J, CodeGen
(arXiv:2203.13474), the first GPT (Radford et al. 2018) and CTRL (arXiv:1909.05858)."""

from __future__ import annotations

from typing import Any

from paramcalc.families.bart import unfed
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.stacks import Layers, stack

TYPES: dict[str, dict[str, Any]] = {
    "gpt2": dict(
        vocab_size=50257,
        add_cross_attention=False,
        tie_word_embeddings=True,
        hidden_size=768,
        max_position_embeddings=1024,
        num_attention_heads=12,
        num_hidden_layers=12,
        intermediate_size=None,
    ),
    "gpt_bigcode": dict(
        vocab_size=50257,
        scale_attention_softmax_in_fp32=True,
        multi_query=True,
        add_cross_attention=False,
        tie_word_embeddings=True,
        hidden_size=768,
        max_position_embeddings=1024,
        num_attention_heads=12,
        num_hidden_layers=12,
        intermediate_size=None,
    ),
    "gpt_neo": dict(
        vocab_size=50257,
        max_position_embeddings=2048,
        hidden_size=2048,
        attention_types=None,
        intermediate_size=None,
        window_size=256,
        tie_word_embeddings=True,
        num_attention_heads=16,
        num_hidden_layers=24,
    ),
    "gptj": dict(
        vocab_size=50400,
        tie_word_embeddings=False,
        max_position_embeddings=2048,
        hidden_size=4096,
        num_attention_heads=16,
        num_hidden_layers=28,
        intermediate_size=None,
    ),
    "codegen": dict(
        vocab_size=50400,
        tie_word_embeddings=False,
        max_position_embeddings=2048,
        hidden_size=4096,
        num_attention_heads=16,
        num_hidden_layers=28,
        intermediate_size=None,
    ),
    "openai-gpt": dict(
        vocab_size=40478,
        afn="gelu",
        tie_word_embeddings=True,
        max_position_embeddings=512,
        hidden_size=768,
        num_attention_heads=12,
        num_hidden_layers=12,
    ),
    "ctrl": dict(
        vocab_size=246534,
        tie_word_embeddings=True,
        max_position_embeddings=256,
        hidden_size=1280,
        num_attention_heads=16,
        num_hidden_layers=48,
        intermediate_size=8192,
    ),
}

KEYS = {
    "num_hidden_layers": ("n_layer", "num_layers"),
    "num_attention_heads": ("n_head", "num_heads"),
    "intermediate_size": ("n_inner", "dff"),
}

_GPT2 = {
    "layers": "transformer.h",
    "embedding": "transformer.wte",
    "positions": "transformer.wpe",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "norm1": "ln_1",
    "norm2": "ln_2",
    **{f"attention.{x}": "attn.c_attn T" for x in "qkv"},
    "attention.o": "attn.c_proj T",
    "ffn.up": "mlp.c_fc T",
    "ffn.down": "mlp.c_proj T",
    "cross_norm": "ln_cross_attn",
    "cross_attention.q": "crossattention.q_attn T",
    "cross_attention.k": "crossattention.c_attn T",
    "cross_attention.v": "crossattention.c_attn T",
    "cross_attention.o": "crossattention.c_proj T",
}
_PLAIN = {key: name.removesuffix(" T") for key, name in _GPT2.items()}
_OUT = {"attention.o": "attn.out_proj", "ffn.up": "mlp.fc_in", "ffn.down": "mlp.fc_out"}
_CTRL = {"q": "Wq", "k": "Wk", "v": "Wv", "o": "dense"}
_OWN: dict[str, dict[str, str]] = {
    "gpt2": _GPT2,
    "openai-gpt": _GPT2
    | {"embedding": "transformer.tokens_embed", "positions": "transformer.positions_embed"},
    "gpt_bigcode": _PLAIN,
    "gpt_neo": _PLAIN
    | {f"attention.{x}": f"attn.attention.{x}_proj" for x in "qkv"}
    | {"attention.o": "attn.attention.out_proj"},
    "gptj": _PLAIN | {f"attention.{x}": f"attn.{x}_proj" for x in "qkv"} | _OUT,
    "codegen": _PLAIN | {f"attention.{x}": "attn.qkv_proj" for x in "qkv"} | _OUT,
    "ctrl": _PLAIN
    | {f"attention.{x}": f"multi_head_attention.{name}" for x, name in _CTRL.items()}
    | {
        "embedding": "transformer.w",
        "ffn.up": "ffn.0",
        "ffn.down": "ffn.2",
        "norm1": "layernorm1",
        "norm2": "layernorm2",
        "final_norm": "transformer.layernorm",
    },
}


def NAMES(c: Config) -> Names:
    """GPT-2 and GPT store matrices as (in, out); the others as (out, in)."""
    return _OWN[c.model_type]


def read(c: Config) -> dict[str, Any]:
    """A plain network of 4 d unless the config says otherwise, LayerNorm with a bias."""
    kind = c.model_type
    c.ignore("num_key_value_heads", "scale_attention_softmax_in_fp32", "attention_layers", "afn")
    d_ff = c.get("intermediate_size") or None
    fields: dict[str, Any] = {"head_dim": None, "n_kv_heads": None, "d_ff": d_ff}
    if kind in ("gpt2", "gpt_bigcode") and c.add_cross_attention:
        if kind == "gpt_bigcode" and c.multi_query:
            c.fail("add_cross_attention", True, "needs multi_query: false")
        fields |= {"blocks": (unfed(c, "qkvo", "num_attention_heads"),), "norms_per_layer": 2}
    if kind == "openai-gpt":  # always four times the width, and no norm at the end
        fields |= {"d_ff": None, "final_norm": False}
    if kind == "gpt_bigcode":
        fields["n_kv_heads"] = 1 if c.multi_query else None
    if kind == "gpt_neo":
        fields |= {"attention_bias": "o", **stack(local(c))}
    if kind in ("gptj", "codegen"):  # one norm before both halves, rotary positions
        fields |= {"attention_bias": "", "positions": "none", "norms_per_layer": 1}
        fields["head_bias"] = True
    if kind == "ctrl":  # sinusoidal positions are not stored
        fields |= {"positions": "none", "head_bias": True}
    return c.card(gpt2=True, **fields)


def local(c: Config) -> Layers:
    """GPT-Neo's layers: ``attention_types`` pairs a pattern of global and local with a number."""
    n = c.size("num_hidden_layers")
    stated = c.get("attention_types") or [[["global", "local"], n // 2]]
    kinds: list[str] = []
    for entry in stated if isinstance(stated, list) else [stated]:
        try:
            pattern, times = entry
            kinds += [str(kind) for kind in pattern] * min(times, n + 1)
        except (TypeError, ValueError):
            c.fail("attention_types", entry, "must pair a list of kinds with a number")
    words = {"global": {}, "local": {"window": c.window_size}}
    listed = c.per_layer("attention_types", n, kinds)
    return [dict(c.choose("attention_types", kind, words)) for kind in listed]
