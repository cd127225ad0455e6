"""Cells of a recalculated workbook held against counts on plain ints."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc import formats
from paramcalc.deploy import fitting
from paramcalc.formats import KV_FORMATS
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE
from paramcalc.spec import ModelSpec
from paramcalc.views.workbook.rows import LOOKUPS, ROWS
from paramcalc.views.workbook.summary import LABELS
from tests import office
from tests.views import figures_of

SAFE = 2**53
FLAG = "rounded above 2^53"
LACKS = "not in this format"
LINES = {key: row for row, (key, _, _) in enumerate(ROWS, start=4)}
"""Rows of sheet Deployment."""
LOOKED = {key: row for row, (key, _, _) in enumerate(LOOKUPS, start=5)}
"""Rows of sheet Lookups."""
_OTHERS = {
    "in the format of sheet Deployment": "weights",
    "rows of Tensors less the ledger's own sum": "same",
    "cells or rules that are wrong (Inputs, Deployment)": "broken",
}


class Edit(NamedTuple):
    """The deployment that a planner types for all models."""

    context: int
    batch: int
    dtype: str
    kv_dtype: str
    gpu: str
    gpus: int
    tp: int
    price: int

    def type(self, package: office.Package) -> None:
        """Type it into the column for all models."""
        cells = {
            "at_context": self.context,
            "batch": self.batch,
            "format": self.dtype,
            "kv_format": self.kv_dtype,
            "gpu": self.gpu,
            "gpus": self.gpus,
            "tp": self.tp,
            "price": self.price / 10**6,
        }
        for key, value in cells.items():
            package.put("Deployment", f"C{LINES[key]}", value)


def same(found: Any, exact: Any) -> bool:
    """Whether a cell holds a number: the integer itself below 2^53. Above, and for shares, as many
    digits as LibreOffice writes: 15."""
    if not isinstance(found, float):
        return False
    if isinstance(exact, float):
        return abs(found - exact) <= 1e-13 * abs(exact) + 1e-15
    return found == exact if abs(exact) < SAFE else abs(found - exact) <= 5e-15 * abs(exact)


def column_of(cells: dict[str, Any], column: str) -> dict[int, Any]:
    """A column of a sheet by row."""
    return {
        int(place[len(column) :]): value
        for place, value in cells.items()
        if place.startswith(column) and place[len(column) :].isdigit()
    }


def summary_rows(cells: office.Cells) -> dict[str, int]:
    """The rows of sheet Summary by the keys of ``figures_of``."""
    labels = column_of(cells["Summary"], "A")
    known = {quantity.label: key for key, quantity in CATALOGUE.items()} | _OTHERS
    known |= {label: key for key, label in LABELS.items()}
    first = next(row for row, label in labels.items() if label == "parameters")
    found: dict[str, int] = {}
    for row, label in labels.items():
        role = label if row < first else None
        key = role or known.get(label, f"weights {label}" if label in SCHEMES else label)
        found.setdefault(key, row)
    return found


class Held:
    """Collects the cells that are not what ints give."""

    def __init__(self, models: list[Model], cells: office.Cells) -> None:
        self.models, self.cells = models, cells
        self.width = max(len(t.shape) for m in models for t in m.ledger.tensors)
        self.rows = summary_rows(cells)
        self.wrong: list[Any] = []
        self.line = 5

    def cell(self, sheet: str, column: int, row: int) -> Any:
        """A cell, its column counted from 0."""
        return self.cells[sheet].get(f"{office.letters(column)}{row}")

    def hold(self, sheet: str, column: int, row: int, exact: Any, *what: str) -> None:
        """Note a cell that is not the integer."""
        found = self.cell(sheet, column, row)
        if not same(found, exact):
            self.wrong.append((sheet, *what, exact, found))

    def check(self, specs: list[ModelSpec], settings: list[dict[str, Any]]) -> None:
        """Hold Summary, Deployment, Tensors, Weights and One_GPU against counts on plain ints."""
        for number, (spec, own) in enumerate(zip(specs, settings, strict=True)):
            self._figures(number, spec, own)
            self._tensors(number, spec, own)
        assert not self.wrong, (len(self.wrong), self.wrong[:9])

    def _figures(self, number: int, spec: ModelSpec, own: dict[str, Any]) -> None:
        ledger, name = figures_of.ledger(spec), self.models[number].name
        kv_bits = KV_FORMATS[own["kv_dtype"]].bits
        sizes = {key: own[key] for key in ("context", "batch", "gpus", "tp")}
        sums = figures_of.summary(ledger, own["context"], own["batch"], kv_bits, own["dtype"])
        for key, exact in sums.items():
            self.hold("Summary", 2 + number, self.rows[key], exact, name, key)
            if abs(exact) > SAFE:
                flag = self.cell("Summary", 2 + len(self.models), self.rows[key])
                assert flag == FLAG, (name, key)
        broken = figures_of.broken(spec, ledger, own["gpus"], own["tp"])
        assert (self.cell("Summary", 2 + number, self.rows["broken"]) > 0) == broken, name
        there = figures_of.deployment(spec, ledger, own["gpu"], own["dtype"], kv_bits, sizes)
        for key, exact in there.items():
            if broken and key in figures_of.ANSWERS:
                continue
            self.hold("Deployment", 3 + number, LINES[key], exact, name, key)
        for key in figures_of.ANSWERS:
            if key not in there or broken:
                assert not self.cell("Deployment", 3 + number, LINES[key]), (name, key)
        free = figures_of.free_on(spec, ledger, own["dtype"], kv_bits, sizes)
        for label, bytes_ in free.items():
            if bytes_ is not None and not broken:
                self.hold("Summary", 2 + number, self.rows[label], bytes_, name, label)
                continue
            found = self.cell("Summary", 2 + number, self.rows[label]) or ""
            assert found == ("" if broken else LACKS), (name, label)
        self._verdict(number, broken, own)

    def _verdict(self, number: int, broken: bool, own: dict[str, Any]) -> None:
        column = 3 + number
        words = self.cell("Deployment", column, LINES["fits"])
        if broken:
            assert words == "check the rules"
        elif not fitting.serves(own["gpu"], SCHEMES[own["dtype"]]):
            assert words == LACKS
        else:
            free = self.cell("Deployment", column, LINES["free"])
            assert words == ("fits" if free >= 0 else "does not fit")

    def _tensors(self, number: int, spec: ModelSpec, own: dict[str, Any]) -> None:
        ledger, name = figures_of.ledger(spec), self.models[number].name
        for row in ledger.tensors:
            counts, held = figures_of.tensor(row, ledger, own["dtype"])
            places = [*range(4, 4 + len(row.shape)), *range(4 + self.width, 9 + self.width)]
            for place, exact in zip(places, counts, strict=True):
                self.hold("Tensors", place, self.line, exact, name, row.name)
            for place, exact in enumerate(held, start=2):
                self.hold("Weights", place, self.line, exact, name, row.name)
            part = figures_of.part(row, own["tp"])._replace(copies=1)
            for place, size in enumerate(part.shape, start=2):
                self.hold("One_GPU", place, self.line, size, name, row.name)
            for place, fmt in enumerate(SCHEMES.values(), start=3 + self.width):
                exact = formats.tensor_bytes(part, formats.settled(fmt, ledger))
                self.hold("One_GPU", place, self.line, exact, name, row.name, fmt.name)
            self.line += 1


def errors(cells: office.Cells) -> list[tuple[str, str, str]]:
    """Cells that hold an error."""
    return [
        (sheet, place, value)
        for sheet, own in cells.items()
        for place, value in own.items()
        if isinstance(value, str) and value.startswith(("#", "Err:"))
    ]
