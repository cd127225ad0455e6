"""Decoders with a turn of their own: BitNet, nanochat, Moshi's text model, Nemotron, Jais 2,
StableLM, StarCoder 2, EXAONE 4."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, matrix, scale
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import stack

TYPES: dict[str, dict[str, Any]] = {
    "bitnet": dict(
        vocab_size=128256,
        hidden_size=2560,
        intermediate_size=6912,
        num_hidden_layers=30,
        num_attention_heads=20,
        num_key_value_heads=5,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
    ),
    "nanochat": dict(
        vocab_size=50304,
        hidden_size=768,
        intermediate_size=8192,
        num_hidden_layers=12,
        num_attention_heads=6,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        attention_bias=False,
        tie_word_embeddings=False,
    ),
    "moshi": dict(
        vocab_size=32000,
        hidden_size=4096,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        audio_vocab_size=None,
        max_position_embeddings=3000,
        head_dim=None,
        sliding_window=3000,
        num_codebooks=8,
        tie_word_embeddings=False,
        audio_encoder_config=None,
        depth_decoder_config=None,
        intermediate_size=22528,
    ),
    "nemotron": dict(
        vocab_size=256000,
        hidden_size=6144,
        intermediate_size=24576,
        num_hidden_layers=32,
        num_attention_heads=48,
        head_dim=None,
        num_key_value_heads=None,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
    ),
    "jais2": dict(
        vocab_size=150272,
        hidden_size=3328,
        intermediate_size=26624,
        num_hidden_layers=32,
        num_attention_heads=26,
        num_key_value_heads=None,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        attention_bias=True,
        mlp_bias=True,
        head_dim=None,
    ),
    "stablelm": dict(
        vocab_size=50304,
        intermediate_size=6912,
        hidden_size=2560,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        use_qkv_bias=False,
        qk_layernorm=False,
        use_parallel_residual=False,
    ),
    "starcoder2": dict(
        vocab_size=49152,
        hidden_size=3072,
        intermediate_size=12288,
        num_hidden_layers=30,
        num_attention_heads=24,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        sliding_window=None,
        use_bias=True,
        tie_word_embeddings=True,
    ),
    "exaone4": dict(
        vocab_size=102400,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=32,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        sliding_window=4096,
        sliding_window_pattern=4,
    ),
}

KEYS = {"intermediate_size": ("ffn_dim",)}


def NAMES(c: Config) -> Names:
    """Llama's, with the names that each type changes."""
    own: dict[str, dict[str, str]] = {
        "nanochat": {"ffn.up": "mlp.fc1", "ffn.down": "mlp.fc2"},
        "moshi": {
            **{f"attention.{x}": f"self_attn.{x}_proj.linear" for x in "qkvo"},
            "ffn.gate": "mlp.fc1",
            "ffn.up": "mlp.fc1",
            "ffn.down": "mlp.fc2",
        },
        "starcoder2": {"ffn.up": "mlp.c_fc", "ffn.down": "mlp.c_proj"},
        "exaone4": {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"},
        "stablelm": {
            "attention.q_norm": "self_attn.q_layernorm.norms.{e} S",
            "attention.k_norm": "self_attn.k_layernorm.norms.{e} S",
        },
    }
    return LLAMA | own.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """Each by its own function."""
    return READERS[c.model_type](c)


def bitnet(c: Config) -> dict[str, Any]:
    """BitNet b1.58 (arXiv:2504.12285): a norm more before each output matrix."""
    d = c.hidden_size
    norms = (
        scale("self_attn.attn_sub_norm.weight", d),
        scale("mlp.ffn_sub_norm.weight", c.intermediate_size),
    )
    return c.card(gated_ffn=True, attention_bias=c.attention_bias, blocks=(Rows(norms),))


def nanochat(c: Config) -> dict[str, Any]:
    """nanochat: a plain network, and no norm has weights."""
    return c.card(attention_bias=c.attention_bias, norm="none")


def moshi(c: Config) -> dict[str, Any]:
    """Moshi's text model (arXiv:2410.00037): half of ``ffn_dim`` gates the other half, and the
    embedding has one row more than the head, for silence."""
    d, vocab = c.hidden_size, c.vocab_size
    c.leave_out("audio_encoder_config", "audio encoder")
    c.leave_out("depth_decoder_config", "depth decoder")
    c.ignore("num_codebooks", "audio_vocab_size", "tie_word_embeddings")
    return c.card(
        d_ff=c.intermediate_size // 2,
        gated_ffn=True,
        window=c.get("sliding_window", 0) or None,
        vocab_size=vocab + 1,
        head="none",
        tie_embeddings=False,
        outer=(Rows((matrix("lm_head.weight", "head", vocab, d, "vocab"),)),),
    )


def nemotron(c: Config) -> dict[str, Any]:
    """Nemotron-4 (arXiv:2402.16819): squared ReLU, LayerNorm with a bias."""
    return c.card(
        attention_bias=c.attention_bias, ffn_bias=c.mlp_bias, norm="layer", norm_bias=True
    )


def stablelm(c: Config) -> dict[str, Any]:
    """StableLM 2 (arXiv:2402.17834): LayerNorm with a bias; the 12B runs attention and network
    side by side after one norm, and norms every head."""
    return c.card(
        head_dim=None,
        gated_ffn=True,
        attention_bias="qkv" if c.use_qkv_bias else "",
        norm="layer",
        norm_bias=True,
        norms_per_layer=1 if c.use_parallel_residual else 2,
        qk_norm="per_head" if c.qk_layernorm else "none",
    )


def starcoder2(c: Config) -> dict[str, Any]:
    """StarCoder 2 (arXiv:2402.19173): a plain network, biases everywhere or nowhere."""
    return c.card(
        attention_bias=c.use_bias,
        ffn_bias=c.use_bias,
        norm="layer",
        window=c.get("sliding_window", 0) or None,
    )


def exaone4(c: Config) -> dict[str, Any]:
    """EXAONE 4 (arXiv:2507.11407): norms after attention and network, and on the heads of Q and K;
    windows in three layers of four."""
    period = c.sliding_window_pattern if c.get("sliding_window", 0) else 0
    if isinstance(period, str):  # "LLLG": a letter a layer
        letters = period
        sliding = [letters[i % len(letters)] == "L" for i in range(c.num_hidden_layers)]
    else:
        sliding = [bool(period) and (i + 1) % period != 0 for i in range(c.num_hidden_layers)]
    return c.card(gated_ffn=True, qk_norm="head", **stack(c.windows(lambda i: sliding[i])))


READERS = {
    "bitnet": bitnet,
    "nanochat": nanochat,
    "moshi": moshi,
    "nemotron": nemotron,
    "jais2": nemotron,
    "stablelm": stablelm,
    "starcoder2": starcoder2,
    "exaone4": exaone4,
}
