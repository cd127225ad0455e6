"""The sheet of inputs: the card's fields, one column a model, and the rules they must keep."""

from __future__ import annotations

from paramcalc.symbolic import NAMES
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.inputs import Placed
from paramcalc.views.workbook.steps import Steps

_SWITCHES = {
    "tie_embeddings": "the head is the table of tokens, stored once",
    "gated_ffn": "the feed-forward part has a gate (SwiGLU): three matrices, not two",
    "gpt2": "biases, LayerNorm and learned positions, as in GPT-2",
    "causal": "a token sees those before it: the model writes text; no: it sees all (an encoder)",
    "share_layers": "all layers use the weights of one (ALBERT)",
}
"""Structure that a reader expects on the card; it is fixed when the workbook is written."""


class InputSheet:
    """The sheet Inputs. Cells are named as the fields: ``m1_d_model`` for the first model, and
    ``u1_d_model`` for what formulas use of it."""

    first = 4

    def __init__(self, book: Book, models: list[Placed], steps: Steps) -> None:
        self.book, self.steps = book, steps
        self.start = 3
        self.end = self.start + len(models)
        page = book.page("Inputs", 34, 9, 12, *(18,) * len(models), 64)
        self.page = page
        page.text(0, 0, "Inputs: the card of each model", "title")
        page.text(
            1,
            0,
            "Blue cells may be changed; everything follows. m1_d_model is d_model of the first"
            " model, u1_d_model what formulas use of it. Context, batch, formats, GPUs and price:"
            " Deployment.",
            "note",
        )
        page.heads(3, ["field", "symbol", "unit"])
        page.heads(3, (p.model.name for p in models), self.start, over="numbers")
        page.heads(3, [""], self.end)
        page.freeze(4, 3)
        self._fields(models)
        self._checks(models)
        self._rules(models)
        self._in_use(models)

    def _fields(self, models: list[Placed]) -> None:
        page = self.page
        paths = sorted({path for p in models for path in p.inputs}, key=_order)
        self.rows = {path: self.first + place for place, path in enumerate(paths)}
        for path, row in self.rows.items():
            own = next(p.inputs[path] for p in models if path in p.inputs)
            page.text(row, 0, path)
            page.text(row, 1, NAMES.get(path.rpartition(".")[2], ""), "note")
            page.text(row, 2, own.unit, "note")
            page.text(row, self.end, own.note, "note")
        for column, placed in enumerate(models, start=self.start):
            writer = self.steps.writer(placed.model.name, placed.limits)
            for path, row in self.rows.items():
                if path not in placed.inputs:
                    page.blank(row, column)
                    continue
                own = placed.inputs[path]
                style = "whole" if placed.fixed else "input"
                if own.default is not None:
                    page.formula(row, column, writer.cell(own.default), own.value, style)
                else:
                    page.number(row, column, own.value, style)
                if not placed.fixed:
                    page.whole_from(row, column, own.low, own.high, path)
                self.book.define(own.cell, page.ref(row, column))
        self.next = self.first + len(paths) + 1
        page.text(self.next, 0, "Fixed when the workbook was written", "group")
        for row, name in enumerate(_SWITCHES, start=self.next + 1):
            page.text(row, 0, name)
            page.text(row, self.end, _SWITCHES[name], "note")
            for column, placed in enumerate(models, start=self.start):
                on = getattr(placed.model.spec, name)
                page.text(row, column, "yes" if on else "no", "right")
        self.next += len(_SWITCHES) + 1
        for column, placed in enumerate(models, start=self.start):
            if placed.fixed:
                page.text(self.next, 0, "numbers fixed: layers that no field spells", "note")
                page.text(self.next, column, "fixed", "right")
        self.next += 2

    def _checks(self, models: list[Placed]) -> None:
        """A row for each field: whether what is typed can be used."""
        page, first = self.page, self.first
        page.text(self.next, 0, "Checks of what is typed", "group")
        self.next += 1
        shift = self.next - first
        last = first + len(self.rows) - 1
        self.checked = (self.next, last + shift)
        for column, placed in enumerate(models, start=self.start):
            for path, row in self.rows.items():
                page.text(row + shift, 0, path)
                own = placed.inputs.get(path)
                if own is not None and not placed.fixed:
                    text = checks.whole(page.cell(row, column), own.low, own.high)
                    page.formula(row + shift, column, f"={text}", checks.OK, "right")
        if self.rows:
            page.checks(self.next, self.start, last + shift, self.end - 1)
            checks.redden(page, first, self.start, last, self.end - 1, self.next)
        self.next += len(self.rows) + 1

    def _in_use(self, models: list[Placed]) -> None:
        """A row for each field: the number that formulas use, by name."""
        page, (first, _) = self.page, self.checked
        page.text(self.next, 0, "In use; the value as written while a check is not ok", "group")
        shift = self.next + 1 - self.first
        for column, placed in enumerate(models, start=self.start):
            for path, row in self.rows.items():
                page.text(row + shift, 0, path)
                own = placed.inputs.get(path)
                if own is None or placed.fixed:
                    continue
                check = page.cell(first + row - self.first, column)
                text = checks.in_use(check, page.cell(row, column), own.value)
                ref = page.formula(row + shift, column, text, own.value)
                self.book.define(own.name, ref)

    def _rules(self, models: list[Placed]) -> None:
        page = self.page
        page.text(self.next, 0, "Rules", "group")
        first = self.next + 1
        rows: dict[str, int] = {}
        for column, placed in enumerate(models, start=self.start):
            writer = self.steps.writer(placed.model.name, placed.limits)
            for rule in placed.rules():
                row = rows.setdefault(rule.text, first + len(rows))
                page.text(row, 0, rule.text)
                broken = rule.broken.text(writer)
                page.formula(
                    row,
                    column,
                    f'=IF({broken},{checks.words(rule.text)},"{checks.OK}")',
                    rule.text if rule.broken.holds else "ok",
                    "right",
                )
        self.rules = (first, first + len(rows) - 1)
        self.next = first + len(rows) + 1
        if rows:
            page.checks(first, self.start, self.rules[1], self.end - 1)

    def wrong(self) -> list[str]:
        """How many cells of each model cannot be used, as text of a cell."""
        return self._broken(*self.checked)

    def broken(self) -> list[str]:
        """How many rules each model breaks, as text of a cell."""
        return self._broken(*self.rules)

    def _broken(self, first: int, last: int) -> list[str]:
        if last < first:
            return ["0"] * (self.end - self.start)
        columns = range(self.start, self.end)
        return [checks.broken(self.page.span(first, at, last)) for at in columns]


def _order(path: str) -> tuple[int, str, int]:
    place, _, field = path.rpartition(".")
    names = list(NAMES)
    return (place != "", place, names.index(field) if field in names else len(names))
