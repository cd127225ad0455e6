"""Walking: the rows of a grid block by block, those that meet the conditions, the Pareto front.

Rows keep the order of the grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from paramcalc.sweep.expressions import Expression
from paramcalc.sweep.request import Plan
from paramcalc.sweep.table import Table

Array = np.ndarray[Any, np.dtype[Any]]


class Block(NamedTuple):
    """Some rows of a table: their numbers in the whole grid, and their columns."""

    table: Table
    rows: Array
    columns: dict[str, Array]

    def take(self, index: Array) -> Block:
        """Return the rows at an index, copied."""
        return Block(
            self.table, self.rows[index], {n: c[index].copy() for n, c in self.columns.items()}
        )


def blocks(plan: Plan) -> Iterator[Block]:
    """Yield every row of the grid block by block; arrays are reused by the next block."""
    for table, start in zip(plan.tables, plan.starts, strict=True):
        yield from blocks_of(table, start)


def blocks_of(table: Table, start: int, first: int = 0, stop: int | None = None) -> Iterator[Block]:
    """Yield the rows of a table, whose first is row ``start`` of the grid, block by block.

    ``first`` and ``stop`` limit its leading rows; arrays are reused by the next block.
    """
    names = [c.name for c in table.numeric]
    for row, arrays in table.stream(first, stop):
        size = len(arrays[0]) if arrays else 0
        rows = np.arange(start + row, start + row + size)
        yield Block(table, rows, dict(zip(names, arrays, strict=True)))


def mask(conditions: list[Expression], columns: Mapping[str, Array]) -> Array | None:
    """Return where all conditions hold; None if there are none."""
    result = None
    for condition in conditions:
        holds = condition.holds(columns)
        result = holds if result is None else result & holds
    return result


def kept(plan: Plan) -> Iterator[Block]:
    """Yield the rows that meet the conditions."""
    return meeting(plan, blocks(plan))


def meeting(plan: Plan, found: Iterable[Block]) -> Iterator[Block]:
    """Yield the rows of some blocks that meet the conditions."""
    for block in found:
        holds = mask(plan.where, block.columns)
        if holds is None:
            yield block
            continue
        index = np.flatnonzero(np.broadcast_to(holds, len(block.rows)))
        if len(index):
            yield block.take(index)


def pareto(plan: Plan) -> list[Block]:
    """Return the rows that no other row beats: none is as good in every named column and better in
    one. Equal rows are all kept. In row order."""
    best: list[tuple[Block, Array]] = []
    for block in kept(plan):
        values = np.stack([block.columns[name] * sign for name, sign in plan.front], axis=1)
        index = front(values)
        best.append((block.take(index), values[index]))
        if len(best) > 64:
            best = _merge(best)
    return [block for block, _ in _merge(best)]


def _merge(best: list[tuple[Block, Array]]) -> list[tuple[Block, Array]]:
    if not best:
        return []
    values = np.concatenate([v for _, v in best])
    keep = np.zeros(len(values), dtype=bool)
    keep[front(values)] = True
    merged, start = [], 0
    for block, own in best:
        index = np.flatnonzero(keep[start : start + len(own)])
        start += len(own)
        if len(index):
            merged.append((block.take(index), own[index]))
    return merged


def front(values: Array) -> Array:
    """Return the numbers of the rows that no other dominates, in row order."""
    order = np.lexsort(values.T[::-1])
    ranked = values[order]
    fresh = np.ones(len(ranked), dtype=bool)
    if len(ranked) > 1:
        fresh[1:] = np.any(ranked[1:] != ranked[:-1], axis=1)
    unique = ranked[fresh]
    if unique.shape[1] <= 2:
        second = unique[:, -1]
        lowest = np.minimum.accumulate(second)
        good = np.ones(len(unique), dtype=bool)
        good[1:] = second[1:] < lowest[:-1]
    else:
        good = np.zeros(len(unique), dtype=bool)
        held = unique[:0]
        for i, row in enumerate(unique):  # sorted: a row can only be beaten by an earlier one
            if not np.any(np.all(held <= row, axis=1)):
                good[i] = True
                held = np.concatenate([held, row[None]])
    return np.sort(order[good[np.cumsum(fresh) - 1]])
