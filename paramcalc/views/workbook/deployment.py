"""The sheet that drives everything: context, batch, formats, accelerator, price; and what follows
for one GPU, a decode step, a prompt and the cost.

The figures are those of ``deploy.columns``: the same folds, run on symbols that are called as the
cells of this sheet.
"""

from __future__ import annotations

from typing import Any

from paramcalc.deploy.columns import BANDWIDTH_PERCENT, FLOPS_PERCENT, HOP
from paramcalc.deploy.figures import MICRO
from paramcalc.views.cells import Writer
from paramcalc.views.workbook import checks, lookups
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.column import Column
from paramcalc.views.workbook.inputs import Placed, Rule
from paramcalc.views.workbook.lists import FormatList, HardwareList
from paramcalc.views.workbook.lookups import LookupSheet
from paramcalc.views.workbook.rows import ASKED, LOOKUPS, ROWS, integers
from paramcalc.views.workbook.settings import MOST_DOLLARS, Setting, Wish, settings
from paramcalc.views.workbook.steps import Steps

SERVED = "as paramcalc serve --prompt (CONTEXT - 1) --output 2"
"""What gives the same decode step: ``serve`` counts it in the middle of the tokens it writes."""


class DeploymentSheet:
    """The sheet Deployment."""

    first = 3

    def __init__(
        self,
        book: Book,
        wish: Wish,
        formats_: FormatList,
        hardware: HardwareList,
        steps: Steps,
        limits: dict[str, int],
        models: list[str],
    ) -> None:
        self.wish, self.formats, self.hardware, self.limits = wish, formats_, hardware, limits
        self.steps = steps
        self.shared = len(models) > 1
        self.start = 3 if self.shared else 2
        self.end = self.start + len(models)
        page = book.page("Deployment", 46, 13, *(22,) * (len(models) + self.shared), 24, 70)
        self.page, self.lookups = page, LookupSheet(book, models)
        page.text(0, 0, "Deployment", "title")
        page.text(
            1,
            0,
            "Blue cells may be changed; all sheets follow. Figures as paramcalc fit and serve give"
            f" them by default: {FLOPS_PERCENT}% of the peak, {BANDWIDTH_PERCENT}% of the"
            f" bandwidth, {HOP // 1000} us a hop.",
            "note",
        )
        page.heads(2, ["", "unit"])
        page.heads(2, ["for all models"] * self.shared, 2, over="numbers")
        page.heads(2, ["exactness", ""], self.end)
        page.freeze(3, 2)
        self.rows: dict[str, int] = {}
        self.labels = {key: (label, unit) for key, label, unit in (*ROWS, *LOOKUPS)}
        for row, (key, label, unit) in enumerate(ROWS, start=self.first):
            if key:
                self.rows[key] = row
            page.text(row, 0, label, "text" if key else "group")
            page.text(row, 1, unit, "note")
        self.checks = self.first + len(ROWS)
        """The first row of checks: those of what is typed, then the rules."""
        self.next_rule = self.checks + len(ASKED)
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
            "percent": "of which a decimal may be given: 92.5",
            "fits": "where it does not, times and money are empty",
            "workspace": "activations or sampling, whichever is larger (sheet Lookups)",
            "reserve": "measured: llm-d-benchmark, vLLM on H100",
            "step_exchange": "hops alone where the link's rate is not known",
            "tokens": SERVED,
            "first_seconds": "as paramcalc serve --prompt CONTEXT: time to first token",
            "cost_million_dollars": "of tokens that decode steps write: prompts are apart",
            "wrong": "until they can, the values as written stand in, and answers are empty",
        }
        for key, note in notes.items():
            self.page.text(self.rows[key], self.end + 1, note, "note")

    def check_row(self, key: str) -> int:
        """The row that checks what is typed."""
        return self.checks + ASKED.index(key)

    def add(self, placed: Placed) -> Column:
        """Write a model's settings and what is looked up by them; return its column."""
        column = Column(self, placed, len(self.columns))
        self.columns.append(column)
        page = self.page
        page.text(2, column.column, placed.model.name, "column")
        for own in settings(placed, self.wish, self.formats, self.hardware):
            self._setting(column, own)
        self._price(column)
        lookups.write(column)
        column.flag("valid", 1)
        return column

    def _setting(self, column: Column, own: Setting) -> None:
        page, row, place = self.page, self.rows[own.key], column.column
        if self.shared and len(self.columns) == 1:
            self._for_all(own, row)
        style = own.style
        if self.shared:
            all_ = f"$C${row + 1}"
            text = f'=IF({all_}="",{own.own},{all_})' if own.own else f"={all_}"
            page.formula(row, place, text, own.value, style)
        elif isinstance(own.value, str):
            page.text(row, place, own.value, style)
        else:
            page.number(row, place, own.value, style)
        self._limit(own, row, place)
        page.book.define(column.name(own.key), page.ref(row, place))
        ref = page.cell(row, place)
        if isinstance(own.value, str):
            self._check(column, own.key, checks.listed(ref, own.source, own.sheet))
            column.words[own.key] = own.value
        elif own.tenths:
            self._check(column, own.key, checks.tenths(ref, own.high))
            text = f"ROUND({column.name(own.key)}*10,0)"
            column.use("permille", own.key, text, own.value * 10, own.high * 10)
        else:
            self._check(column, own.key, checks.whole(ref, own.low, own.high))
            column.use(own.key, own.key, column.name(own.key), own.value, own.high)

    def _check(self, column: Column, key: str, text: str) -> None:
        row = self.check_row(key)
        self.page.text(row, 0, self.labels[key][0])
        self.page.formula(row, column.column, f"={text}", checks.OK, "right")

    def _open(self, key: str) -> bool:
        """Whether the column for all models leaves a setting to each model at first."""
        return (key == "at_context" and self.wish.context is None) or (
            key == "format" and self.wish.dtype is None
        )

    def _for_all(self, own: Setting, row: int) -> None:
        """The cell for all models."""
        page = self.page
        if self._open(own.key):
            page.blank(row, 2, own.style)
        elif isinstance(own.value, str):
            page.text(row, 2, own.value, "word")
        else:
            page.number(row, 2, own.value, own.style)
        self._limit(own, row, 2)

    def _limit(self, own: Setting, row: int, column: int) -> None:
        if own.source:
            self.page.list_of(row, column, own.source, own.label)
        elif own.tenths:
            rule = {"validate": "decimal", "criteria": "between", "minimum": 0.1}
            self.page.sheet.data_validation(row, column, row, column, rule | {"maximum": own.high})
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
                row, at, row, at, {"validate": "decimal", "criteria": ">", "value": 0}
            )
        page.book.define(column.name("price"), page.ref(row, place))
        self._check(column, "price", checks.amount(page.cell(row, place), MOST_DOLLARS))
        column.price = micro

    def rule(self, column: Column, rule: Rule, writer: Writer) -> None:
        """Write a live check: ok, or the rule that is broken. Equal conditions stand once."""
        broken = rule.broken.text(writer)
        if broken in column.ruled:
            return
        column.ruled.add(broken)
        if rule.text not in self._rules:
            self._rules[rule.text] = self.next_rule
            self.page.text(self.next_rule, 0, rule.text)
            self.next_rule += 1
        row = self._rules[rule.text]
        shown = rule.text if rule.broken.holds else "ok"
        text = f'=IF({broken},{checks.words(rule.text)},"{checks.OK}")'
        self.page.formula(row, column.column, text, shown, "right")

    def count(self, column: Column, wrong: list[str], broken: list[str]) -> None:
        """Write how many cells of a model cannot be used and how many rules it breaks: those that
        other sheets count, and those of this one; and what follows for its answers."""
        own = column.column
        typed = self.page.span(self.checks, own, self.checks + len(ASKED) - 1)
        rules = self.page.span(self.checks + len(ASKED), own, self.next_rule - 1)
        name = column.name
        column.put("wrong", f"={'+'.join([*wrong, checks.broken(typed)])}", 0)
        column.put("broken", f"={'+'.join([*broken, checks.broken(rules)])}", 0)
        column.put("valid", f"=IF({name('wrong')}+{name('broken')}=0,1,0)", 1)

    def finish(self) -> None:
        """Colours, and a word beside each row whose values pass 2^53."""
        page, end = self.page, self.end
        fits = self.rows["fits"]
        page.verdicts(fits, self.start, fits, end - 1)
        for key in ("free", "free_gb", "free_gib"):
            row = self.rows[key]
            page.colour(row, self.start, row, end - 1, ("<", 0, False))
        times = self.rows["times"]
        page.colour(times, self.start, times, end - 1, ("begins with", "none", False))
        for key in ("wrong", "broken"):
            row = self.rows[key]
            page.colour(row, self.start, row, end - 1, (">", 0, False))
        page.checks(self.checks, self.start, self.next_rule - 1, end - 1)
        asked = self.rows[ASKED[0]], self.rows[ASKED[-1]]
        checks.redden(page, asked[0], self.start, asked[1], end - 1, self.checks)
        page.exactness([self.rows[key] for key in integers(ROWS)], self.start, end)
        self.lookups.finish()
