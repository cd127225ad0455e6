"""Models side by side: each component and quantity, and its difference from the first model."""

from __future__ import annotations

from typing import Any

from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE, At, evaluate
from paramcalc.views.tables import Cell, Change, Section, Size

_SHOWN = {
    "context": "context",
    "n_layers": "layers",
    "d_model": "d_model",
    **{f"params_{role}": role for role in ROLES},
    "params": "total",
    "active_params": "active",
    "matmul_flops_per_token": "FLOPs, matmuls",
    "attention_flops_per_token": "FLOPs, attention",
    "flops_per_token": "FLOPs, forward",
    "weight_bytes_bf16": "weights bf16",
    "kv_bytes_per_token": "KV, first token",
    "kv_bytes": "KV cache",
}
"""What a person sees of the comparison, and how it is called."""


def records(
    models: list[Model], context: int | None, batch: int, kv_bits: int
) -> list[dict[str, Any]]:
    """Return one record a figure: its name, unit and each model's value, raw integers.

    Every model is taken at ``context``, or at its own if that is None.
    """
    names = unique([m.name for m in models])
    at = [m.context if context is None else context for m in models]
    found = [
        _record("context", "tokens", names, at),
        _record(
            "n_layers", "layers", names, [sum(k.n_layers for k in m.plan.layers) for m in models]
        ),
        _record("d_model", "elements", names, [m.spec.d_model for m in models]),
    ]
    for role in ROLES:
        counts = [m.params.by_component.get(role, 0) for m in models]
        if any(counts):
            found.append(_record(f"params_{role}", "parameters", names, counts))
    values = [evaluate(m.ledger, At(n, batch, kv_bits)) for m, n in zip(models, at, strict=True)]
    found += [
        _record(key, quantity.unit, names, [v[key] for v in values])
        for key, quantity in CATALOGUE.items()
    ]
    return found


def _record(key: str, unit: str, names: list[str], values: list[Any]) -> dict[str, Any]:
    changes = {
        f"{name} change": None if values[0] is None or value is None else value - values[0]
        for name, value in zip(names[1:], values[1:], strict=True)
    }
    return {"quantity": key, "unit": unit, **dict(zip(names, values, strict=True)), **changes}


def unique(names: list[str]) -> list[str]:
    """Return the names, numbered where one stands twice or is a key of the record itself."""
    taken, found = {*names, "quantity", "unit"}, []
    for name in names:
        own, number = name, 1
        if names.count(name) > 1 or name in ("quantity", "unit"):
            while own in taken:
                own, number = f"{name} ({number})", number + 1
        taken.add(own)
        found.append(own)
    return found


def sections(
    models: list[Model], found: list[dict[str, Any]], *, context: int | None, width: int
) -> list[Section]:
    """Return the comparison as tables no wider than ``width``.

    Two models stand with their difference; more stand beside the first, as many as fit.
    """
    names = unique([m.name for m in models])
    first, others = names[0], names[1:]
    room = max(2, (width - _LABEL) // _COLUMN - 1)
    rows = [others[i : i + room] for i in range(0, len(others), room)]
    tables = [_table(first, row, found, context, change=len(names) == 2) for row in rows]
    if len(names) > 2:
        tables += [_changes(first, row, found) for row in rows]
    return tables


def _changes(first: str, others: list[str], found: list[dict[str, Any]]) -> Section:
    table = Section(f"change against {first}", [("", "left"), *((n, "right") for n in others)])
    for row in found:
        if row["quantity"] in _SHOWN:
            size = row["unit"] == "bytes"
            cells = [_change(row[first], row[name], size) for name in others]
            table.add(_SHOWN[row["quantity"]], *cells, strong=row["quantity"] == "params")
    return table


_LABEL, _COLUMN = 18, 19
"""Columns that a label and a figure take, gaps included."""


def _table(
    first: str, others: list[str], found: list[dict[str, Any]], context: int | None, *, change: bool
) -> Section:
    names = [first, *others]
    columns = [("", "left"), *((name, "right") for name in names)]
    table = Section(
        f"{', '.join(others)} against {first}", columns + ([("change", "right")] if change else [])
    )
    for row in found:
        if row["quantity"] in _SHOWN:
            values = [row[name] for name in names]
            size = row["unit"] == "bytes"
            cells: list[Cell] = [
                Size(v, brief=True) if size and v is not None else v for v in values
            ]
            if change:
                cells.append(_change(values[0], values[1], size))
            strong = row["quantity"] == "params"
            table.add(_SHOWN[row["quantity"]], *cells, strong=strong)
    at = "each at its own context" if context is None else f"at context {context:,}"
    table.notes.append(f"parameters by component, FLOPs of one token, bytes; {at}")
    return table


def _change(was: int | None, now: int | None, size: bool) -> Cell:
    return None if was is None or now is None or was == now else Change(now - was, size)
