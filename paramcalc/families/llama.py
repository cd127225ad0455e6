"""Llama, and the decoders that differ from it by defaults, by biases or by a norm.

Llama (arXiv:2302.13971): pre-norm with RMSNorm, SwiGLU, no biases unless the config says so.
"""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import stack
from paramcalc.ledger import Operation
from paramcalc.sight import Causal

TYPES: dict[str, dict[str, Any]] = {
    "llama": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
    ),
    "exaone": dict(
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
    ),
    "iquestcoder": dict(
        vocab_size=76800,
        hidden_size=5120,
        intermediate_size=27648,
        num_hidden_layers=80,
        num_attention_heads=40,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=128,
    ),
    "internlm3": dict(
        vocab_size=128512,
        hidden_size=4096,
        intermediate_size=10240,
        num_hidden_layers=48,
        num_attention_heads=32,
        num_key_value_heads=2,
        max_position_embeddings=32768,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=128,
    ),
    "hyperclovax": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
        use_post_norm=True,
    ),
    "granite": dict(
        vocab_size=32000,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
    ),
    "helium": dict(
        vocab_size=48000,
        hidden_size=2560,
        intermediate_size=7040,
        num_hidden_layers=24,
        num_attention_heads=20,
        num_key_value_heads=20,
        head_dim=128,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
    ),
    "ernie4_5": dict(
        vocab_size=103424,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=18,
        num_attention_heads=16,
        num_key_value_heads=2,
        max_position_embeddings=131072,
        tie_word_embeddings=True,
        head_dim=128,
        attention_bias=False,
    ),
    "seed_oss": dict(
        vocab_size=155136,
        hidden_size=4096,
        intermediate_size=27648,
        num_hidden_layers=64,
        num_attention_heads=80,
        num_key_value_heads=8,
        max_position_embeddings=524288,
        tie_word_embeddings=False,
        attention_bias=True,
        attention_out_bias=False,
        mlp_bias=False,
        head_dim=128,
    ),
    "smollm3": dict(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=11008,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=32768,
        use_sliding_window=False,
        sliding_window=None,
        no_rope_layers=None,
        no_rope_layer_interval=4,
        layer_types=None,
        attention_bias=False,
        mlp_bias=False,
        tie_word_embeddings=True,
    ),
    "arcee": dict(
        vocab_size=32000,
        hidden_size=2560,
        intermediate_size=18432,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
    ),
    "hunyuan_v1_dense": dict(
        vocab_size=290943,
        hidden_size=4096,
        intermediate_size=11008,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        head_dim=None,
    ),
    "diffllama": dict(
        vocab_size=32000,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        head_dim=None,
    ),
    "emu3_text_model": dict(
        vocab_size=184622,
        hidden_size=4096,
        intermediate_size=14336,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=9216,
        tie_word_embeddings=False,
    ),
}

WRAPS = {
    "emu3": {"as": "emu3_text_model"},
}

KEYS = {
    "attention_bias": ("qkv_bias", "use_bias"),
    "mlp_bias": ("bias", "use_bias"),
    "num_hidden_layers": ("num_layers", "n_layer"),
}


def NAMES(c: Config) -> Names:
    """Llama's; Hunyuan and HyperCLOVA name their extra norms otherwise."""
    return LLAMA | {
        "attention.q_norm": "self_attn.query_layernorm",
        "attention.k_norm": "self_attn.key_layernorm",
        "norm3": "post_norm1",
        "norm4": "post_norm2",
    }


def read(c: Config) -> dict[str, Any]:
    """What each type adds to Llama, or leaves out."""
    kind, bias = c.model_type, c.get("attention_bias", False)
    fields: dict[str, Any] = {"attention_bias": bool(bias)}
    if kind == "helium":  # the output matrix never has one
        fields |= square(c, "qkv" if bias else "")
    if kind == "seed_oss":
        out = "o" if c.attention_out_bias else ""
        fields["attention_bias"] = ("qkv" if bias else "") + out
    if kind == "hyperclovax" and c.use_post_norm:
        fields["norms_per_layer"] = 4
    if kind == "hunyuan_v1_dense":
        fields["qk_norm"] = "head"
    if kind == "diffllama":
        fields |= differential(c)
    if kind == "smollm3":
        fields |= windows(c)
    return c.card(gated_ffn=kind != "arcee", ffn_bias=bool(c.get("mlp_bias", False)), **fields)


def square(c: Config, biases: str) -> dict[str, Any]:
    """Helium's output matrix has hidden_size columns, whatever the heads are."""
    d, heads, width = c.hidden_size, c.num_attention_heads, c.size("head_dim")
    if heads * width == d:
        return {"attention_bias": biases}
    c.assumed.append("the output matrix is square, though the heads are not as wide as the model")
    kv = c.num_key_value_heads
    block = Attention("attention", d, heads, kv, width, width, Causal(), biases)
    rows = (row for row in block.rows() if row.name != "attention.o")
    own = Rows((*rows, *linear("attention.o", "attention", d, d)))
    return {"attention": False, "norms_per_layer": 2, "blocks": (own,)}


def windows(c: Config) -> dict[str, Any]:
    """SmolLM3's windows, where it uses any, are of the layers without rotary positions."""
    c.ignore("sliding_window", "layer_types", "no_rope_layers", "no_rope_layer_interval")
    if not c.use_sliding_window:
        return {}
    n, every = c.num_hidden_layers, c.size("no_rope_layer_interval")
    rotary = c.no_rope_layers or [(i + 1) % every for i in range(n)]
    rotary = c.per_layer("no_rope_layers", n, rotary)
    return stack(c.windows(lambda i: not rotary[i]))


def differential(c: Config) -> dict[str, Any]:
    """Differential attention (arXiv:2410.05258): four vectors a layer weigh two softmaxes, each of
    which weighs values twice as wide as a head."""
    width = c.head_dim or c.share("hidden_size", "num_attention_heads")
    work = Operation("attention.wide", "attention", 2 * c.num_attention_heads * width, Causal())
    names = [f"self_attn.lambda_{x}" for x in ("q1", "k1", "q2", "k2")]
    return {"blocks": (Rows((*(vector(name, "attention", width) for name in names), work)),)}
