"""Dory 1.0 (arXiv:2611.03998): a normalized transformer (nGPT, arXiv:2410.01131) whose middle
layers run in loops. Learned scales stand where other models' norms have weights."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, FeedForward
from paramcalc.blocks.again import Again
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import layers
from paramcalc.sight import Causal, Sight, Window

NAMES = LLAMA | {"attention.gate": "self_attn.gate_proj"}

TYPES: dict[str, dict[str, Any]] = {
    "dory": dict(
        vocab_size=131072,
        hidden_size=2560,
        intermediate_size=7168,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=4,
        head_dim=256,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        sliding_window=1024,
        layer_types=None,
        n_input_layers=8,
        n_recurrent_layers=None,
        n_output_layers=8,
        n_recurrent_loops=2,
        recurrent_kv_cache_mode="per_loop",
    ),
}


def read(c: Config) -> dict[str, Any]:
    """A layer that runs in loops keeps a cache for each, or only the last one's."""
    kinds, runs = sections(c)
    modes = {"per_loop": True, "last_loop": False}
    each_loop = c.choose("recurrent_kv_cache_mode", c.recurrent_kv_cache_mode, modes)
    sights = {"full_attention": Causal(), "sliding_attention": Window(c.size("sliding_window"))}
    each = []
    for kind, times in zip(kinds, runs, strict=True):
        blocks = layer(c, c.choose("layer_types", kind, sights))
        again = () if times == 1 else (Again(blocks, times, not each_loop),)
        each.append({"blocks": again or blocks})
    logits = Rows((vector("lm_head.logit_scale", "head", c.vocab_size),))
    return c.card(
        n_layers=len(kinds),
        attention=False,
        ffn=False,
        norm="none",
        layers=layers(each),
        outer=(logits,),
    )


def sections(c: Config) -> tuple[list[Any], list[int]]:
    """Return what each layer sees, and how often it runs: ``n_recurrent_loops`` times between the
    first ``n_input_layers`` and the last ``n_output_layers``.

    A release counts attention and network as two layers, and lists the latter as ``mlp``. Sections
    longer than the model overlap: a layer that two of them hold runs in both.
    """
    n, first, last = c.size("num_hidden_layers"), c.n_input_layers or 0, c.n_output_layers or 0
    middle, kinds = c.get("n_recurrent_layers"), c.get("layer_types")
    if isinstance(kinds, list) and "mlp" in kinds:
        n, first, last, kinds = n // 2, first // 2, last // 2, kinds[::2]
        middle = middle // 2 if type(middle) is int else middle
    if kinds is None:
        kinds = ["sliding_attention" if (i + 1) % 4 else "full_attention" for i in range(n)]
    rest, loops = n - first - last, c.size("n_recurrent_loops")
    if last > n or middle not in (None, rest):
        c.fail("n_recurrent_layers", middle, f"{first} before and {last} after do not make {n}")
    inside = range(first, first + rest)
    runs = [(i < first) + loops * (i in inside) + (i >= n - last) for i in range(n)]
    return c.per_layer("layer_types", n, kinds), runs


def layer(c: Config, sight: Sight) -> tuple[Any, ...]:
    """Return a layer's blocks: gated attention, a gated network, and the learned scales of Q and
    K, of both gates and of both steps along the stream."""
    d, ff = c.size("hidden_size"), c.size("intermediate_size")
    heads = c.size("num_attention_heads")
    width = c.head_dim or c.share("hidden_size", "num_attention_heads")
    scales = (
        vector("lambda_1", "residual", d),
        vector("lambda_2", "residual", d),
        vector("self_attn.sqk", "attention", heads * width),
        vector("self_attn.s_gate", "attention", heads * width),
        vector("mlp.suv_gate", "ffn", ff),
        vector("mlp.suv_up", "ffn", ff),
    )
    attention = Attention(
        "attention",
        d,
        heads,
        c.num_key_value_heads or heads,
        width,
        width,
        sight,
        "qkvo" if c.attention_bias else "",
        gate="element",
    )
    return (attention, FeedForward("ffn", d, ff, True, c.mlp_bias), Rows(scales))
