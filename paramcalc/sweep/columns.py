"""Columns: every quantity the calculator knows, every field, under stable names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from types import NoneType
from typing import Any, NamedTuple, cast

from paramcalc import formats
from paramcalc.build import ledger_of, plan
from paramcalc.deploy import columns as deployed
from paramcalc.deploy.hardware import Accelerator
from paramcalc.errors import InputError, did_you_mean
from paramcalc.ledger import ROLES, Ledger
from paramcalc.numbers import Num
from paramcalc.quantities import flops, params
from paramcalc.quantities.catalogue import CATALOGUE, At, Known
from paramcalc.sight import Chunk
from paramcalc.spec import ModelSpec
from paramcalc.sweep.grid import WORDS, Sheet
from paramcalc.sweep.intervals import divides
from paramcalc.sweep.placing import DEPLOYMENT, of_model, placed
from paramcalc.symbols import Formula, lift, symbol

SOLVED = "attention_equals_matmuls_at"
"""Not a fold: solved, in closed form where attention is not in chunks."""
MOST_WINDOWS = 8
"""Sizes of windows that vary: each doubles the lines of ``flops.equal_at``."""
DEPLOYED = (
    "dtype",
    "gpu_bytes_needed",
    "gpu_free_bytes",
    "tokens_per_second",
    "cost_per_million_tokens",
)
"""What is shown of a model on GPUs."""
DEFAULT = ("params", "active_params", "flops_per_token", "weight_bytes", "kv_bytes")


class Column(NamedTuple):
    """A column: its name, unit, and its formula on a sheet's symbols, or the text it repeats."""

    name: str
    unit: str
    formula: Formula | None
    text: str | None = None


def known(axes: list[str]) -> dict[str, str]:
    """Return the names of all columns with their units."""
    names = {"model": "name", "dtype": "name", "kv_dtype": "name"}
    names |= {name: _unit_of(name) for name in DEPLOYMENT}
    names |= {axis: _unit_of(axis) for axis in axes}
    names |= {key: q.unit for key, q in CATALOGUE.items()}
    names["weight_bytes"] = "bytes"
    names |= {key: column.unit for key, column in deployed.COLUMNS.items()}
    return names | {f"params_{role}": "parameters" for role in ROLES}


def how_known(name: str, kinds: Collection[Accelerator] = ()) -> Known:
    """Return how a column is known, on some kinds of GPU the least of it; names and parameters are
    exact."""
    if name == "gpu_bytes" and any(kind.known("visible") == "assumed" for kind in kinds):
        return "assumed"
    if name in deployed.COLUMNS:
        return deployed.COLUMNS[name].known
    if name == "weight_bytes":
        return "derived"
    return CATALOGUE[name].known if name in CATALOGUE else "exact"


def _unit_of(name: str) -> str:
    from paramcalc.spelling import TOKEN_FIELDS

    if name in TOKEN_FIELDS:
        return "tokens"
    if name in WORDS:
        return "name"
    return _UNITS.get(name, "elements")


_UNITS = {"batch": "sequences", "gpus": "GPUs", "tp": "GPUs"}


def check(names: list[str], axes: list[str]) -> None:
    """Raise ``InputError`` for the first name that is no column."""
    columns = known(axes)
    for name in names:
        if name not in columns:
            near = did_you_mean(name, columns) or "; paramcalc sweep --list-columns lists them"
            raise InputError(f"{name}: unknown column{near}")


def columns_of(sheet: Sheet, names: list[str]) -> list[Column]:
    """Return the columns of a sheet: its formulas, derived by counting on symbols."""
    symbols: dict[str, Any] = {
        name: int(values[0]) if dim.size == 1 else symbol(name, int(values.max(initial=1)))
        for dim in sheet.dims
        for name, values in dim.fields.items()
    }
    spec = placed(sheet.spec, of_model(symbols, sheet.words))
    ledger = ledger_of(plan(spec))
    kv_bits = formats.kv_format(str(sheet.words["kv_dtype"])).bits
    n = symbols.get("context", sheet.spec.context or sheet.model.context)
    at = At(cast(Num, n), symbols.get("batch", DEPLOYMENT["batch"]), kv_bits)
    units = known(names)
    own = [name for name in names if name in deployed.COLUMNS]
    there = _on_gpus(sheet, own, symbols, spec, ledger, at) if own else None
    found = []
    for name in names:
        if there is not None and name in deployed.COLUMNS:
            found.append(Column(name, units[name], lift(deployed.COLUMNS[name].of(there))))
        else:
            found.append(_column(sheet, name, units[name], symbols, ledger, at))
    return found


def _on_gpus(
    sheet: Sheet,
    names: list[str],
    symbols: dict[str, Any],
    spec: ModelSpec,
    ledger: Ledger,
    at: At,
) -> deployed.Placed:
    """The sheet's model on its kind of GPU. Raises ``InputError`` where none is named."""
    gpu = sheet.words["gpu"]
    if gpu is None:
        raise InputError(f"{names[0]}: is a figure of a GPU; add --gpu h100")
    sizes = {key: symbols.get(key, size) for key, size in DEPLOYMENT.items()}
    fmt = sheet.model.format(str(sheet.words["dtype"]))
    timed = any(deployed.COLUMNS[name].timed for name in names)
    sizes["context"] = at.n
    return deployed.Placed(ledger, gpu, fmt, at.kv_bits, sizes, spec.vocab_size, timed=timed)


def _column(
    sheet: Sheet, name: str, unit: str, symbols: dict[str, Any], ledger: Ledger, at: At
) -> Column:
    if name in symbols:
        return Column(name, unit, lift(symbols[name]))
    if name in DEPLOYMENT:
        return Column(name, unit, lift(DEPLOYMENT[name]))
    if name == "model":
        return Column(name, unit, None, sheet.model.name)
    if name in sheet.words:
        value = sheet.words[name]
        value = getattr(value, "name", value)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return Column(name, unit, None, text)
    if name == SOLVED:
        return Column(name, unit, _solved(sheet, ledger))
    return Column(name, unit, lift(_fold(sheet, name)(ledger, at)))


def _solved(sheet: Sheet, ledger: Ledger) -> Formula:
    """Raise ``InputError`` where some shapes may have no crossover, or none in closed form."""
    sights = {operation.sight for operation in ledger.operations}
    varied = {sight.most for sight in sights if type(sight.most) not in (int, NoneType)}
    if any(isinstance(sight, Chunk) for sight in sights):
        why = "has attention in chunks"
    elif len(varied) > MOST_WINDOWS:
        why = f"has more than {MOST_WINDOWS} windows that vary"
    else:
        why = "has a window in every layer, and some shapes none"
        spans = {
            name: (int(values.min()), int(values.max()))
            for dim in sheet.dims
            for name, values in dim.fields.items()
            if dim.size
        }
        with suppress(ValueError):
            formula = lift(flops.crossover(ledger))
            if divides(formula, spans):  # else some shape has no layer without a window
                return formula
    name = sheet.model.name
    raise InputError(f"{SOLVED}: {name} {why}; leave the column out, or use paramcalc {name}")


def _fold(sheet: Sheet, name: str) -> Callable[[Ledger, At], Any]:
    if name == "weight_bytes":
        fmt = formats.find(str(sheet.words["dtype"]))
        return lambda ledger, at: formats.weight_bytes(ledger, fmt)
    if name.startswith("params_"):
        role: Any = name.removeprefix("params_")
        return lambda ledger, at: params.of_roles(ledger.tensors, role)
    if name in CATALOGUE:
        return CATALOGUE[name].of
    value = getattr(sheet.spec, name, None)
    return lambda ledger, at: value or 0
