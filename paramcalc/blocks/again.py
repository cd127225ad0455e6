"""Blocks that a token passes several times: stored once, run and cached each time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.ledger import Row, Tensor
from paramcalc.numbers import Num

if TYPE_CHECKING:
    from paramcalc.blocks import Block


class Again(NamedTuple):
    """``inner`` blocks run ``times`` times for every token, each pass with a cache of its own."""

    inner: tuple[Block, ...]
    times: Num

    def rows(self) -> Iterator[Row]:
        """Yield the inner rows: weights with more runs, operations and caches with more copies."""
        for block in self.inner:
            for row in block.rows():
                if isinstance(row, Tensor):
                    yield row._replace(runs=row.runs * self.times)
                else:
                    yield row._replace(copies=row.copies * self.times)
