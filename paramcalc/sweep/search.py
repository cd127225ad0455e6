"""Search: count rows that meet conditions, and find the best of them, without walking the grid.

A box is a range in every dimension. Bounds over it tell whether a condition holds everywhere in it
(then it is no longer asked), nowhere (the box is dropped), or cannot be told. What is left of the
conditions uses some of the dimensions. If they fall into groups that share none, each group is
counted by itself and the counts are multiplied; otherwise the box is halved, along dimensions that
hold groups together first, or, once it is small, walked. The answers are those of walking, to the
row.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from itertools import count as counter
from math import prod
from typing import Any, NamedTuple

import numpy as np

from paramcalc.sweep.compiled import formula_value, symbols_of
from paramcalc.sweep.expressions import Expression
from paramcalc.sweep.intervals import Span, decide, formula_span
from paramcalc.sweep.request import Plan
from paramcalc.sweep.table import Table
from paramcalc.symbols import Formula

Array = np.ndarray[Any, np.dtype[Any]]
Box = tuple[tuple[int, int], ...]

WALK = 262_144
"""Rows of the dimensions in use that are walked rather than halved again."""
MOST_TIED = 65_536
"""Combinations of dimensions shared by conditions that are fixed one by one."""


class _Searched:
    """A table with what a search asks of it."""

    def __init__(self, plan: Plan, table: Table, names: set[str]) -> None:
        self.table = table
        self.conditions = [part for condition in plan.where for part in condition.conjuncts()]
        by_name = {c.name: c for c in table.numeric}
        self.formulas: dict[str, Formula] = {}
        for name in sorted(names):
            formula = by_name[name].formula
            assert formula is not None
            self.formulas[name] = formula
        self.dtypes = dict(zip(by_name, table.dtypes, strict=True))
        self.dims = table.sheet.dims
        self.uses = {
            name: [i for i, dim in enumerate(self.dims) if symbols_of(f) & dim.fields.keys()]
            for name, f in self.formulas.items()
        }
        self.whole: Box = tuple((0, dim.size) for dim in self.dims)
        self.rising = {
            name: bool(np.all(values[1:] >= values[:-1]))
            for dim in self.dims
            for name, values in dim.fields.items()
        }

    def used(self, names: Iterable[str]) -> list[int]:
        """The dimensions that some columns depend on."""
        return sorted({i for name in names for i in self.uses[name]})

    def spans(self, box: Box, names: Iterable[str]) -> dict[str, Span]:
        """The bounds of some columns over a box."""
        symbols: dict[str, Span] = {}
        for i in self.used(names):
            low, high = box[i]
            for name, values in self.dims[i].fields.items():
                if self.rising[name]:
                    symbols[name] = int(values[low]), int(values[high - 1])
                else:
                    part = values[low:high]
                    symbols[name] = int(part.min()), int(part.max())
        return {name: formula_span(self.formulas[name], symbols) for name in names}

    def left(self, box: Box, conditions: list[Expression]) -> list[Expression] | None:
        """The conditions that cannot be told over a box; None if one holds nowhere in it."""
        spans = self.spans(box, _names(conditions))
        found = []
        for condition in conditions:
            verdict = decide(condition, spans)
            if verdict is False:
                return None
            if verdict is None:
                found.append(condition)
        return found

    def evaluate(self, box: Box, dims: list[int], names: Iterable[str]) -> dict[str, Array]:
        """Some columns over the dimensions they depend on, one axis a dimension."""
        arrays: dict[str, Any] = {}
        shape = _shape(box, dims)
        for place, i in enumerate(dims):
            own = [1] * len(dims)
            own[place] = shape[place]
            for name, values in self.dims[i].fields.items():
                arrays[name] = values[slice(*box[i])].reshape(own)
        result = {}
        for name in names:
            dtype = self.dtypes[name]
            typed = {n: v.astype(dtype, copy=False) for n, v in arrays.items()}
            value = np.asarray(formula_value(self.formulas[name], typed, {}), dtype)
            result[name] = np.broadcast_to(value, shape)
        return result

    def count(self, whole: Box, conditions: list[Expression]) -> int:
        """How many rows of a box meet some conditions."""
        total = 0
        stack = [(whole, conditions)]
        while stack:
            box, asked = stack.pop()
            left = self.left(box, asked)
            if left is None:
                continue
            dims = self.used(_names(left))
            uses = [self.wide(box, condition.names) for condition in left]
            groups = [[left[i] for i in group] for group in _groups(uses)]
            idle = prod(_shape(box, [i for i in range(len(box)) if i not in dims]))
            if not left:
                total += idle
            elif len(groups) > 1:
                total += idle * prod(self.count(self.only(box, own), own) for own in groups)
            elif prod(_shape(box, dims)) <= WALK:
                columns = self.evaluate(box, dims, _names(left))
                total += int(np.count_nonzero(_mask(left, columns, _shape(box, dims)))) * idle
            else:
                stack += [(half, left) for half in _halves(box, _ties(box, uses) or dims)]
        return total

    def wide(self, box: Box, names: Iterable[str]) -> set[int]:
        """The dimensions that some columns depend on and that have several values in a box."""
        return {i for i in self.used(names) if box[i][1] - box[i][0] > 1}

    def only(self, box: Box, conditions: list[Expression]) -> Box:
        """A box with one value in the dimensions that some conditions do not use."""
        dims = self.used(_names(conditions))
        return tuple(r if i in dims else (r[0], r[0] + 1) for i, r in enumerate(box))

    def first(self, whole: Box, conditions: list[Expression], size: int) -> list[list[int]]:
        """The places of the first rows of a box that meet some conditions, in row order."""
        found: list[list[int]] = []
        stack = [whole] if self.count(whole, conditions) else []
        while stack and len(found) < size:
            box = stack.pop()
            left = self.left(box, conditions)
            if left is None:
                continue
            every = list(range(len(box)))
            shape = _shape(box, every)
            if left and prod(shape) > WALK:
                stack += reversed(_halves(box, [next(i for i in every if shape[i] > 1)]))
                continue
            index: Iterable[int] = range(min(size, prod(shape)))
            if left:
                columns = self.evaluate(box, every, _names(left))
                index = np.flatnonzero(_mask(left, columns, shape))[:size].tolist()
            lows = [low for low, _ in box]
            found += [_at(lows, step, shape) for step in index]
        return found[:size]


def _at(lows: list[int], step: int, shape: list[int]) -> list[int]:
    places = np.unravel_index(step, shape) if shape else ()
    return [low + int(place) for low, place in zip(lows, places, strict=True)]


def _groups(uses: list[set[int]]) -> list[list[int]]:
    """Sets of dimensions, by number, in groups that share none; the first group holds the first."""
    groups: list[tuple[set[int], list[int]]] = []
    for number, own in enumerate(uses):
        near = [group for group in groups if group[0] & own]
        merged = set(own).union(*(group[0] for group in near))
        members = sorted([*(i for group in near for i in group[1]), number])
        groups = [*(group for group in groups if not group[0] & own), (merged, members)]
    return sorted(members for _, members in groups)


def _ties(box: Box, uses: list[set[int]]) -> list[int]:
    """The dimensions that hold groups together, if they are few enough to be fixed one by one."""
    widest = [
        own
        for i, own in enumerate(uses)
        if not any(own < other or (own == other and j < i) for j, other in enumerate(uses))
    ]
    times = Counter(i for own in widest for i in own)
    shared = {i for i, number in times.items() if number > 1}
    apart = len(_groups([own - shared for own in uses])) > 1
    return sorted(shared) if apart and prod(_shape(box, sorted(shared))) <= MOST_TIED else []


def _names(conditions: list[Expression]) -> set[str]:
    return {name for condition in conditions for name in condition.names}


def _shape(box: Box, dims: list[int]) -> list[int]:
    return [box[i][1] - box[i][0] for i in dims]


def _halves(box: Box, dims: list[int]) -> list[Box]:
    """Cut a box in two along the longest of some dimensions."""
    i = max(dims, key=lambda i: box[i][1] - box[i][0])
    low, high = box[i]
    middle = (low + high) // 2
    return [(*box[:i], part, *box[i + 1 :]) for part in ((low, middle), (middle, high))]


def _mask(conditions: list[Expression], columns: dict[str, Array], shape: list[int]) -> Array:
    """Where the conditions hold over ``evaluate``'s columns."""
    result = np.ones(shape, dtype=bool)
    for condition in conditions:
        result &= condition.holds(columns)
    return result


def count(plan: Plan) -> int:
    """Return how many rows meet the conditions."""
    names = _names(plan.where)
    found = (_Searched(plan, table, names) for table in plan.tables)
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
    names = {by, *_names(plan.where)}
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
        left = searched.left(box, searched.conditions)
        if left is None:
            continue
        uses = [searched.wide(box, [by]), *(searched.wide(box, c.names) for c in left)]
        near = [left[i - 1] for i in _groups(uses)[0][1:]]
        dims = searched.used({by, *_names(near)})
        if prod(_shape(box, dims)) <= WALK:
            far = [condition for condition in left if condition not in near]
            rows = _rows(
                searched, box, dims, (near, far), (by, sign, size), starts[id(searched.table)]
            )
            found = sorted([*found, *rows], key=lambda row: (row.key, row.number))[:size]
            continue
        for half in _halves(box, _ties(box, uses) or dims):
            number = starts[id(searched.table)] + _row_number(searched, [low for low, _ in half])
            key = _bound(searched, half, by, sign)
            heapq.heappush(heap, (key, number, next(order), searched, half))
    return found


def _bound(searched: _Searched, box: Box, by: str, sign: int) -> Any:
    low, high = searched.spans(box, [by])[by]
    return low if sign > 0 else -high


def _row_number(searched: _Searched, place: list[int]) -> int:
    number = 0
    for dim, index in zip(searched.dims, place, strict=True):
        number = number * dim.size + index
    return number


def _rows(
    searched: _Searched,
    box: Box,
    dims: list[int],
    conditions: tuple[list[Expression], list[Expression]],
    order: tuple[str, int, int],
    start: int,
) -> list[Row]:
    """The best rows of a small box: by the conditions that share dimensions with the column, over
    those dimensions; for each the first rows over the others that meet the conditions on them."""
    by, sign, size = order
    own, far = conditions
    columns = searched.evaluate(box, dims, {by, *_names(own)})
    shape = _shape(box, dims)
    index = np.flatnonzero(_mask(own, columns, shape))
    if not len(index):
        return []
    keys = (columns[by].reshape(-1) * sign)[index]
    if len(index) > size:
        limit = np.partition(keys, size - 1)[size - 1]
        near = np.flatnonzero(keys <= limit)
        index, keys = index[near], keys[near]
    places = np.stack(np.unravel_index(index, shape), axis=1) if shape else np.zeros((1, 0), int)
    firsts = []
    for own, key in zip(places.tolist(), keys.tolist(), strict=True):
        place = [low for low, _ in box]
        for i, offset in zip(dims, own, strict=True):
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
