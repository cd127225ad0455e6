"""Rows spelled out: what one family has and no other, with the shapes stated in place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.ledger import Row


class Rows(NamedTuple):
    """Tensors, operations and caches as they are."""

    items: tuple[Row, ...]

    def rows(self) -> Iterator[Row]:
        """Yield them."""
        yield from self.items
