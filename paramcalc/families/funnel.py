"""Funnel-Transformer (arXiv:2006.03236): each block halves the sequence, a short decoder restores
it; positions are relative, with vectors added to the queries."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, matrix, scale, vector
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Operation, Role, Row, Tensor
from paramcalc.sight import Both, State

_LAYER = "funnel.encoder.blocks"

_TABLE = {
    "layers": "funnel.decoder.layers",
    "embedding": "funnel.embeddings.word_embeddings",
    "embedding_norm": "funnel.embeddings.layer_norm",
    "head": "lm_head",
    "head.bias": "lm_head.bias",
}

TYPES: dict[str, dict[str, Any]] = {
    "funnel": dict(
        vocab_size=30522,
        block_sizes=[4, 4, 4],
        block_repeats=None,
        num_decoder_layers=2,
        initializer_std=None,
        pooling_type="mean",
        attention_type="relative_shift",
        separate_cls=True,
        truncate_seq=True,
        pool_q_only=True,
        tie_word_embeddings=True,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        head_dim=64,
    ),
}

KEYS = {
    "num_attention_heads": ("n_head",),
    "intermediate_size": ("d_inner",),
    "head_dim": ("d_head",),
}


def NAMES(c: Config) -> Names:
    """A block's layers are numbered within it; here {i} runs over all."""
    found = dict(_TABLE)
    for number, _ in enumerate(c.block_sizes):
        for row in _rows(c, "", 1):
            found[f"block{number}.{row.name}"] = f"{_LAYER}.{number}.{{i}}.{row.name} !^"
    return found


_ENCODERS = ("BaseModel", "ForSequenceClassification", "ForMultipleChoice")
"""Classes without the decoder, which brings a sequence back to its length."""


def read(c: Config) -> dict[str, Any]:
    """Layers of a block run ``block_repeats`` times and are stored once.

    FLOPs are those of a sequence that keeps its length; each block after the first halves it, so
    the class computes less.
    """
    c.strict = True
    sizes = c.get("block_sizes", [])
    repeats = c.per_layer("block_repeats", len(sizes), c.get("block_repeats") or 1)
    for key, values in (("block_sizes", sizes), ("block_repeats", repeats)):
        if not values or not all(type(value) is int and value > 0 for value in values):
            c.fail(key, values, "must be whole numbers of at least 1")
    layers: list[dict[str, Any]] = []
    for number, (size, times) in enumerate(zip(sizes, repeats, strict=True)):
        rows = _rows(c, f"block{number}.", times)
        layers.append({"repeat": size, "blocks": (Rows(tuple(rows)),)})
    decoders = 0 if c.arch.endswith(_ENCODERS) else c.num_decoder_layers
    if decoders:
        layers.append({"repeat": decoders, "blocks": (Rows(tuple(_rows(c, "", 1))),)})
    c.ignore("attention_type", "pool_q_only", "pooling_type", "separate_cls", "truncate_seq")
    c.ignore("num_hidden_layers", "initializer_std")
    return c.card(
        n_layers=sum(sizes) + decoders,
        n_kv_heads=None,
        causal=False,
        attention=False,
        ffn=False,
        norm="layer",
        norms_per_layer=0,
        embedding_norm=True,
        final_norm=False,
        head_bias=True,
        layers=layers,
    )


def _rows(c: Config, at: str, times: int) -> list[Row]:
    d, heads, width, ff = c.hidden_size, c.num_attention_heads, c.head_dim, c.intermediate_size
    every, own = heads * width, "attention"
    rows: list[Row] = [
        vector(f"{own}.{x}", "attention", heads, width)
        for x in ("r_w_bias", "r_r_bias", "r_s_bias")
    ]
    rows += [
        Tensor(f"{own}.r_kernel", "attention", (d, heads, width), "matmul", runs=2),
        vector(f"{own}.seg_embed", "attention", 2, heads, width),
        matrix(f"{own}.q_head.weight", "attention", every, d),
    ]
    for name, out, into, role in (
        (f"{own}.k_head", every, d, "attention"),
        (f"{own}.v_head", every, d, "attention"),
        (f"{own}.post_proj", d, every, "attention"),
        ("ffn.linear_1", ff, d, "ffn"),
        ("ffn.linear_2", d, ff, "ffn"),
    ):
        part: Role = "attention" if role == "attention" else "ffn"
        rows += [matrix(f"{name}.weight", part, out, into), vector(f"{name}.bias", part, out)]
    for name in (f"{own}.layer_norm", "ffn.layer_norm"):
        rows += [scale(f"{name}.weight", d), vector(f"{name}.bias", "norm", d)]
    rows += [
        Operation(f"{own}.scores", "attention", 2 * every, Both()),
        Operation(f"{own}.values", "attention", 2 * every, Both()),
        Operation(f"{own}.distances", "attention", 4 * every, Both()),  # 2 n of them
        Operation(f"{own}.segments", "attention", 4 * every, State()),  # the same, or another
    ]
    if not at:
        return rows
    return [_placed(row._replace(name=at + row.name), times) for row in rows]


def _placed(row: Row, times: int) -> Row:
    """A row of a block that runs several times."""
    if isinstance(row, Tensor):
        return row._replace(runs=row.runs * times)
    assert isinstance(row, Operation)
    return row._replace(copies=times)
