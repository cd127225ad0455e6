"""Models side by side: each component and quantity, and its difference from the first model."""

from __future__ import annotations

from typing import Any

from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE, At, evaluate
from paramcalc.views.tables import Cell, Section, Size

_SHOWN = (
    ("params", "total"),
    ("active_params", "active"),
    ("matmul_flops_per_token", "matmuls"),
    ("attention_flops_per_token", "attention"),
    ("flops_per_token", "forward"),
    ("weight_bytes_bf16", "weights bf16"),
    ("kv_bytes_per_token", "KV first token"),
    ("kv_bytes", "KV cache"),
)


def records(
    models: list[Model], context: int | None, batch: int, kv_bits: int
) -> list[dict[str, Any]]:
    """Return one record a figure: its name, unit and each model's value, raw integers.

    Every model is taken at ``context``, or at its own if that is None.
    """
    values = [
        evaluate(m.ledger, At(m.context if context is None else context, batch, kv_bits))
        for m in models
    ]
    names = unique([m.name for m in models])
    found: list[dict[str, Any]] = []
    for role in ROLES:
        counts = [m.params.by_component.get(role, 0) for m in models]
        if any(counts):
            found.append(_record(f"params_{role}", "parameters", names, counts))
    found += [
        _record(key, quantity.unit, names, [v[key] for v in values])
        for key, quantity in CATALOGUE.items()
    ]
    return found


def _record(key: str, unit: str, names: list[str], values: list[Any]) -> dict[str, Any]:
    return {"quantity": key, "unit": unit, **dict(zip(names, values, strict=True))}


def unique(names: list[str]) -> list[str]:
    """Return the names, numbered where one stands twice."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: i + 1].count(name)})"
        for i, name in enumerate(names)
    ]


def sections(models: list[Model], found: list[dict[str, Any]]) -> list[Section]:
    """Return the comparison as tables that fit a terminal.

    Two models stand with their difference; more stand two by two beside the first.
    """
    names = unique([m.name for m in models])
    first, others = names[0], names[1:]
    pairs = [others[i : i + 2] for i in range(0, len(others), 2)]
    return [_table(first, pair, found, change=len(names) == 2) for pair in pairs]


def _table(first: str, others: list[str], found: list[dict[str, Any]], *, change: bool) -> Section:
    labels = {f"params_{role}": role for role in ROLES} | dict(_SHOWN)
    names = [first, *others]
    columns = [("", "left"), *((name, "right") for name in names)]
    table = Section(
        f"{', '.join(others)} against {first}", columns + ([("change", "right")] if change else [])
    )
    for row in found:
        if row["quantity"] in labels:
            values = [row[name] for name in names]
            cells: list[Cell] = [_cell(v, row["unit"]) for v in values]
            if change:
                cells.append(_change(values[0], values[1]))
            table.add(labels[row["quantity"]], *cells, strong=row["quantity"] == "params")
    table.notes.append("parameters by component, FLOPs a token, bytes; each at its own context")
    return table


def _cell(value: int | None, unit: str) -> Cell:
    return Size(value, brief=True) if unit == "bytes" and value is not None else value


def _change(was: int | None, now: int | None) -> Cell:
    return None if was is None or now is None or was == now else f"{now - was:+,}"
