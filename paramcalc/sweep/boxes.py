"""Boxes: a range in every dimension of a grid, counted and narrowed down by conditions.

Bounds over it tell whether a condition holds everywhere in it
(then it is no longer asked), nowhere (the box is dropped), or cannot be told. What is left of the
conditions uses some of the dimensions. If they fall into groups that share none, each group is
counted by itself and the counts are multiplied; otherwise the box is halved, along dimensions that
hold groups together first, or, once it is small, walked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod
from typing import Any

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


class Searched:
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
        spans = self.spans(box, names_of(conditions))
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
        shape = shape_of(box, dims)
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
            dims = self.used(names_of(left))
            uses = [self.wide(box, condition.names) for condition in left]
            apart = [[left[i] for i in group] for group in groups(uses)]
            idle = prod(shape_of(box, [i for i in range(len(box)) if i not in dims]))
            if not left:
                total += idle
            elif len(apart) > 1:
                total += idle * prod(self.count(self.only(box, own), own) for own in apart)
            elif prod(shape_of(box, dims)) <= WALK:
                columns = self.evaluate(box, dims, names_of(left))
                total += int(np.count_nonzero(mask_of(left, columns, shape_of(box, dims)))) * idle
            else:
                stack += [(half, left) for half in halves(box, ties(box, uses) or dims)]
        return total

    def wide(self, box: Box, names: Iterable[str]) -> set[int]:
        """The dimensions that some columns depend on and that have several values in a box."""
        return {i for i in self.used(names) if box[i][1] - box[i][0] > 1}

    def only(self, box: Box, conditions: list[Expression]) -> Box:
        """A box with one value in the dimensions that some conditions do not use."""
        dims = self.used(names_of(conditions))
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
            shape = shape_of(box, every)
            if left and prod(shape) > WALK:
                stack += reversed(halves(box, [next(i for i in every if shape[i] > 1)]))
                continue
            index: Iterable[int] = range(min(size, prod(shape)))
            if left:
                columns = self.evaluate(box, every, names_of(left))
                index = np.flatnonzero(mask_of(left, columns, shape))[:size].tolist()
            lows = [low for low, _ in box]
            found += [_at(lows, step, shape) for step in index]
        return found[:size]


def _at(lows: list[int], step: int, shape: list[int]) -> list[int]:
    places = np.unravel_index(step, shape) if shape else ()
    return [low + int(place) for low, place in zip(lows, places, strict=True)]


def groups(uses: list[set[int]]) -> list[list[int]]:
    """Sets of dimensions, by number, in groups that share none; the first group holds the first."""
    found: list[tuple[set[int], list[int]]] = []
    for number, own in enumerate(uses):
        near = [group for group in found if group[0] & own]
        merged = set(own).union(*(group[0] for group in near))
        members = sorted([*(i for group in near for i in group[1]), number])
        found = [*(group for group in found if not group[0] & own), (merged, members)]
    return sorted(members for _, members in found)


def ties(box: Box, uses: list[set[int]]) -> list[int]:
    """The dimensions that hold groups together, if they are few enough to be fixed one by one."""
    widest = [
        own
        for i, own in enumerate(uses)
        if not any(own < other or (own == other and j < i) for j, other in enumerate(uses))
    ]
    times = Counter(i for own in widest for i in own)
    shared = {i for i, number in times.items() if number > 1}
    apart = len(groups([own - shared for own in uses])) > 1
    return sorted(shared) if apart and prod(shape_of(box, sorted(shared))) <= MOST_TIED else []


def names_of(conditions: list[Expression]) -> set[str]:
    """The columns that some conditions use."""
    return {name for condition in conditions for name in condition.names}


def shape_of(box: Box, dims: list[int]) -> list[int]:
    """How many values some dimensions of a box have."""
    return [box[i][1] - box[i][0] for i in dims]


def halves(box: Box, dims: list[int]) -> list[Box]:
    """Cut a box in two along the longest of some dimensions."""
    i = max(dims, key=lambda i: box[i][1] - box[i][0])
    low, high = box[i]
    middle = (low + high) // 2
    return [(*box[:i], part, *box[i + 1 :]) for part in ((low, middle), (middle, high))]


def mask_of(conditions: list[Expression], columns: dict[str, Array], shape: list[int]) -> Array:
    """Where the conditions hold over ``evaluate``'s columns."""
    result = np.ones(shape, dtype=bool)
    for condition in conditions:
        result &= condition.holds(columns)
    return result
