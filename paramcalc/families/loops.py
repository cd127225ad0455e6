"""Decoders that run layers more than once: Dory (a middle section in loops), HRM (arXiv:2506.21734,
a fast and a slow module in turn)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, FeedForward
from paramcalc.blocks.rows import Repeated, Rows, vector
from paramcalc.families.config import SEES, Config, layers
from paramcalc.families.names import LLAMA, Names
from paramcalc.sight import Causal, Sight, Window

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
    "hrm_text": dict(
        vocab_size=151808,
        hidden_size=1536,
        intermediate_size=4096,
        num_hidden_layers=16,
        num_attention_heads=12,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=128,
        H_cycles=2,
        L_cycles=3,
        L_bp_cycles=None,
        embedding_scale=None,
        prefix_lm=True,
        num_layers_per_stack=None,
    ),
}

_BARE = {"attention": False, "ffn": False, "norm": "none", "norms_per_layer": 0}


def NAMES(c: Config) -> Names:  # noqa: N802
    """HRM has two lists of layers."""
    found = LLAMA | {"attention.gate": "self_attn.gate_proj"}
    if c.model_type == "dory":
        return found
    for letter in "LH":
        for part in ("attention.q", "attention.k", "attention.v", "attention.o", "attention.gate"):
            found[f"{letter}.{part}"] = _at(letter, found[part])
        for part in ("gate", "up", "down"):
            found[f"{letter}.ffn.{part}"] = _at(letter, f"mlp.{part}_proj")
    return found


def _at(letter: str, name: str) -> str:
    return f"model.{letter}_module.layers.{{i}}.{name} ^"


def read(c: Config) -> dict[str, Any]:
    """Each by its own function."""
    return dory(c) if c.model_type == "dory" else hrm(c)


def _parts(c: Config, prefix: str, sight: Sight) -> tuple[Attention, FeedForward]:
    d, heads, width = c.hidden_size, c.num_attention_heads, c.head_dim
    kv = c.get("num_key_value_heads") or heads
    return (
        Attention(
            f"{prefix}attention",
            d,
            heads,
            kv,
            width,
            width,
            sight,
            "qkvo" if c.attention_bias else "",
            gate="element",
        ),
        FeedForward(f"{prefix}ffn", d, c.intermediate_size, True, c.mlp_bias),
    )


def dory(c: Config) -> dict[str, Any]:
    """The layers between the first ``n_input_layers`` and the last ``n_output_layers`` run
    ``n_recurrent_loops`` times; no norm has weights, learned scales stand in their place."""
    n, d, ff = c.num_hidden_layers, c.hidden_size, c.intermediate_size
    start, middle, end = c.n_input_layers, c.get("n_recurrent_layers"), c.n_output_layers
    kinds = c.get("layer_types")
    if kinds and "mlp" in kinds:  # an older form counts attention and network apart
        n, start, end, kinds = n // 2, start // 2, end // 2, kinds[::2]
        middle = None if middle is None else middle // 2
    flags = [(i + 1) % 4 != 0 for i in range(n)]
    if kinds:
        listed = c.per_layer("layer_types", n, kinds)
        flags = [bool(c.choose("layer_types", kind, SEES)) for kind in listed]
    stop = n - end if middle is None else start + middle
    if not 0 <= start <= stop <= n:
        c.fail("n_recurrent_layers", middle, f"does not fit between {n} layers")
    every = c.num_attention_heads * c.head_dim
    scales = Rows(
        (
            vector("lambda_1", "residual", d),
            vector("lambda_2", "residual", d),
            vector("self_attn.sqk", "attention", every),
            vector("self_attn.s_gate", "attention", every),
            vector("mlp.suv_gate", "ffn", ff),
            vector("mlp.suv_up", "ffn", ff),
        )
    )
    own = c.recurrent_kv_cache_mode != "last_loop"
    each = []
    for i, flag in enumerate(flags):
        sight = Window(c.sliding_window) if flag and c.sliding_window else Causal()
        blocks: tuple[Any, ...] = (*_parts(c, "", sight), scales)
        if start <= i < stop:
            blocks = (Repeated(blocks, c.n_recurrent_loops, own),)
        each.append({"blocks": blocks})
    logits = Rows((vector("lm_head.logit_scale", "head", c.vocab_size),))
    return c.card(**_BARE, n_layers=n, n_kv_heads=None, outer=(logits,), layers=layers(each))


def hrm(c: Config) -> dict[str, Any]:
    """The slow module runs ``H_cycles`` times, and before each of those the fast one ``L_cycles``
    times; no norm has weights."""
    per = c.get("num_layers_per_stack") or c.num_hidden_layers
    slow = c.H_cycles
    groups = []
    for letter, times in (("L", slow * c.L_cycles), ("H", slow)):
        blocks = Repeated(_parts(c, f"{letter}.", Causal()), times)
        groups.append({"repeat": per, "blocks": (blocks,)})
    c.ignore(
        "L_bp_cycles", "embedding_scale", "prefix_lm", "num_hidden_layers", "num_key_value_heads"
    )
    start = Rows((vector("model.z_L_init", "residual", c.hidden_size),))
    return c.card(**_BARE, n_layers=2 * per, n_kv_heads=None, outer=(start,), layers=groups)
