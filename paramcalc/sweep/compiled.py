"""A formula compiled for blocks of rows.

The ledger's own counting code runs once on symbols and yields a sum of products. A block of rows is
a cube: leading, middle and trailing dimensions (p, j, x). Each term goes where its symbols are:

* without trailing symbols: into ``flat``, computed on (p, j) alone;
* without middle symbols: into ``edge``, computed on (p, x) alone;
* with both: an outer product of a (p, j) and an (x) factor, terms with one x factor together;
* with a minimum, maximum or quotient that spans groups: on the cube itself, each part of it only on
  the dimensions it depends on.

So a column whose terms never multiply middle by trailing symbols costs one pass over memory, an
addition of two small arrays that broadcast; each different x factor costs two more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np

from paramcalc.numbers import ONE, fixed_power
from paramcalc.symbols import Atom, Formula, Product

Array = np.ndarray[Any, np.dtype[Any]]
Terms = dict[Product, int]


class Sum:
    """Terms over leading symbols and the flattened rows of an inner group of dimensions.

    ``inner`` gives the inner symbols as arrays over those rows.
    """

    def __init__(self, terms: Terms, inner: Mapping[str, Array], dtype: Any) -> None:
        self.dtype = dtype
        groups: dict[Product, list[tuple[int, Product]]] = {}
        for product, count in terms.items():
            inside = tuple(f for f in product if names_of(f[0]) <= inner.keys())
            outside = tuple(f for f in product if f not in inside)
            groups.setdefault(inside, []).append((count, outside))
        typed = {name: values.astype(dtype, copy=False) for name, values in inner.items()}
        cache: dict[Atom, Any] = {}
        self._groups = [
            (np.asarray(product_value(inside, typed, cache)) if inside else None, terms_)
            for inside, terms_ in sorted(groups.items(), key=lambda item: len(item[0]))
        ]
        self._width = len(next(iter(inner.values()))) if inner else 1

    def __bool__(self) -> bool:
        return bool(self._groups)

    def value(self, leading: Mapping[str, Array], size: int) -> Array:
        """Return the (size, inner rows) array for ``size`` leading rows."""
        cache: dict[Atom, Any] = {}
        result = np.zeros((size, self._width), self.dtype)
        for table, terms in self._groups:
            total: Any = 0
            for count, factors in terms:
                total = total + product_value(factors, leading, cache, count)
            column = np.asarray(total, self.dtype).reshape(-1, 1)
            result += column if table is None else column * table
        return result


class Compiled:
    """One column of a grid, over cubes of (leading, middle, trailing) rows.

    ``middle`` and ``trailing`` give their symbols as arrays over their flattened rows. ``dtype`` is
    int64, or object where the top corner leaves it: Python ints, exact and slower.
    """

    def __init__(
        self,
        formula: Formula,
        middle: Mapping[str, Array],
        trailing: Mapping[str, Array],
        dtype: Any,
    ) -> None:
        self.dtype = dtype
        flat, edge, self._mixed = {}, {}, {}
        cross: dict[Product, Terms] = {}
        for product, count in formula.terms.items():
            names = {name for atom, _ in product for name in names_of(atom)}
            if not all(_one_group(names_of(atom), middle, trailing) for atom, _ in product):
                self._mixed[product] = count
            elif not names & trailing.keys():
                flat[product] = count
            elif not names & middle.keys():
                edge[product] = count
            else:
                inside = tuple(f for f in product if names_of(f[0]) <= trailing.keys())
                rest = tuple(f for f in product if f not in inside)
                cross.setdefault(inside, {})[rest] = count
        typed = {name: values.astype(dtype, copy=False) for name, values in trailing.items()}
        cache: dict[Atom, Any] = {}
        self._flat = Sum(flat, middle, dtype)
        self._edge = Sum(edge, trailing, dtype)
        self._cross = [
            (np.asarray(product_value(inside, typed, cache)), Sum(rest, middle, dtype))
            for inside, rest in cross.items()
        ]
        self._middle = {n: v.astype(dtype, copy=False)[None, :, None] for n, v in middle.items()}
        self._trailing = {n: v[None, None, :] for n, v in typed.items()}

    @property
    def passes(self) -> int:
        """How many times a block is gone over."""
        first = 1 if self._flat or self._edge or not self._cross else 0
        return first + 2 * len(self._cross) - (0 if first else 1) + 8 * len(self._mixed)

    def fill(self, out: Array, leading: Mapping[str, Array]) -> None:
        """Write a cube: ``out`` is (leading, middle, trailing).

        What depends on fewer dimensions is computed for the whole cube; the passes over full rows
        then go in steps that stay in a core's cache.
        """
        size = len(out)
        flat = self._flat.value(leading, size)[:, :, None] if self._flat else None
        edge = self._edge.value(leading, size)[:, None, :] if self._edge else None
        cross = [(table, rest.value(leading, size)[:, :, None]) for table, rest in self._cross]
        if self.passes == 1:
            _write(out, flat, edge, cross, None)
        else:
            step = max(1, IN_CACHE // (out.shape[1] * out.shape[2]))
            scratch = np.empty((min(step, size), *out.shape[1:]), self.dtype)
            for start in range(0, size, step):
                part = slice(start, min(size, start + step))
                _write(
                    out[part],
                    None if flat is None else flat[part],
                    None if edge is None else edge[part],
                    [(table, rest[part]) for table, rest in cross],
                    scratch[: part.stop - start],
                )
        if self._mixed:
            self._add_mixed(out, leading)

    def _add_mixed(self, out: Array, leading: Mapping[str, Array]) -> None:
        """Add what spans groups, in steps that stay in the cache."""
        step = max(1, MIXED_IN_CACHE // (out.shape[1] * out.shape[2]))
        for start in range(0, len(out), step):
            part = slice(start, start + step)
            names = {n: v[part, None, None] for n, v in leading.items()}
            names |= self._middle | self._trailing
            cache: dict[Atom, Any] = {}
            for product, count in self._mixed.items():
                out[part] += product_value(product, names, cache, count)


IN_CACHE = 16_384
"""Rows that several passes go over before the next ones."""
MIXED_IN_CACHE = 32_768
"""The same for terms that take tens of passes each."""


def _write(
    out: Array,
    flat: Array | None,
    edge: Array | None,
    cross: list[tuple[Array, Array]],
    scratch: Array | None,
) -> None:
    started = True
    if flat is not None and edge is not None:
        np.add(flat, edge, out=out)
    elif flat is not None or edge is not None:
        out[...] = flat if flat is not None else edge
    else:
        started = False
    for table, rest in cross:
        if started and scratch is not None:
            np.multiply(rest, table, out=scratch)
            np.add(out, scratch, out=out)
        else:
            np.multiply(rest, table, out=out)
        started = True
    if not started:
        out[...] = 0


def _one_group(names: set[str], *groups: Mapping[str, Array]) -> bool:
    """Whether an atom's symbols are all in one group, the one outside all groups included."""
    return all(names <= group.keys() or not names & group.keys() for group in groups)


def product_value(
    factors: Product, names: Mapping[str, Any], cache: dict[Atom, Any], count: int = 1
) -> Any:
    """Return ``count`` times a product where ``names`` gives its symbols: ints or arrays.

    Small factors are multiplied first, so that few passes are over what all of them span.
    """
    values = [(atom_value(atom, names, cache), power) for atom, power in factors]
    result: Any = count
    for value, power in sorted(values, key=lambda item: np.size(item[0])):
        for _ in range(power):
            result = result * value
    return result


def atom_value(atom: Atom, names: Mapping[str, Any], cache: dict[Atom, Any]) -> Any:
    """Return an atom's value; ``cache`` holds those already found for these names."""
    if not atom.parts:
        return names[atom.name]
    if atom not in cache:
        parts = (formula_value(part, names, cache) for part in atom.parts)
        cache[atom] = reduce(_APPLY[atom.name], parts)
    return cache[atom]


_APPLY: dict[str, Callable[[Any, Any], Any]] = {
    "floor": lambda a, b: a // b,
    "ceil": lambda a, b: -(-a // b),
    "min": np.minimum,
    "max": np.maximum,
    "power": fixed_power,
}


def formula_value(formula: Formula, names: Mapping[str, Any], cache: dict[Atom, Any]) -> Any:
    """Return a formula's value where ``names`` gives its symbols; small terms are added first."""
    terms = [product_value(p, names, cache, count) for p, count in formula.terms.items()]
    return sum(sorted(terms, key=np.size))


def names_of(atom: Atom) -> set[str]:
    """Return the symbols an atom depends on."""
    if not atom.parts:
        return {atom.name}
    return {name for part in atom.parts for name in symbols_of(part)}


def symbols_of(formula: Formula) -> set[str]:
    """Return the symbols a formula depends on."""
    return {name for product in formula.terms for atom, _ in product for name in names_of(atom)}


def most(formula: Formula, top: Mapping[str, int]) -> int:
    """Return a bound on every partial sum of a formula, in Python ints.

    The sum of the terms' absolute values at the largest value of each symbol: no order of adding
    them up, and none of their factors, can leave it. Every symbol is at least 1.
    """
    return _bounds(formula, top)[1]


def _bounds(formula: Formula, top: Mapping[str, int]) -> tuple[int, int]:
    """A bound on a formula's absolute value, and one on whatever is computed on the way to it."""
    value = peak = 0
    for product, count in formula.terms.items():
        size = abs(count)
        for atom, power in product:
            own, inside = _atom_bounds(atom, top)
            size *= max(1, own) ** power
            peak = max(peak, inside)
        value += size
    return value, max(value, peak)


def _atom_bounds(atom: Atom, top: Mapping[str, int]) -> tuple[int, int]:
    if not atom.parts:
        return top[atom.name], top[atom.name]
    bounds = [_bounds(part, top) for part in atom.parts]
    own, peak = bounds[0][0], max(inside for _, inside in bounds)
    if atom.name in ("floor", "ceil"):
        return own // _least(atom.parts[1]) + 1, peak
    if atom.name == "power":
        return max(own, ONE), max(peak, ONE * ONE)
    return max(bound for bound, _ in bounds), peak


def _least(formula: Formula) -> int:
    """A bound from below, at least 1: each product of symbols is 1 or more."""
    plain = all(
        count > 0 and not any(atom.parts for atom, _ in product)
        for product, count in formula.terms.items()
    )
    return sum(formula.terms.values()) if plain else 1
