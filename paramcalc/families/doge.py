"""Doge (SmallDoge/Doge-320M): attention with a mask that the values of earlier tokens decide, a
scale on either residual, and in some models experts of one neuron each, picked by product keys
(arXiv:2407.04153), beside the dense network."""

from __future__ import annotations

from math import isqrt
from typing import Any

from paramcalc.blocks import Attention, Block, FeedForward
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.sight import Sight, Sparse, Window

NAMES = LLAMA | {
    "attention.decay": "self_attn.A !",
    "attention.step": "self_attn.dt_proj",
    "ffn.router": "mlp.router_gate",
    "ffn.experts.*.up": "mlp.down_embed F",
    "ffn.experts.*.down": "mlp.up_embed TF",
}

TYPES: dict[str, dict[str, Any]] = {
    "doge": dict(
        vocab_size=32768,
        hidden_size=1024,
        intermediate_size=2048,
        num_hidden_layers=32,
        num_attention_heads=8,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
        sliding_window=None,
        keep_window_size=2048,
        is_moe=False,
        num_experts=16384,
        num_experts_per_tok=64,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Llama's network; attention and experts as blocks."""
    d = c.hidden_size
    names = ("input_residual", "post_attention_residual")
    blocks: list[Block] = [
        *attention(c),
        Rows(tuple(vector(name, "residual", d) for name in names)),
    ]
    c.ignore("num_experts", "num_experts_per_tok")
    if c.is_moe:
        blocks += experts(c)
    return c.card(
        gated_ffn=True,
        ffn_bias=c.mlp_bias,
        attention=False,
        norms_per_layer=2,
        blocks=tuple(blocks),
    )


def attention(c: Config) -> tuple[Block, ...]:
    """GQA that keeps the ``keep_window_size`` best positions: a KV head weighs each position by its
    value, through a matrix and a decay."""
    d, heads = c.hidden_size, c.size("num_attention_heads")
    kv = c.num_key_value_heads
    kv = heads if kv is None else c.size("num_key_value_heads")
    width = c.head_dim or c.share("hidden_size", "num_attention_heads")
    if heads % kv:
        c.fail("num_key_value_heads", kv, f"must divide num_attention_heads = {heads}")
    sight: Sight = Sparse(c.size("keep_window_size"))
    if c.get("sliding_window"):
        sight = Window(c.size("sliding_window"))
    biases = "qkvo" if c.attention_bias else ""
    chosen = (
        vector("attention.decay", "attention", kv),
        *linear("attention.step", "attention", kv, kv * width, bias=c.attention_bias),
    )
    return (
        Attention("attention", d, heads, kv, width, width, sight, biases, "head"),
        Rows(chosen),
    )


def experts(c: Config) -> tuple[Block, ...]:
    """Experts of one neuron: a row in, a row out. Two sets of sqrt(E) keys name them in pairs."""
    d, n, top_k = c.hidden_size, c.size("num_experts"), c.size("num_experts_per_tok")
    keys = isqrt(n)
    if top_k > keys * keys:
        c.fail("num_experts_per_tok", top_k, f"there are {keys * keys:,} pairs of keys", "lower it")
    return (
        Rows(tuple(linear("ffn.router", "router", 2 * keys, d))),
        FeedForward("ffn.experts.*", d, 1, False, False, n, top_k, expert=True),
    )
