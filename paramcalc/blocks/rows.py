"""Rows spelled out: what one family has and no other, with the shapes stated in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from paramcalc.ledger import Role, Row, Shard, Stream, Tensor
from paramcalc.numbers import Num


class Rows(NamedTuple):
    """Tensors, operations and caches as they are."""

    items: tuple[Row, ...]

    def rows(self) -> Iterator[Row]:
        """Yield them."""
        yield from self.items


def idle(rows: Iterable[Row]) -> Rows:
    """Return the tensors of a block that is stored and not run on a text alone."""
    tensors = (row for row in rows if isinstance(row, Tensor))
    return Rows(tuple(t._replace(active=0, runs=0) for t in tensors))


def matrix(
    name: str,
    role: Role,
    out: Num,
    into: Num,
    shard: Shard = "replicated",
    stream: Stream = "token",
) -> Tensor:
    """Return an (out, in) matrix that every token is multiplied by."""
    return Tensor(name, role, (out, into), "matmul", shard, stream=stream)


def vector(name: str, role: Role, *shape: Num) -> Tensor:
    """Return values that are added or multiplied one by one: a bias, a gate, a decay."""
    return Tensor(name, role, shape, "bias")


def scale(name: str, *shape: Num) -> Tensor:
    """Return the scale of a norm."""
    return Tensor(name, "norm", shape, "scale")
