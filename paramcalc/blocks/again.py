"""Blocks that a token passes several times: stored once, run and cached each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.numbers import Num

if TYPE_CHECKING:
    from paramcalc.blocks import Block


class Again(NamedTuple):
    """``inner`` blocks run ``times`` times for every token, each pass with a cache of its own, or
    all with one where ``shared`` says so."""

    inner: tuple[Block, ...]
    times: Num
    shared: bool = False

    def rows(self) -> Iterator[Row]:
        """Yield the inner rows: weights with more runs, operations and caches with more copies."""
        for block in self.inner:
            for row in block.rows():
                if isinstance(row, Tensor):
                    yield row._replace(runs=row.runs * self.times)
                elif isinstance(row, Operation) or not self.shared:
                    yield row._replace(copies=row.copies * self.times)
                else:
                    yield row


def opened(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks, and in place of one that is passed several times what is inside it."""
    for block in blocks:
        if isinstance(block, Again):
            yield from opened(block.inner)
        else:
            yield block
