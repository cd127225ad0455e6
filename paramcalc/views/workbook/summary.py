"""The sheet that sums up: parameters, FLOPs, bytes, and the GPUs that hold a model."""

from __future__ import annotations

from typing import Any

from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities import flops, params
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sight import Blocks, BothCompressed, Chunk, Compressed
from paramcalc.symbols import Atom, Formula, lift
from paramcalc.views.cells import Writer
from paramcalc.views.workbook import figures
from paramcalc.views.workbook.book import COLOURS, Book
from paramcalc.views.workbook.column import Column
from paramcalc.views.workbook.inputs import MOST_WIDTH, Placed
from paramcalc.views.workbook.lists import FormatList, HardwareList, budget
from paramcalc.views.workbook.tensors import ModelRows

SOLVED = "attention_equals_matmuls_at"
SUMMED = ("params", "active_params")
"""Sums of the rows of sheet Tensors; every other figure is the catalogue's own formula."""
LABELS = {"attention_flops_per_token": "attention scores and values, states"}
"""Where the catalogue's own label says too little beside parameters by component."""
MOST_WINDOWS = 4


class Summary:
    """The sheet Summary, one column a model."""

    first = 3

    def __init__(
        self, book: Book, formats_: FormatList, hardware: HardwareList, models: list[Placed]
    ) -> None:
        self.book, self.formats, self.hardware, self.models = book, formats_, hardware, models
        self.start, self.end = 2, 2 + len(models)
        page = book.page("Summary", 40, 13, *(24,) * len(models), 22, 10)
        self.page = page
        page.text(0, 0, "Summary", "title")
        page.text(1, 0, "For the context, batch, formats and GPUs of sheet Deployment.", "note")
        page.heads(2, ["", "unit"])
        page.heads(2, (p.model.name for p in models), 2, over="numbers")
        page.heads(2, ["exactness"], self.end)
        page.freeze(3, 2)
        self.rows: dict[str, int] = {}
        self.labels: dict[str, tuple[str, str]] = {}
        self._at = self.first
        present = {t.role for p in models for t in p.ledger.tensors}
        self.roles = [role for role in ROLES if role in present]
        self._title("Parameters")
        for role in self.roles:
            self._row(role, role, "parameters")
        for key, quantity in CATALOGUE.items():
            if key == "matmul_flops_per_token":
                self._row("published", "published", "parameters")
                self._title("FLOPs")
            if key == "weight_bytes_fp32":
                self._title("Weights by format")
                self._row("weights", "in the format of sheet Deployment", "bytes")
                for fmt in formats_.plain:
                    self._row(f"weights {fmt.name}", fmt.name, "bytes")
            if key == "kv_bytes_per_token":
                self._title("Cache")
            if not key.startswith("weight_bytes_"):
                self._row(key, LABELS.get(key, quantity.label), quantity.unit)
        self._title(
            "Free on each GPU of sheet Deployment (tp of them a replica), were it of this kind"
        )
        for unit in hardware.units:
            self._row(f"gpu {unit.name}", unit.label, "bytes")
        self._title("Checks")
        self._row("same", "rows of Tensors less the ledger's own sum", "parameters")
        self._row("widest", f"widest dimension (INT is exact to {MOST_WIDTH:,})", "elements")
        self._row("broken", "cells or rules that are wrong (Inputs, Deployment)", "")

    def _title(self, text: str) -> None:
        self.page.text(self._at, 0, text, "group")
        self._at += 1

    def _row(self, key: str, label: str, unit: str) -> None:
        self.rows[key] = self._at
        self.labels[key] = (label, unit)
        self.page.text(self._at, 0, label)
        self.page.text(self._at, 1, unit, "note")
        self._at += 1

    def add(self, column: Column, rows: ModelRows, writer: Writer, number: int) -> None:
        """Write a model's figures, which are empty while a cell of its inputs cannot be used."""
        placed, place = column.placed, self.start + number
        self._right = f"{column.name('wrong')}=0"
        self._params(placed, rows, place)
        at = At(column.at("at_context"), column.at("batch"), column.at("kv_bits"))  # type: ignore[arg-type]
        for key, quantity in CATALOGUE.items():
            if key in SUMMED or key.startswith("weight_bytes_"):
                continue
            if key == SOLVED:
                self._solved(placed, writer, place)
                continue
            formula = lift(quantity.of(placed.ledger, at))
            self._put(key, place, writer.text(formula), formula.value)
        ledger = lift(params.total(placed.ledger))
        total = self.page.ref(self.rows["params"], place)
        self._put("same", place, f"{total}-({writer.text(ledger)})", 0)
        self._weights(placed, rows, column, place)
        self._fit(column, place)

    def _solved(self, placed: Placed, writer: Writer, place: int) -> None:
        """The context of ``crossover``; empty where no layer is left that sees without a limit."""
        found = crossover(placed)
        if found is None:
            return
        slopes = dict.fromkeys(writer.part(slope) for slope in divisors(found))
        text = writer.text(found)
        if slopes:
            text = f'IF(MIN({",".join(slopes)})>0,{text},"")'
        self._put(SOLVED, place, text, found.value)

    def _put(self, key: str, place: int, text: str, value: Any, style: str = "whole") -> None:
        """Write a figure; text without ``=``."""
        text = f'=IF({self._right},{text},"")'
        self.page.formula(self.rows[key], place, text, value, style)

    def _params(self, placed: Placed, rows: ModelRows, place: int) -> None:
        ledger = placed.model.ledger
        for role in self.roles:
            text = f'SUMIF({rows.roles()},"{role}",{rows.params()})'
            self._put(role, place, text, params.of_roles(ledger.tensors, role))
        for at, (key, fold) in enumerate(zip(SUMMED, (params.total, params.active), strict=True)):
            self._put(key, place, f"SUM({rows.params(at)})", fold(ledger), "total")
        about = placed.model.spec.about
        if about is not None and type(about.published) is int:
            self.page.number(self.rows["published"], place, about.published)
        self.page.formula(
            self.rows["widest"], place, f"=MAX({rows.shapes()})", widest(placed.model)
        )

    def _weights(self, placed: Placed, rows: ModelRows, column: Column, place: int) -> None:
        first = self.rows[f"weights {self.formats.plain[0].name}"]
        values = []
        for at, fmt in enumerate(self.formats.plain):
            page = rows.sheets.weights
            span = range(rows.block.first, rows.block.last + 1)
            values.append(sum(int(page.values[row, 2 + at]) for row in span))
            text = f"SUM({rows.weights(at)})"
            self._put(f"weights {fmt.name}", place, text, values[-1])
        block = self.page.span(first, place, first + len(values) - 1)
        name = column.name("format_number")
        chosen = values[column.at("format_number").value - 1]
        self._put("weights", place, f"INDEX({block},{name})", chosen, "total")

    def _fit(self, column: Column, place: int) -> None:
        writer = Writer(column.sheet.limits)  # no part in a cell where a text is not asked for
        parts = ("gpu_weights", "reserve", "gpu_cache")
        rest = sum((column.at(key) for key in parts), lift(0))
        number = column.name("format_number")
        for row, unit in enumerate(self.hardware.units, start=self.hardware.first):
            visible, tokens, requests = self.hardware.of(row, "visible", "tokens", "requests")
            own = figures.workspace(column, tokens, requests)
            free = budget(visible, column.at("permille")) - rest - own
            runs = self.hardware.runs(row, number)
            text = f'IF({runs},{writer.text(free)},"{figures.LACKS}")'
            known = self.hardware.runs_now(unit, column.at("format_number").value)
            shown = free.value if known else figures.LACKS
            text = column.if_("valid", f'IF({self.hardware.usable(row)},{text},"")')
            self.page.formula(self.rows[f"gpu {unit.name}"], place, text, shown, "right_whole")

    def widest(self, number: int) -> str:
        """Whether a model has a dimension for which ``INT`` is not exact, as 1 or 0 of a cell."""
        ref = self.page.ref(self.rows["widest"], self.start + number)
        return f"IF({ref}>{MOST_WIDTH},1,0)"

    def finish(self, columns: list[Column]) -> None:
        """Counts of what is wrong, colours, words beside what passes 2^53, charts."""
        page, rows = self.page, self.rows
        for place, column in enumerate(columns, start=self.start):
            text = f"={column.name('wrong')}+{column.name('broken')}"
            page.formula(rows["broken"], place, text, 0)
        units = [f"gpu {unit.name}" for unit in self.hardware.units]
        if units:
            page.colour(
                rows[units[0]], self.start, rows[units[-1]], self.end - 1,
                (">=", 0, True), ("<", 0, False), ("begins with", "not", False),
            )  # fmt: skip
        for key in ("same", "broken"):
            page.colour(rows[key], self.start, rows[key], self.end - 1, ("<>", 0, False))
        widest = rows["widest"]
        page.colour(widest, self.start, widest, self.end - 1, (">", MOST_WIDTH, False))
        keys = [key for key in rows if key not in ("broken", "widest") and key not in units]
        page.exactness([rows[key] for key in keys], self.start, self.end)
        self._charts()

    def _charts(self) -> None:
        page, file = self.page, self.book.file
        last = min(self.end, self.start + len(COLOURS)) - 1
        chart = file.add_chart({"type": "bar", "subtype": "percent_stacked"})
        for at, role in enumerate(self.roles):
            row = self.rows[role]
            chart.add_series(
                {
                    "name": role,
                    "categories": [page.name, 2, self.start, 2, last],
                    "values": [page.name, row, self.start, row, last],
                    "fill": {"color": COLOURS[at % len(COLOURS)]},
                }
            )
        chart.set_title({"name": "Parameters by component", "name_font": {"size": 12}})
        chart.set_legend({"position": "bottom"})
        height = 220 + 24 * (last - self.start)
        chart.set_size({"width": 620, "height": height})
        page.sheet.insert_chart(2, self.end + 2, chart)
        chart = file.add_chart({"type": "column"})
        first = self.rows[f"weights {self.formats.plain[0].name}"]
        stop = first + len(self.formats.plain) - 1
        for at, column in enumerate(range(self.start, last + 1)):
            chart.add_series(
                {
                    "name": [page.name, 2, column],
                    "categories": [page.name, first, 0, stop, 0],
                    "values": [page.name, first, column, stop, column],
                    "fill": {"color": COLOURS[at]},
                }
            )
        chart.set_title({"name": "Weights by format, GB", "name_font": {"size": 12}})
        chart.set_y_axis({"num_format": "#,##0,,,", "major_gridlines": {"visible": True}})
        chart.set_legend({"position": "bottom"})
        chart.set_size({"width": 620, "height": 300})
        page.sheet.insert_chart(4 + height // 20, self.end + 2, chart)


def crossover(placed: Placed) -> Formula | None:
    """Return the context at which attention costs as much as the matmuls, in closed form; None
    where there is none: attention in chunks or blocks, many windows, or a window in every layer."""
    sights = {operation.sight for operation in placed.ledger.operations}
    most = {str(sight.most) for sight in sights}
    stepwise = any(
        isinstance(sight, Chunk | Blocks | Compressed | BothCompressed) for sight in sights
    )
    if stepwise or len(most) > MOST_WINDOWS:
        return None
    try:
        found = flops.crossover(placed.ledger)
    except (ValueError, ZeroDivisionError):  # as written, no layer sees without a limit
        return None
    return None if found is None else lift(found)


def divisors(formula: Formula) -> list[Formula]:
    """What the quotients of a formula are divided by, those inside a minimum or maximum too."""
    found: list[Formula] = []
    for product in formula.terms:
        for atom, _ in product:
            found += _divisors(atom)
    return found


def _divisors(atom: Atom) -> list[Formula]:
    if atom.name in ("min", "max"):
        return [found for part in atom.parts for found in divisors(part)]
    return [atom.parts[1]] if atom.parts and atom.parts[1].constant is None else []


def widest(model: Model) -> int:
    """Return the widest dimension of a model's tensors."""
    return max(int(size) for tensor in model.ledger.tensors for size in tensor.shape)
