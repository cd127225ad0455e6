"""The sheet that drives everything: context, batch, formats, accelerator, price; and what follows
for one GPU, a decode step, a prompt and the cost.

The figures are those of ``deploy.columns``: the same folds, run on symbols that are called as the
cells of this sheet.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.deploy.columns import BANDWIDTH_PERCENT, FLOPS_PERCENT, HOP
from paramcalc.deploy.figures import MICRO
from paramcalc.deploy.hardware import Accelerator
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.cells import Writer
from paramcalc.views.workbook import lookups
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.inputs import MOST_BATCH, MOST_GPUS, MOST_TOKENS, Placed, Rule
from paramcalc.views.workbook.lists import FormatList, HardwareList
from paramcalc.views.workbook.rows import INTEGERS, ROWS

UTILIZATION = 90
"""Percent of a GPU's memory that an engine takes, as ``Engine`` has it."""
MOST_TP = 1024


class Wish(NamedTuple):
    """What the deployment is at first; None leaves it to each model (its own context, the format
    it is released in) or open (no price)."""

    gpu: Accelerator
    context: int | None = None
    batch: int = 1
    dtype: str | None = None
    kv_dtype: str = "bf16"
    gpus: int = 1
    tp: int = 1
    price: int | None = None
    assumed: bool = False
    """That nobody named the GPU."""


class Setting(NamedTuple):
    """A cell that drives a model's column: its name, value and limits, or the list it is of."""

    key: str
    label: str
    value: int | str
    low: int = 1
    high: int = 1
    source: str = ""


class Column:
    """One model's column: ``put`` writes a figure and gives its symbol."""

    def __init__(self, sheet: DeploymentSheet, placed: Placed, column: int) -> None:
        self.sheet = sheet
        self.placed = placed
        self.column = column
        self.symbols: dict[str, Formula] = {}
        self.words: dict[str, str] = {}
        self.checked: set[str] = set()

    def name(self, key: str) -> str:
        """The name of this model's cell of a figure."""
        return self.placed.prefix + key

    def at(self, key: str) -> Formula:
        """The symbol of a figure."""
        return self.symbols[key]

    def put(self, key: str, text: str, value: int, style: str = "whole", most: int = 0) -> Formula:
        """Write a figure under its row, name the cell and return its symbol."""
        page = self.sheet.page
        row = self.sheet.rows[key]
        ref = page.formula(row, self.column, text, value, style)
        page.book.define(self.name(key), ref)
        if most:
            self.sheet.limits[self.name(key)] = most
        self.symbols[key] = symbol(self.name(key), value)
        return self.symbols[key]

    def show(self, key: str, text: str, value: int | float | str, style: str = "whole") -> None:
        """Write a cell that no other formula uses by name."""
        self.sheet.page.formula(self.sheet.rows[key], self.column, text, value, style)


class DeploymentSheet:
    """The sheet Deployment."""

    first = 3

    def __init__(
        self,
        book: Book,
        wish: Wish,
        formats_: FormatList,
        hardware: HardwareList,
        limits: dict[str, int],
        models: int,
    ) -> None:
        self.wish, self.formats, self.hardware, self.limits = wish, formats_, hardware, limits
        self.shared = models > 1
        self.start = 3 if self.shared else 2
        self.end = self.start + models
        page = book.page("Deployment", 46, 13, *(22,) * (models + self.shared), 24, 70)
        self.page = page
        page.text(0, 0, "Deployment", "title")
        page.text(
            1,
            0,
            "Blue cells may be changed; all sheets follow. Figures as paramcalc fit and serve give"
            f" them: {FLOPS_PERCENT}% of the peak, {BANDWIDTH_PERCENT}% of the bandwidth,"
            f" {HOP // 1000} us a hop.",
            "note",
        )
        page.heads(2, ["", "unit"])
        page.heads(2, ["for all models"] * self.shared, 2, over="numbers")
        page.heads(2, ["exactness", ""], self.end)
        page.sheet.freeze_panes(3, 2)
        self.rows: dict[str, int] = {}
        self.labels = {key: (label, unit) for key, label, unit in ROWS}
        for row, (key, label, unit) in enumerate(ROWS, start=self.first):
            if key:
                self.rows[key] = row
            page.text(row, 0, label, "text" if key else "group")
            page.text(row, 1, unit, "note")
        self.next_rule = self.first + len(ROWS)
        self._rules: dict[str, int] = {}
        self.columns: list[Column] = []
        self._notes()

    def _notes(self) -> None:
        own = "; empty: each model's own" if self.shared else ""
        notes = {
            "at_context": f"what every figure is for{own}",
            "format": f"from sheet Formats{own and '; empty: as each is released'}",
            "gpu": "from sheet Hardware" + ("; assumed: take yours" if self.wish.assumed else ""),
            "price": "no money without a price",
            "workspace": "activations or sampling, whichever is larger",
            "reserve": "measured: llm-d-benchmark, vLLM on H100",
            "step_exchange": "hops alone where the link's rate is not known",
            "known": "without it there are no times",
        }
        for key, note in notes.items():
            self.page.text(self.rows[key], self.end + 1, note, "note")

    def settings(self, placed: Placed) -> tuple[Setting, ...]:
        """The cells that drive a model's column, with their first values."""
        wish, model = self.wish, placed.model
        own = wish.context or model.context
        dtype = wish.dtype or model.released_format
        names = [fmt.name for fmt in self.formats.plain]
        if dtype not in names:
            dtype = "bf16"
        return (
            Setting("at_context", "context", own, 1, MOST_TOKENS),
            Setting("batch", "sequences", wish.batch, 1, MOST_BATCH),
            Setting("format", "format", dtype, source=self.formats.names),
            Setting("kv_format", "cache", wish.kv_dtype, source=self.formats.kv_names),
            Setting("gpu", "accelerator", wish.gpu.name, source=self.hardware.names),
            Setting("gpus", "GPUs", wish.gpus, 1, MOST_GPUS),
            Setting("tp", "tensor-parallel ranks", wish.tp, 1, MOST_TP),
            Setting("percent", "percent", UTILIZATION, 1, 100),
        )

    def add(self, placed: Placed) -> Column:
        """Write a model's settings and what is looked up by them; return its column."""
        column = Column(self, placed, self.start + len(self.columns))
        self.columns.append(column)
        page = self.page
        page.text(2, column.column, placed.model.name, "column")
        for own in self.settings(placed):
            self._setting(column, own)
        self._price(column)
        lookups.write(column)
        return column

    def _setting(self, column: Column, own: Setting) -> None:
        page, row = self.page, self.rows[own.key]
        name, place = column.name(own.key), column.column
        if self.shared and len(self.columns) == 1:
            self._for_all(own, row)
        ref = page.ref(row, place)
        style = "word" if own.source else "input"
        if self.shared:
            all_ = f"$C${row + 1}"
            text = f"={all_}"
            if self._open(own.key):
                shown: Any = own.value
                if own.key == "at_context" and "context" in column.placed.inputs:
                    shown = column.placed.inputs["context"].name
                elif isinstance(own.value, str):
                    shown = f'"{own.value}"'
                text = f'=IF({all_}="",{shown},{all_})'
            page.formula(row, place, text, own.value, style)
        elif isinstance(own.value, str):
            page.text(row, place, own.value, style)
        else:
            page.number(row, place, own.value, style)
        self._limit(own, row, place)
        page.book.define(name, ref)
        if isinstance(own.value, str):
            column.words[own.key] = own.value
        else:
            column.symbols[own.key] = symbol(name, own.value)
            self.limits[name] = own.high

    def _open(self, key: str) -> bool:
        """Whether the column for all models leaves a setting to each model."""
        return (key == "at_context" and self.wish.context is None) or (
            key == "format" and self.wish.dtype is None
        )

    def _for_all(self, own: Setting, row: int) -> None:
        """The cell for all models."""
        page = self.page
        if self._open(own.key):
            page.blank(row, 2, "word" if own.source else "input")
        elif isinstance(own.value, str):
            page.text(row, 2, own.value, "word")
        else:
            page.number(row, 2, own.value, "input")
        self._limit(own, row, 2)

    def _limit(self, own: Setting, row: int, column: int) -> None:
        if own.source:
            self.page.list_of(row, column, own.source, own.label)
        else:
            self.page.whole_from(row, column, own.low, own.high, own.label)

    def _price(self, column: Column) -> None:
        """The price in dollars: typed, or what the list of accelerators has, or none."""
        page, row = self.page, self.rows["price"]
        place, wish = column.column, self.wish
        micro = wish.price if wish.price is not None else wish.gpu.price_per_hour_micro
        dollars = None if micro is None else micro / MICRO
        listed = f"INDEX({self.hardware.column(7)},{column.name('gpu_number')})"
        found = f'IF({listed}>0,{listed},"")'
        value: Any = "" if dollars is None else dollars
        style = page.book.style("price")
        if self.shared:
            if len(self.columns) == 1:
                if wish.price is not None:
                    page.sheet.write_number(row, 2, wish.price / MICRO, style)
                else:
                    page.blank(row, 2, "price")
            all_ = f"$C${row + 1}"
            page.formula(row, place, f'=IF({all_}="",{found},{all_})', value, "price")
        elif wish.price is not None:
            page.sheet.write_number(row, place, wish.price / MICRO, style)
        else:
            page.formula(row, place, f"={found}", value, "price")
        for at in {2, place}:
            page.sheet.data_validation(
                row, at, row, at, {"validate": "decimal", "criteria": ">=", "value": 0}
            )
        page.book.define(column.name("price"), page.ref(row, place))
        column.symbols["price"] = lift(micro or 0)

    def rule(self, column: Column, rule: Rule, writer: Writer) -> None:
        """Write a live check: ok, or the rule that is broken. Equal conditions stand once."""
        broken = rule.broken.text(writer)
        if broken in column.checked:
            return
        column.checked.add(broken)
        if rule.text not in self._rules:
            self._rules[rule.text] = self.next_rule
            self.page.text(self.next_rule, 0, rule.text)
            self.next_rule += 1
        row = self._rules[rule.text]
        shown = rule.text if rule.broken.holds else "ok"
        text = f'=IF({broken},"{rule.text}","ok")'
        self.page.formula(row, column.column, text, shown, "right")

    def broken(self) -> list[str]:
        """How many rules each model breaks, as text of a cell."""
        first, last = self.first + len(ROWS), self.next_rule - 1
        spans = [self.page.span(first, own.column, last) for own in self.columns]
        return [f'COUNTIF({span},"?*")-COUNTIF({span},"ok")' for span in spans]

    def finish(self) -> None:
        """Colours, and a word beside each row whose values pass 2^53."""
        page, end = self.page, self.end
        fits = self.rows["fits"]
        page.colour(
            fits, self.start, fits, end - 1, ("begins with", "fits", True),
            ("begins with", "does not", False),
        )  # fmt: skip
        for key in ("free", "free_gib"):
            row = self.rows[key]
            page.colour(row, self.start, row, end - 1, ("<", 0, False))
        known = self.rows["known"]
        page.colour(known, self.start, known, end - 1, ("==", 0, False))
        if self.next_rule > self.rows["largest_step"] + 1:
            page.checks(self.rows["largest_step"] + 1, self.start, self.next_rule - 1, end - 1)
        page.exactness([self.rows[key] for key in INTEGERS], self.start, end)
