"""Search: count rows that meet conditions, and find the best of them, without walking the grid.

The answers are those of walking, to the row.
"""

from __future__ import annotations

import heapq
from itertools import count as counter
from math import prod
from typing import Any, NamedTuple

import numpy as np

from paramcalc.sweep import boxes
from paramcalc.sweep.expressions import Expression
from paramcalc.sweep.request import Plan
from paramcalc.sweep.table import Table

Array = np.ndarray[Any, np.dtype[Any]]


def count(plan: Plan) -> int:
    """Return how many rows meet the conditions."""
    names = boxes.names_of(plan.where)
    found = (boxes.Searched(plan, table, names) for table in plan.tables)
    return sum(searched.count(searched.whole, searched.conditions) for searched in found)


class Row(NamedTuple):
    """A row by its key, its number in the whole grid, its table and its number there."""

    key: Any
    number: int
    table: Table
    own: int


def best(plan: Plan) -> list[Row]:
    """Return the best rows that meet the conditions, best first, ties in row order."""
    by, size = plan.sort[0], plan.request.top or 1
    sign = -1 if plan.request.descending else 1
    names = {by, *boxes.names_of(plan.where)}
    order = counter()
    heap: list[tuple[Any, int, int, int, boxes.Searched, boxes.Box]] = []
    for table, start in zip(plan.tables, plan.starts, strict=True):
        searched = boxes.Searched(plan, table, names)
        key = _bound(searched, searched.whole, by, sign)
        heap.append((key, start, next(order), start, searched, searched.whole))
    heapq.heapify(heap)
    found: list[Row] = []
    while heap:
        bound, first, _, start, searched, box = heapq.heappop(heap)
        if len(found) == size and (bound, first) > (found[-1].key, found[-1].number):
            break
        left = searched.left(box, searched.conditions)
        if left is None:
            continue
        uses = [searched.wide(box, [by]), *(searched.wide(box, c.names) for c in left)]
        near = [left[i - 1] for i in boxes.groups(uses)[0][1:]]
        dims = searched.used({by, *boxes.names_of(near)})
        if prod(boxes.shape_of(box, dims)) <= boxes.WALK:
            far = [condition for condition in left if condition not in near]
            rows = _rows(searched, box, dims, (near, far), (by, sign, size), start)
            found = sorted([*found, *rows], key=lambda row: (row.key, row.number))[:size]
            continue
        for half in boxes.halves(box, boxes.ties(box, uses) or dims):
            number = start + _row_number(searched, [low for low, _ in half])
            key = _bound(searched, half, by, sign)
            heapq.heappush(heap, (key, number, next(order), start, searched, half))
    return found


def _bound(searched: boxes.Searched, box: boxes.Box, by: str, sign: int) -> Any:
    low, high = searched.spans(box, [by])[by]
    return low if sign > 0 else -high


def _row_number(searched: boxes.Searched, place: list[int]) -> int:
    number = 0
    for dim, index in zip(searched.dims, place, strict=True):
        number = number * dim.size + index
    return number


def _rows(
    searched: boxes.Searched,
    box: boxes.Box,
    dims: list[int],
    conditions: tuple[list[Expression], list[Expression]],
    order: tuple[str, int, int],
    start: int,
) -> list[Row]:
    """The best rows of a small box: by the conditions that share dimensions with the column, over
    those dimensions; for each the first rows over the others that meet the conditions on them."""
    by, sign, size = order
    own, far = conditions
    columns = searched.evaluate(box, dims, {by, *boxes.names_of(own)})
    shape = boxes.shape_of(box, dims)
    index = np.flatnonzero(boxes.mask_of(own, columns, shape))
    if not len(index):
        return []
    keys = (columns[by].reshape(-1) * sign)[index]
    if len(index) > size:
        limit = np.partition(keys, size - 1)[size - 1]
        low_enough = np.flatnonzero(keys <= limit)
        index, keys = index[low_enough], keys[low_enough]
    places = np.stack(np.unravel_index(index, shape), axis=1) if shape else np.zeros((1, 0), int)
    firsts = []
    for offsets, key in zip(places.tolist(), keys.tolist(), strict=True):
        place = [low for low, _ in box]
        for i, offset in zip(dims, offsets, strict=True):
            place[i] = box[i][0] + offset
        firsts.append((key, _row_number(searched, place), place))
    firsts.sort(key=lambda item: item[:2])
    fixed = tuple((r[0], r[0] + 1) if i in dims else r for i, r in enumerate(box))
    others = searched.first(fixed, far, size)
    rows = []
    for key, _, place in firsts[:size]:
        for other in others:
            here = [place[i] if i in dims else other[i] for i in range(len(box))]
            own_number = _row_number(searched, here)
            rows.append(Row(key, start + own_number, searched.table, own_number))
    return rows
