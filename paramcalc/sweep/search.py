"""Search: count rows that meet conditions, and find the best of them, without walking the grid.

A box is a range in every dimension. Bounds over it tell whether the conditions hold everywhere in
it (its rows are counted without being looked at), nowhere (it is dropped), or cannot be told: then
it is halved, or, once it is small, walked; only the dimensions that the conditions use are. The
answers are those of walking, to the row.
"""

from __future__ import annotations

import heapq
from itertools import count as counter
from math import prod
from typing import Any, NamedTuple

import numpy as np

from paramcalc.sweep.compiled import formula_value, symbols_of
from paramcalc.sweep.intervals import Span, decide, formula_span
from paramcalc.sweep.request import Plan
from paramcalc.sweep.table import Table
from paramcalc.symbols import Formula

Array = np.ndarray[Any, np.dtype[Any]]
Box = tuple[tuple[int, int], ...]

WALK = 262_144
"""Rows of the dimensions in use that are walked rather than halved again."""


class _Searched:
    """A table with what a search asks of it."""

    def __init__(self, plan: Plan, table: Table, names: list[str]) -> None:
        self.plan, self.table = plan, table
        by_name = {c.name: c for c in table.numeric}
        self.formulas: dict[str, Formula] = {}
        for name in names:
            formula = by_name[name].formula
            assert formula is not None
            self.formulas[name] = formula
        self.dtypes = dict(zip(by_name, table.dtypes, strict=True))
        self.dims = table.sheet.dims
        used = {s for formula in self.formulas.values() for s in symbols_of(formula)}
        self.used = [i for i, dim in enumerate(self.dims) if used & dim.fields.keys()]
        self.whole: Box = tuple((0, dim.size) for dim in self.dims)
        self.rising = {
            name: bool(np.all(values[1:] >= values[:-1]))
            for dim in self.dims
            for name, values in dim.fields.items()
        }

    def spans(self, box: Box) -> dict[str, Span]:
        """The bounds of each column in question over a box."""
        symbols: dict[str, Span] = {}
        for i in self.used:
            low, high = box[i]
            for name, values in self.dims[i].fields.items():
                if self.rising[name]:
                    symbols[name] = int(values[low]), int(values[high - 1])
                else:
                    part = values[low:high]
                    symbols[name] = int(part.min()), int(part.max())
        return {name: formula_span(f, symbols) for name, f in self.formulas.items()}

    def verdict(self, spans: dict[str, Span]) -> bool | None:
        """Whether all conditions hold everywhere, some nowhere, or it cannot be told."""
        found = [decide(condition, spans) for condition in self.plan.where]
        return False if False in found else None if None in found else True

    def small(self, box: Box) -> bool:
        """Whether the dimensions in use are few enough rows to walk."""
        return prod(box[i][1] - box[i][0] for i in self.used) <= WALK

    def halves(self, box: Box) -> list[Box]:
        """Cut a box in two along its longest dimension in use."""
        i = max(self.used, key=lambda i: box[i][1] - box[i][0])
        low, high = box[i]
        middle = (low + high) // 2
        return [(*box[:i], part, *box[i + 1 :]) for part in ((low, middle), (middle, high))]

    def evaluate(self, box: Box) -> dict[str, Array]:
        """Each column in question over the dimensions in use, one axis a dimension."""
        arrays: dict[str, Any] = {}
        shape = [box[i][1] - box[i][0] for i in self.used]
        for place, i in enumerate(self.used):
            own = [1] * len(self.used)
            own[place] = shape[place]
            for name, values in self.dims[i].fields.items():
                arrays[name] = values[slice(*box[i])].reshape(own)
        result = {}
        for name, formula in self.formulas.items():
            dtype = self.dtypes[name]
            typed = {n: v.astype(dtype, copy=False) for n, v in arrays.items()}
            value = np.asarray(formula_value(formula, typed, {}), dtype)
            result[name] = np.broadcast_to(value, shape)
        return result

    def mask(self, columns: dict[str, Array], box: Box) -> Array:
        """Where the conditions hold over ``evaluate``'s columns."""
        result = np.ones([box[i][1] - box[i][0] for i in self.used], dtype=bool)
        for condition in self.plan.where:
            result &= condition.holds(columns)
        return result

    def idle(self, box: Box) -> int:
        """Rows of the dimensions that nothing in question uses."""
        return prod(high - low for i, (low, high) in enumerate(box) if i not in self.used)


def count(plan: Plan) -> int:
    """Return how many rows meet the conditions."""
    names = sorted({name for condition in plan.where for name in condition.names})
    total = 0
    for table in plan.tables:
        searched = _Searched(plan, table, names)
        stack = [searched.whole]
        while stack:
            box = stack.pop()
            verdict = searched.verdict(searched.spans(box))
            if verdict:
                total += prod(high - low for low, high in box)
            elif verdict is None:
                if searched.small(box):
                    mask = searched.mask(searched.evaluate(box), box)
                    total += int(np.count_nonzero(mask)) * searched.idle(box)
                else:
                    stack += searched.halves(box)
    return total


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
    names = sorted({by, *(name for condition in plan.where for name in condition.names)})
    order, start = counter(), 0
    heap: list[tuple[Any, int, int, _Searched, Box]] = []
    for table in plan.tables:
        searched = _Searched(plan, table, names)
        heap.append(
            (
                _bound(searched, searched.whole, by, sign),
                start,
                next(order),
                searched,
                searched.whole,
            )
        )
        start += table.rows
    heapq.heapify(heap)
    starts = {
        id(table): sum(t.rows for t in plan.tables[:i]) for i, table in enumerate(plan.tables)
    }
    found: list[Row] = []
    while heap:
        bound, first, _, searched, box = heapq.heappop(heap)
        if len(found) == size and (bound, first) > (found[-1].key, found[-1].number):
            break
        if searched.verdict(searched.spans(box)) is False:
            continue
        if searched.small(box):
            rows = _rows(searched, box, by, sign, size, starts[id(searched.table)])
            found = sorted([*found, *rows], key=lambda row: (row.key, row.number))[:size]
            continue
        for half in searched.halves(box):
            number = starts[id(searched.table)] + _row_number(searched, [low for low, _ in half])
            key = _bound(searched, half, by, sign)
            heapq.heappush(heap, (key, number, next(order), searched, half))
    return found


def _bound(searched: _Searched, box: Box, by: str, sign: int) -> Any:
    low, high = searched.spans(box)[by]
    return low if sign > 0 else -high


def _row_number(searched: _Searched, place: list[int]) -> int:
    number = 0
    for dim, index in zip(searched.dims, place, strict=True):
        number = number * dim.size + index
    return number


def _rows(searched: _Searched, box: Box, by: str, sign: int, size: int, start: int) -> list[Row]:
    """The best rows of a small box: over the dimensions in use, then the first of the rest."""
    columns = searched.evaluate(box)
    index = np.flatnonzero(searched.mask(columns, box))
    if not len(index):
        return []
    keys = (columns[by].reshape(-1) * sign)[index]
    if len(index) > size:
        limit = np.partition(keys, size - 1)[size - 1]
        near = np.flatnonzero(keys <= limit)
        index, keys = index[near], keys[near]
    shape = [box[i][1] - box[i][0] for i in searched.used]
    places = np.stack(np.unravel_index(index, shape), axis=1) if shape else np.zeros((1, 0), int)
    firsts = []
    for own, key in zip(places.tolist(), keys.tolist(), strict=True):
        place = [low for low, _ in box]
        for i, offset in zip(searched.used, own, strict=True):
            place[i] = box[i][0] + offset
        firsts.append((key, _row_number(searched, place), place))
    firsts.sort(key=lambda item: item[:2])
    others = [i for i in range(len(box)) if i not in searched.used]
    spare = [box[i][1] - box[i][0] for i in others]
    rows = []
    for key, _, place in firsts[:size]:
        for step in range(min(size, prod(spare))):
            here = list(place)
            for i, offset in zip(
                others, np.unravel_index(step, spare) if spare else (), strict=True
            ):
                here[i] = box[i][0] + int(offset)
            own_number = _row_number(searched, here)
            rows.append(Row(key, start + own_number, searched.table, own_number))
    return rows
