"""The figures of a row by the names of their columns: a sweep's names for what a sweep has too."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from paramcalc.deploy import columns as deployed
from paramcalc.deploy.figures import MICRO
from paramcalc.fleet.row import Row
from paramcalc.ledger import ROLES
from paramcalc.quantities import params
from paramcalc.quantities.catalogue import CATALOGUE, At

Figure: TypeAlias = int | bool | str | Decimal | None
Fold: TypeAlias = Callable[[Row], Any]


def _figures() -> dict[str, Fold]:
    found: dict[str, Fold] = {}
    for key, quantity in CATALOGUE.items():
        needs = quantity.needs_context or key.startswith("kv_")
        found[key] = _of_row(quantity.of) if needs else _of_model(quantity.of)
    found["weight_bytes"] = lambda row: row.weight_bytes
    for role in ROLES:
        found[f"params_{role}"] = _part(role)
    for key, column in deployed.COLUMNS.items():
        if key.startswith("cost_"):
            found[key] = _priced(_working(column))
            found[f"{key}_dollars"] = _in_dollars(found[key])
        else:
            found[key] = _working(column) if column.timed else _of_placed(column.of)
    found["fits"] = lambda row: row.placed.free >= 0
    for name in ("context", "batch", "dtype", "kv_dtype"):
        found[name] = _stated(name)
    for name in ("tp", "pp"):
        found[name] = _ranks(name)
    return found


def _of_row(of: Callable[..., Any]) -> Fold:
    return lambda row: of(row.model.ledger, row.at)


def _of_model(of: Callable[..., Any]) -> Fold:
    return lambda row: of(row.model.ledger, At(1))


def _of_placed(of: Callable[..., Any]) -> Fold:
    return lambda row: of(row.placed)


def _working(column: deployed.Deployed) -> Fold:
    """A time or money: nothing where the model does not fit, so that no sum or order has it."""

    def figure(row: Row) -> Any:
        placed = row.served if column.timed else row.placed
        if placed.free < 0:
            row.unfit = True
            return None
        return column.of(placed)

    return figure


def _priced(of: Fold) -> Fold:
    return lambda row: None if row.gpu.price_per_hour_micro is None else of(row)


def _in_dollars(of: Fold) -> Callable[[Row], Decimal | None]:
    """Micro-dollars as dollars, exact."""

    def dollars(row: Row) -> Decimal | None:
        micro = of(row)
        if micro is None:
            return None
        whole, rest = divmod(micro, MICRO)
        return Decimal(f"{whole}.{f'{rest:06d}'.rstrip('0'):0<2}")

    return dollars


def _part(role: Any) -> Fold:
    return lambda row: params.of_roles(row.model.ledger.tensors, role)


def _stated(name: str) -> Fold:
    return lambda row: getattr(row, name)


def _ranks(name: str) -> Fold:
    return lambda row: getattr(row.layout, name)


FIGURES = _figures()
"""What a column holds for a row, by the column's name."""
NEEDS_GPU = {
    *deployed.COLUMNS,
    *(name for name in FIGURES if name.endswith("_dollars")),
    *("fits", "tp", "pp"),
}
"""Columns that only a row with a GPU has."""
