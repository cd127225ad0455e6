"""The grid: axes turned into dimensions, impossible shapes left out before anything is counted.

A dimension holds the values of one field, or of several that only exist together: an expression
joins its field to the fields it uses, and a rule that some values break (n_kv_heads must divide
n_heads) joins the fields of the rule, of which the combinations that hold are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

import numpy as np

from paramcalc import rules
from paramcalc.build import ledger_of, plan
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.spec import ModelSpec
from paramcalc.sweep.axes import Axis
from paramcalc.sweep.expressions import Expression
from paramcalc.sweep.placing import DEPLOYMENT, of_model, placed
from paramcalc.sweep.values import check_load, check_values

Array = np.ndarray[Any, np.dtype[Any]]

WORDS: dict[str, Any] = {"dtype": "bf16", "kv_dtype": "bf16", "gpu": None}
"""Formats, and the kind of GPU if there is one: one sheet each."""
MOST_JOINED = 20_000_000
"""Combinations that may be tried where fields only exist together."""


@dataclass
class Dim:
    """One dimension: the values of its fields, in step."""

    fields: dict[str, Array]

    @property
    def size(self) -> int:
        """How many values."""
        return len(next(iter(self.fields.values())))

    def keep(self, mask: Array) -> None:
        """Keep the values where ``mask`` holds."""
        self.fields = {name: values[mask] for name, values in self.fields.items()}


@dataclass
class Sheet:
    """A part of the grid with one structure: a model, its switches and formats, and dimensions."""

    model: Model
    spec: ModelSpec
    words: dict[str, Any]
    dims: list[Dim]
    dropped: Counter[str] = field(default_factory=Counter)
    refused: bool = False

    @property
    def rows(self) -> int:
        """How many shapes."""
        return 0 if self.refused else prod(dim.size for dim in self.dims)

    def refuse(self, reason: str) -> None:
        """Leave out every row."""
        self.dropped[reason] += self.rows
        self.refused = True

    def shaped(self) -> dict[str, Array]:
        """Return each field's values, shaped so that they broadcast over the dimensions."""
        found: dict[str, Array] = {}
        for place, dim in enumerate(self.dims):
            shape = [1] * len(self.dims)
            shape[place] = dim.size
            found |= {name: values.reshape(shape) for name, values in dim.fields.items()}
        return found


def sheets(models: list[Model], axes: list[Axis]) -> Iterator[Sheet]:
    """Yield the sheets of a grid: models first, then switches, each in the order given.

    Raises ``InputError`` for a field that no model has, or a value that it cannot take.
    """
    _check_names(axes)
    switches = [a for a in axes if a.values is not None and not _is_numeric(a)]
    numeric = [a for a in axes if a not in switches]
    for model in models:
        for choice in product(*(a.values or () for a in switches)):
            words = dict(zip((a.field for a in switches), choice, strict=True))
            fields = {n: v for n, v in words.items() if n not in WORDS}
            plain = model.with_(**_placeable(fields, words, numeric)) if fields else model
            for part in _split_experts(numeric):
                yield _sheet(plain, part, _settled(plain, words))


def _settled(model: Model, words: dict[str, Any]) -> dict[str, Any]:
    """Formats and GPU of a sheet; on a GPU weights are as released unless stated, as in fit."""
    found = WORDS | words
    if found["dtype"] == RELEASED or (found["gpu"] is not None and "dtype" not in words):
        found["dtype"] = model.released_format
    return found


RELEASED = "released"
"""The format that a model's weights were released in."""


def _is_numeric(axis: Axis) -> bool:
    from paramcalc.symbolic import NAMES

    last = axis.field.rpartition(".")[2]
    return last in NAMES or axis.field in DEPLOYMENT or axis.values is None


def _check_names(axes: list[Axis]) -> None:
    names = [axis.field for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: two axes for one field; give its values once")


def _placeable(
    fields: dict[str, Any], words: dict[str, Any], numeric: list[Axis]
) -> dict[str, Any]:
    """The switches, with whatever numbers the structure needs to be valid by itself."""
    given = {a.field: max(a.values) for a in numeric if a.values and "." not in a.field}
    needed: dict[str, Any] = {n: given[n] for n in ("n_experts", "top_k", "context") if n in given}
    return of_model(needed, words) | fields


def _split_experts(axes: list[Axis]) -> Iterator[list[Axis]]:
    """0 experts is another structure: split an axis that mixes it with more."""
    place = next((i for i, a in enumerate(axes) if a.field == "n_experts" and a.values), None)
    values = axes[place].values if place is not None else None
    if place is None or values is None or 0 not in values:
        yield axes
        return
    for part in ((0,), tuple(v for v in values if v)):
        if part:
            yield [a._replace(values=part) if i == place else a for i, a in enumerate(axes)]


def _sheet(model: Model, axes: list[Axis], words: dict[str, Any]) -> Sheet:
    sheet = Sheet(model, model.spec, words, [])
    dense = any(a.field == "n_experts" and a.values == (0,) for a in axes)
    waiting = []
    for axis in axes:
        if axis.values is None:
            waiting.append(axis)
            continue
        values = axis.values
        if dense and axis.field == "top_k":
            sheet.dropped["top_k has no meaning without experts"] += len(values) - 1
            values = values[:1]
        if of_model({axis.field: values}, words):
            check_values(sheet.spec, axis.field, values)
        else:
            check_load(axis.field, values)
        sheet.dims.append(Dim({axis.field: np.array(values, dtype=np.int64)}))
    _resolve(sheet, waiting)
    _apply_rules(sheet)
    if sheet.rows:  # what is left must be valid in every other way too: ask the calculator once
        first = {n: int(v[0]) for dim in sheet.dims for n, v in dim.fields.items()}
        model.with_(**of_model(first, words))
    return sheet


def _resolve(sheet: Sheet, waiting: list[Axis]) -> None:
    """Add the fields given by expressions, each once the fields it uses are there."""
    names = {a.field for a in waiting}
    while waiting:
        ready = None
        for axis in waiting:
            expression = _expression(sheet, axis, names)
            if not expression.names & {a.field for a in waiting}:
                ready = (axis, expression)
                break
        if ready is None:
            axis = waiting[0]
            raise InputError(
                f"{axis.field} = {axis.expression}: refers to itself; break the circle"
            )
        waiting.remove(ready[0])
        _add(sheet, *ready)


def _expression(sheet: Sheet, axis: Axis, names: set[str]) -> Expression:
    from paramcalc.spelling import ALIASES

    known = {name for dim in sheet.dims for name in dim.fields} | names
    known |= {n for n, v in _numbers(sheet.spec).items() if v is not None}
    aliases = {short for short, full in ALIASES.items() if full in known}
    text = axis.expression or ""
    expression = Expression(text, axis.field, known | aliases)
    expression.names = {ALIASES.get(n, n) for n in expression.names}
    return expression


def _numbers(spec: ModelSpec) -> dict[str, int | None]:
    return {n: v for n in type(spec).model_fields if type(v := getattr(spec, n)) is int}


def _add(sheet: Sheet, axis: Axis, expression: Expression) -> None:
    from paramcalc.spelling import ALIASES

    used = [d for d in sheet.dims if expression.names & d.fields.keys()]
    if not used:
        sheet.dims.append(Dim({}))
        used = [sheet.dims[-1]]
        size = 1
    else:
        used = [_join(sheet, used)]
        size = used[0].size
    values: dict[str, Any] = dict(_numbers(sheet.spec)) | used[0].fields
    values |= {short: values[full] for short, full in ALIASES.items() if full in values}
    ratio = expression.value(values)
    top, bottom = np.broadcast_to(ratio.top, size), np.broadcast_to(ratio.bottom, size)
    found = top // bottom
    above, broken = found > rules.MOST_SIZE, top % bottom != 0
    codes = np.select([above, broken, found < 1], [1, 2, 3], 0)
    used[0].fields[axis.field] = np.where(above, 0, found).astype(np.int64)
    reasons = (f"above {rules.MOST_SIZE:,}", "not a whole number", "below 1")
    for code, reason in enumerate(reasons, start=1):
        keep = codes != code
        _drop(sheet, used[0], keep, f"{axis.field} = {expression.text} is {reason}")
        codes = codes[keep]


def _drop(sheet: Sheet, dim: Dim, mask: Array, reason: str) -> None:
    lost = int(len(mask) - mask.sum())
    if lost:
        others = sheet.rows // dim.size if dim.size else 0
        dim.keep(mask)
        sheet.dropped[reason] += lost * others


def _join(sheet: Sheet, dims: list[Dim]) -> Dim:
    """Make one dimension of several, in the place of the first: every combination, in row order."""
    if len(dims) == 1:
        return dims[0]
    total = prod(dim.size for dim in dims)
    if total > MOST_JOINED:
        names = ", ".join(name for dim in dims for name in dim.fields)
        raise InputError(f"{names}: {total:,} combinations to try together; thin one of them out")
    places = np.unravel_index(np.arange(total), [dim.size for dim in dims])
    joined = Dim(
        {
            name: values[place]
            for dim, place in zip(dims, places, strict=True)
            for name, values in dim.fields.items()
        }
    )
    first = next(i for i, dim in enumerate(sheet.dims) if any(dim is d for d in dims))
    sheet.dims = [d for d in sheet.dims if not any(d is other for other in dims)]
    sheet.dims.insert(first, joined)
    return joined


def _apply_rules(sheet: Sheet) -> None:
    """Leave out what breaks a rule, joining the dimensions that a broken rule spans."""
    again = True
    while again and sheet.rows:
        again = False
        for fit in _fits(sheet):
            broken = np.asarray(fit.broken)
            if not broken.any():
                continue
            spanned = [d for i, d in enumerate(sheet.dims) if broken.ndim and broken.shape[i] > 1]
            if not spanned:
                sheet.dropped[fit.rule] += sheet.rows
                sheet.dims[0].keep(np.zeros(sheet.dims[0].size, dtype=bool))
                return
            lost = broken.reshape(-1)
            _drop(sheet, _join(sheet, spanned), ~lost, fit.rule)
            again = True
            break


def _fits(sheet: Sheet) -> Iterator[rules.Fit]:
    """Every rule on the sheet's arrays: the model's, then those of sharing it out over GPUs."""
    values = sheet.shaped()
    spec = placed(sheet.spec, of_model(values, sheet.words))
    yield from rules.fits(spec)
    if sheet.words["gpu"] is not None:
        from paramcalc.deploy import columns

        gpus, tp = (values.get(name, DEPLOYMENT[name]) for name in ("gpus", "tp"))
        yield from columns.fits(ledger_of(plan(spec)), gpus, tp)
