"""MobileBERT (arXiv:2004.02984): each layer squeezes the stream through a bottleneck, runs
attention and several networks there, and widens it again; the embedding joins three neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks import Pooler
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle, scale, vector
from paramcalc.families.bert import is_bare
from paramcalc.families.config import Config
from paramcalc.families.heads import pools
from paramcalc.ledger import Operation, Role, Row, Tensor
from paramcalc.sight import Both

_OWN = "mobilebert.embeddings"

NAMES = {
    "layers": "mobilebert.encoder.layer",
    "embedding": f"{_OWN}.word_embeddings",
    "positions": f"{_OWN}.position_embeddings",
    "token_types": f"{_OWN}.token_type_embeddings",
    "pooler": "mobilebert.pooler.dense",
    "cls.seq_relationship": "cls.seq_relationship",
}

TYPES: dict[str, dict[str, Any]] = {
    "mobilebert": dict(
        vocab_size=30522,
        hidden_size=512,
        num_hidden_layers=24,
        num_attention_heads=4,
        intermediate_size=512,
        max_position_embeddings=512,
        type_vocab_size=2,
        embedding_size=128,
        trigram_input=True,
        use_bottleneck=True,
        intra_bottleneck_size=128,
        use_bottleneck_attention=False,
        key_query_shared_bottleneck=True,
        num_feedforward_networks=4,
        classifier_activation=True,
        tie_word_embeddings=True,
    ),
}


MOST_NETWORKS = 1_000


def _dense(name: str, role: Role, out: int, into: int) -> Iterator[Row]:
    """A matrix with its bias."""
    yield Tensor(f"{name}.weight", role, (out, into), "matmul")
    yield vector(f"{name}.bias", role, out)


def _norm(name: str, size: int) -> Iterator[Row]:
    """A scale and a shift, whether it is a LayerNorm or the type's own NoNorm."""
    yield scale(f"{name}.weight", size)
    yield vector(f"{name}.bias", "norm", size)


def read(c: Config) -> dict[str, Any]:
    """Everything inside a layer is spelled out."""
    c.strict = True
    d, narrow, vocab = c.hidden_size, c.embedding_size, c.vocab_size
    tied = bool(c.tie_word_embeddings)
    joined = narrow * (3 if c.trigram_input else 1)
    c.ignore("true_hidden_size", "intra_bottleneck_size")
    project = list(_dense(f"{_OWN}.embedding_transformation", "embedding", d, joined))
    if narrow == d and not c.trigram_input:  # stored and passed by
        project = [*idle(project).items]
    c.size("num_attention_heads")
    outer: list[Row] = [
        Tensor(f"{_OWN}.word_embeddings.weight", "embedding", (vocab, narrow), "lookup", "vocab"),
        Tensor(
            f"{_OWN}.position_embeddings.weight",
            "position",
            (c.max_position_embeddings, d),
            "lookup",
        ),
        Tensor(
            f"{_OWN}.token_type_embeddings.weight", "embedding", (c.type_vocab_size, d), "lookup"
        ),
        *project,
        *_norm(f"{_OWN}.LayerNorm", d),
        *_dense("cls.predictions.transform.dense", "head", d, d),
        *_norm("cls.predictions.transform.LayerNorm", d),
        vector("cls.predictions.bias", "head", vocab),
        Tensor("cls.predictions.dense.weight", "head", (d - narrow, vocab), "matmul", "vocab"),
    ]
    paired = c.arch.endswith("ForPreTraining")
    if c.classifier_activation and (is_bare(c) or paired or pools(c.model_type, c.arch)):
        outer += Pooler(d).rows()
    if paired:
        outer += linear("cls.seq_relationship", "head", 2, d, bias=True, stream="sequence")
    stored = 0 if tied else 1
    own = "cls.predictions.decoder"
    outer.append(
        Tensor(f"{own}.weight", "head", (vocab, narrow), "matmul", "vocab", stored, stored, 1)
    )
    if not tied:
        outer.append(vector(f"{own}.bias", "head", vocab))
    return c.card(
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        causal=False,
        attention=False,
        ffn=False,
        norm="none",
        head="none",
        tie_embeddings=False,
        embedding=False,
        vocab_size=vocab,
        outer=(Rows(tuple(outer)),),
        blocks=(Rows(tuple(_layer(c))),),
    )


def _layer(c: Config) -> Iterator[Row]:
    d, ff = c.hidden_size, c.intermediate_size
    inside = c.intra_bottleneck_size if c.use_bottleneck else d
    shared, values = c.key_query_shared_bottleneck, d
    if c.use_bottleneck_attention or not c.use_bottleneck:
        values = inside
    every = inside // c.num_attention_heads * c.num_attention_heads
    for name in ("query", "key", "value"):
        into = values if name == "value" else inside
        yield from _dense(f"attention.self.{name}", "attention", every, into)
    yield from _dense("attention.output.dense", "attention", inside, inside)
    yield from _norm("attention.output.LayerNorm", inside)
    yield from _dense("intermediate.dense", "ffn", ff, inside)
    yield from _dense("output.dense", "ffn", inside, ff)
    yield from _norm("output.LayerNorm", inside)
    if c.use_bottleneck:
        yield from _dense("output.bottleneck.dense", "residual", d, inside)
        yield from _norm("output.bottleneck.LayerNorm", d)
        for name in ("input", "attention") if shared else ("input",):
            yield from _dense(f"bottleneck.{name}.dense", "residual", inside, d)
            yield from _norm(f"bottleneck.{name}.LayerNorm", inside)
    networks = c.size("num_feedforward_networks")
    if networks > MOST_NETWORKS:
        c.fail("num_feedforward_networks", networks, f"must be at most {MOST_NETWORKS}", "lower it")
    for i in range(networks - 1):
        yield from _dense(f"ffn.{i}.intermediate.dense", "ffn", ff, inside)
        yield from _dense(f"ffn.{i}.output.dense", "ffn", inside, ff)
        yield from _norm(f"ffn.{i}.output.LayerNorm", inside)
    yield Operation("attention.scores", "attention", 2 * every, Both())
    yield Operation("attention.values", "attention", 2 * every, Both())
