"""DeBERTa (arXiv:2006.03654) and its second and third versions (arXiv:2111.09543).

With ``relative_attention``, content meets position through a table of relative distances: 2 k of
them, or of logarithmic buckets (``position_buckets``). Each term of ``pos_att_type`` (c2p, p2c)
turns the table into keys or queries by a matrix of its own, or by the content's
(``share_att_key``), once a sequence in the second version, and compares each token with them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks import Block, Norm
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows
from paramcalc.families.bert import (
    BERT,
    CLS,
    Kind,
    Prediction,
    bert_fields,
    bert_names,
    root,
)
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import Both, State

_NEW = Prediction(
    "lm_predictions.lm_head.dense",
    "lm_predictions.lm_head.LayerNorm",
    "lm_predictions.lm_head",
    "lm_predictions.lm_head.bias",
)

_DEBERTA: dict[str, Any] = dict(
    BERT,
    type_vocab_size=0,
    relative_attention=False,
    max_relative_positions=-1,
    position_biased_input=True,
    pos_att_type=None,
    legacy=True,
)

TYPES: dict[str, dict[str, Any]] = {
    "deberta": dict(_DEBERTA, vocab_size=50265),
    "deberta-v2": dict(
        _DEBERTA,
        vocab_size=128100,
        hidden_size=1536,
        num_hidden_layers=24,
        num_attention_heads=24,
        intermediate_size=6144,
        position_buckets=-1,
        norm_rel_ebd="none",
        share_att_key=False,
        conv_kernel_size=0,
        conv_groups=1,
    ),
}


def _kind(c: Config) -> Kind:
    """The head is BERT's, or, not ``legacy``, one that always reads the token table."""
    return Kind("deberta", CLS if c.legacy else _NEW, pooler="")


def NAMES(c: Config) -> Names:
    """The first version keeps Q, K and V in one matrix with two biases beside it."""
    at, own = root(c, _kind(c)), "attention.self"
    found = bert_names(c, _kind(c)) | {
        "embedding.project": f"{at}embeddings.embed_proj",
        "distances": f"{at}encoder.rel_embeddings",
        "distances.norm": f"{at}encoder.LayerNorm",
        "mixer.conv": f"{at}encoder.conv.conv",
        "mixer.norm": f"{at}encoder.conv.LayerNorm",
    }
    if c.model_type == "deberta-v2":
        names = {"q": "query_proj", "k": "key_proj", "v": "value_proj"}
        found |= {f"attention.{x}": f"{own}.{name}" for x, name in names.items()}
        return found | {"far.c2p": f"{own}.pos_key_proj", "far.p2c": f"{own}.pos_query_proj"}
    found |= {f"attention.{x}": f"{own}.in_proj" for x in "qkv"}
    found |= {"attention.q.bias": f"{own}.q_bias", "attention.v.bias": f"{own}.v_bias"}
    return found | {"far.c2p": f"{own}.pos_proj", "far.p2c": f"{own}.pos_q_proj"}


def read(c: Config) -> dict[str, Any]:
    """BERT with fewer tables and more distances."""
    c.strict = True
    second, d = c.model_type == "deberta-v2", c.hidden_size
    fields = bert_fields(c, _kind(c))
    outer: list[Block] = [*fields.pop("outer")]
    if c.arch.endswith("ForPreTraining") or not c.legacy:
        fields["tie_embeddings"] = True
    fields["attention_bias"] = "qkvo" if second else "qvo"
    if not c.position_biased_input:
        fields["positions"] = "none"
    width = c.get("embedding_size") or d
    if width != d:  # the norm stands after the projection
        fields |= {"d_embedding": width, "d_positions": width, "embedding_norm": False}
        outer.append(Norm("embedding_norm", (d,), True))
    fields.pop("blocks")
    if c.relative_attention:
        span = c.max_relative_positions
        span = span if span >= 1 else c.max_position_embeddings
        if second and c.position_buckets > 0:
            span = c.position_buckets
        outer.append(Rows((Tensor("distances", "position", (2 * span, d), "lookup"),)))
        fields["blocks"] = (Rows(tuple(distances(c, span))),)
    if second and "layer_norm" in str(c.norm_rel_ebd):
        outer.append(Norm("distances.norm", (d,), True))
    if second and c.conv_kernel_size > 0:
        outer.append(Rows(tuple(convolution(c))))
    c.leave_out("talking_head", "talking heads")
    c.ignore("max_relative_positions", "pooler_hidden_size", "conv_groups", "share_att_key")
    return c.card(**fields, outer=tuple(outer))


def distances(c: Config, span: int) -> Iterator[Row]:
    """Yield the matrices for the distances and what they are compared with.

    The second version's run over the whole table, whatever the length; the first's over twice as
    many distances as there are tokens, up to its table.
    """
    d, second = c.hidden_size, c.model_type == "deberta-v2"
    terms = c.get("pos_att_type") or []
    terms = [x.strip() for x in terms.lower().split("|")] if isinstance(terms, str) else list(terms)
    shared = second and c.share_att_key
    for term in ("c2p", "p2c"):
        if term in terms or shared:
            bias = second or term == "p2c"
            rows = linear(f"far.{term}", "attention", d, d, bias=bias and not shared)
            for row in rows:
                if row.use == "matmul" and second:
                    row = row._replace(runs=2 * span, stream="sequence")
                elif row.use == "matmul":
                    row = row._replace(runs=2)
                yield row._replace(copies=0, active=0) if shared else row
        if term in terms:
            work = 2 * d * 2 * span if second else 2 * d * 2
            yield Operation(f"far.{term}.scores", "attention", work, State() if second else Both())


def convolution(c: Config) -> Iterator[Row]:
    """Yield a convolution over the tokens beside the first layer, and its norm."""
    d, groups = c.hidden_size, c.conv_groups
    if groups < 1 or d % groups:
        c.fail("conv_groups", groups, f"must divide hidden_size = {d}")
    yield Tensor("mixer.conv", "mixer", (d, d // groups, c.conv_kernel_size), "conv")
    yield Tensor("mixer.conv.bias", "mixer", (d,), "bias")
    yield from Norm("mixer.norm", (d,), True).rows()
