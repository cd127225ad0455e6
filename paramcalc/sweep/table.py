"""The engine: a sheet's columns evaluated block by block, in place, exactly.

Before anything runs, each column's partial sums are bounded at the grid's top corner in Python
ints. Below 2^63 the column is int64; otherwise it is computed in Python ints (object arrays), exact
and slower. Nothing wraps and nothing is rounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np

from paramcalc.sweep.columns import Column, columns_of
from paramcalc.sweep.compiled import Compiled, formula_value, most, symbols_of
from paramcalc.sweep.grid import Dim, Sheet
from paramcalc.symbols import Formula, lift

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 262_144
"""Rows of a block: enough to spread what its calls cost, few enough to stay small."""
INT64 = 2**63


class Table:
    """A sheet and its columns, ready to be evaluated over any range of its rows.

    Rows are numbered in the order of the dimensions, the last one running fastest.
    """

    def __init__(self, sheet: Sheet, names: list[str]) -> None:
        self.sheet = sheet
        self.columns: list[Column] = columns_of(sheet, names)
        self.rows = sheet.rows
        sizes = [dim.size for dim in sheet.dims]
        top = {
            name: int(values.max(initial=1))
            for dim in sheet.dims
            for name, values in dim.fields.items()
        }
        formulas = [c.formula for c in self.columns if c.formula is not None]
        self.dtypes: list[Any] = [
            np.int64 if most(formula, top) < INT64 else object for formula in formulas
        ]
        first, second = _split(sheet, formulas)
        self.leading_sizes = sizes[:first]
        self.leading = prod(self.leading_sizes)
        self.shape = (prod(sizes[first:second]), prod(sizes[second:]))
        self.width = self.shape[0] * self.shape[1]
        self.step = max(1, BLOCK // self.width)
        middle, trailing = _flat(sheet.dims[first:second]), _flat(sheet.dims[second:])
        self.compiled = [
            Compiled(formula, middle, trailing, dtype)
            for formula, dtype in zip(formulas, self.dtypes, strict=True)
        ]
        used = {name for formula in formulas for name in symbols_of(formula)}
        self._fields = [
            {n: v for n, v in dim.fields.items() if n in used} for dim in sheet.dims[:first]
        ]

    @property
    def numeric(self) -> list[Column]:
        """The columns that hold numbers."""
        return [c for c in self.columns if c.formula is not None]

    def _values(self, first: int, stop: int) -> dict[str, Array]:
        """The leading symbols over a range of leading rows."""
        values: dict[str, Array] = {}
        if self.leading_sizes:
            places = np.unravel_index(np.arange(first, stop), self.leading_sizes)
            for place, fields in zip(places, self._fields, strict=True):
                values |= {name: column[place] for name, column in fields.items()}
        return values

    def fill(self, first: int, stop: int, out: list[Array]) -> None:
        """Evaluate leading rows ``first`` to ``stop`` into one flat array a numeric column."""
        for start in range(first, stop, self.step):
            size = min(stop, start + self.step) - start
            values = self._values(start, start + size)
            low = (start - first) * self.width
            for column, target in zip(self.compiled, out, strict=True):
                block = target[low : low + size * self.width].reshape(size, *self.shape)
                column.fill(
                    block, {n: v.astype(column.dtype, copy=False) for n, v in values.items()}
                )

    def buffers(self, leading: int) -> list[Array]:
        """Return arrays with room for so many leading rows."""
        return [np.empty(leading * self.width, dtype) for dtype in self.dtypes]

    def materialise(
        self, *, threads: int | None = None, out: list[Array] | None = None
    ) -> list[Array]:
        """Return every numeric column whole, by as many threads as there are processors unless
        ``threads`` says; ``out`` is filled if it is given."""
        threads = os.cpu_count() or 1 if threads is None else threads
        result = self.buffers(self.leading) if out is None else out
        pieces = max(1, min(threads, self.leading))
        edges = [self.leading * i // pieces for i in range(pieces + 1)]

        def work(i: int) -> None:
            low, high = edges[i], edges[i + 1]
            self.fill(low, high, [a[low * self.width : high * self.width] for a in result])

        if pieces == 1:
            work(0)
        else:
            with ThreadPoolExecutor(pieces) as pool:
                list(pool.map(work, range(pieces)))
        return result

    def stream(self, first: int = 0, stop: int | None = None) -> Iterator[tuple[int, list[Array]]]:
        """Yield (first row, columns) block by block; the arrays are reused by the next block."""
        limit = self.leading if stop is None else stop
        buffers = self.buffers(min(self.step, max(0, limit - first)))
        for start in range(first, limit, self.step):
            end = min(limit, start + self.step)
            views = [b[: (end - start) * self.width] for b in buffers]
            self.fill(start, end, views)
            yield start * self.width, views

    def at(self, rows: Array) -> list[Array]:
        """Return the numeric columns of rows by their numbers in this table."""
        places = np.unravel_index(np.asarray(rows), [d.size for d in self.sheet.dims] or [1])
        values = {
            name: column[place]
            for dim, place in zip(self.sheet.dims, places, strict=False)
            for name, column in dim.fields.items()
        }
        found = []
        for column, dtype in zip(self.numeric, self.dtypes, strict=True):
            typed = {n: v.astype(dtype, copy=False) for n, v in values.items()}
            value = formula_value(column.formula or lift(0), typed, {})
            found.append(np.broadcast_to(np.asarray(value, dtype), np.shape(rows)))
        return found


def _flat(dims: list[Dim]) -> dict[str, Array]:
    """The fields of neighbouring dimensions over their flattened rows."""
    found: dict[str, Array] = {}
    sizes = [dim.size for dim in dims]
    for place, dim in enumerate(dims):
        before, after = prod(sizes[:place]), prod(sizes[place + 1 :])
        for name, values in dim.fields.items():
            found[name] = np.tile(np.repeat(values, after), before)
    return found


def _split(sheet: Sheet, formulas: list[Formula]) -> tuple[int, int]:
    """Where the middle and the trailing dimensions begin: the split that costs least a row."""
    sizes = [dim.size for dim in sheet.dims]
    best, least = (0, max(0, len(sizes) - 1)), float("inf")
    for second in range(len(sizes) + 1):
        trailing = prod(sizes[second:])
        for first in range(second + 1):
            middle = prod(sizes[first:second])
            if middle * trailing > MOST_CUBE and first < len(sizes):
                continue
            cost = sum(
                _passes(formula, sheet.dims[first:second], sheet.dims[second:])
                for formula in formulas
            )
            each = cost * (1 + 16 / trailing) + len(formulas) * (6 / trailing + 3 / middle)
            if each < least:
                best, least = (first, second), each
    return best


MOST_CUBE = 262_144
"""Rows of middle and trailing dimensions together, which are tabulated."""


def _passes(formula: Formula, middle: list[Dim], trailing: list[Dim]) -> int:
    """The passes ``Compiled`` would need, without building its tables."""
    tables = [
        {n: v[:1] for dim in dims for n, v in dim.fields.items()} for dims in (middle, trailing)
    ]
    return Compiled(formula, tables[0], tables[1], np.int64).passes
