"""What turns the last hidden state into an answer: the LM head, BERT's masked head, a pooler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Row, Tensor
from paramcalc.numbers import Num


class Head(NamedTuple):
    """Logits over the vocabulary. A tied head stores nothing and costs as much as an untied one.

    ``project`` maps the stream back to a narrower embedding first (OPT-350M).
    """

    vocab_size: Num
    d_model: Num
    d_embedding: Num
    tied: bool
    bias: bool = False
    project: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield the projection, the matrix (0 copies if tied) and its bias."""
        if self.project:
            yield from linear("head.project", "head", self.d_embedding, self.d_model)
        stored = 0 if self.tied else 1
        shape = (self.vocab_size, self.d_embedding)
        yield Tensor("head", "head", shape, "matmul", "vocab", stored, stored, 1)
        if self.bias:
            yield Tensor("head.bias", "head", (self.vocab_size,), "bias", "vocab")


class MaskedHead(NamedTuple):
    """The dense layer and norm before a masked-language head (BERT's prediction transform)."""

    d_model: Num
    d_embedding: Num
    dense_bias: bool
    norm_bias: bool

    def rows(self) -> Iterator[Row]:
        """Yield the dense layer, then the norm."""
        yield from linear(
            "head.dense", "head", self.d_embedding, self.d_model, bias=self.dense_bias
        )
        yield from Norm("head.norm", (self.d_embedding,), self.norm_bias).rows()


class Pooler(NamedTuple):
    """BERT's dense layer over the first token; it runs once a sequence, not once a token."""

    d_model: Num

    def rows(self) -> Iterator[Row]:
        """Yield the dense layer."""
        yield from linear(
            "pooler", "head", self.d_model, self.d_model, bias=True, stream="sequence"
        )
