"""Tables that turn tokens, positions and segments into vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.ledger import Row, Tensor
from paramcalc.numbers import Num


class Embedding(NamedTuple):
    """The token table, and the projection to the stream where its width differs (ALBERT, OPT-350M).

    ``n_token_types`` rows of segment embeddings stand beside it in BERT's family.
    """

    vocab_size: Num
    d_embedding: Num
    d_model: Num
    project: bool = False
    project_bias: bool = False
    n_token_types: Num | None = None

    def rows(self) -> Iterator[Row]:
        """Yield the table, the segment table and the projection."""
        yield Tensor(
            "embedding", "embedding", (self.vocab_size, self.d_embedding), "lookup", "vocab"
        )
        if self.n_token_types is not None:
            yield Tensor(
                "token_types", "embedding", (self.n_token_types, self.d_embedding), "lookup"
            )
        if self.project:
            yield from linear(
                "embedding.project",
                "embedding",
                self.d_model,
                self.d_embedding,
                bias=self.project_bias,
            )


class Positions(NamedTuple):
    """A learned vector for each of ``n_positions`` places."""

    name: str
    n_positions: Num
    width: Num

    def rows(self) -> Iterator[Row]:
        """Yield the table."""
        yield Tensor(self.name, "position", (self.n_positions, self.width), "lookup")


class RelativePositions(NamedTuple):
    """One learned value for each bucket of distance and head (T5), shared by a stack's layers."""

    name: str
    buckets: Num
    n_heads: Num

    def rows(self) -> Iterator[Row]:
        """Yield the table."""
        yield Tensor(self.name, "position", (self.buckets, self.n_heads), "lookup")
