"""ALBERT (arXiv:1909.11942): BERT with a narrow embedding, and one layer's weights run L times.

The layers may be of several groups, one after the other, and a group may hold several layers that
always run together.
"""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, FeedForward, Norm
from paramcalc.blocks.rows import Rows
from paramcalc.families.bert import (
    BERT,
    Kind,
    Prediction,
    bert_fields,
    bert_names,
    head_dim,
    narrow,
    root,
)
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Cache, Row, Tensor
from paramcalc.sight import Both

_KIND = Kind(
    "albert",
    Prediction(
        "predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions.bias"
    ),
    norm1="attention.LayerNorm",
    norm2="full_layer_layer_norm",
    pooler="pooler",
)

TYPES: dict[str, dict[str, Any]] = {
    "albert": dict(
        BERT,
        vocab_size=30000,
        embedding_size=128,
        hidden_size=4096,
        num_attention_heads=64,
        intermediate_size=16384,
        num_hidden_groups=1,
        inner_group_num=1,
    ),
}


def NAMES(c: Config) -> Names:
    """A layer's number is its group's; one group of one layer is the rule."""
    at = f"{root(c, _KIND)}encoder"
    layer = "albert_layers." + ("0" if c.num_hidden_groups == c.inner_group_num == 1 else "{i}")
    attention = {"q": "query", "k": "key", "v": "value", "o": "dense"}
    own = {
        **{f"attention.{x}": f"attention.{name}" for x, name in attention.items()},
        "norm1": _KIND.norm1,
        "norm2": _KIND.norm2,
        "ffn.up": "ffn",
        "ffn.down": "ffn_output",
    }
    return bert_names(c, _KIND) | {
        "layers": f"{at}.albert_layer_groups",
        "embedding.project": f"{at}.embedding_hidden_mapping_in",
        "pairs": "sop_classifier.classifier",
        **{row: f"{layer}.{name}" for row, name in own.items()},
    }


def read(c: Config) -> dict[str, Any]:
    """Shared layers by the card's fields, or, of several kinds, spelled out."""
    c.strict = True
    fields = bert_fields(c, _KIND) | narrow(c, c.embedding_size) | {"share_layers": True}
    groups, inner = c.size("num_hidden_groups"), c.size("inner_group_num")
    if groups * inner > 1:
        fields |= {"attention": False, "ffn": False, "norms_per_layer": 0}
        fields["blocks"] = (several(c, groups, inner),)
    return c.card(**fields)


def several(c: Config, groups: int, inner: int) -> Rows:
    """One step of the L: ``inner`` layers run of the ``groups`` x ``inner`` that are stored."""
    d, heads, width = c.hidden_size, c.num_attention_heads, head_dim(c)
    layer = (
        Norm("norm1", (d,), True),
        Norm("norm2", (d,), True),
        Attention("attention", d, heads, heads, width, width, Both(), "qkvo", cached=False),
        FeedForward("ffn", d, c.intermediate_size, False, True),
    )
    used = min(groups, c.num_hidden_layers) * inner
    rows: list[Row] = []
    for row in (row for block in layer for row in block.rows()):
        assert not isinstance(row, Cache)
        if isinstance(row, Tensor):
            rows.append(row._replace(copies=groups * inner, active=used, runs=inner))
        else:
            rows.append(row._replace(copies=inner))
    return Rows(tuple(rows))
