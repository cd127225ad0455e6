"""The sheet of inputs: the card's fields, one column a model, and the rules they must keep."""

from __future__ import annotations

from paramcalc.symbolic import NAMES
from paramcalc.views.cells import Writer
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.inputs import Placed

_SWITCHES = ("tie_embeddings", "gated_ffn", "gpt2", "causal", "share_layers")
"""Structure that a reader expects on the card; it is fixed when the workbook is written."""


class InputSheet:
    """The sheet Inputs. Cells are named as the fields: ``m1_d_model`` for the first model."""

    first = 4

    def __init__(self, book: Book, models: list[Placed]) -> None:
        self.book = book
        self.start = 3
        self.end = self.start + len(models)
        page = book.page("Inputs", 34, 9, 12, *(18,) * len(models), 64)
        self.page = page
        page.text(0, 0, "Inputs: the card of each model", "title")
        page.text(
            1,
            0,
            "Blue cells may be changed; everything follows. Names of cells: m1_d_model is d_model"
            " of the first model, and so on. Context, batch, formats, GPUs and price: Deployment.",
            "note",
        )
        page.heads(3, ["field", "symbol", "unit"])
        page.heads(3, (p.model.name for p in models), self.start, over="numbers")
        page.heads(3, [""], self.end)
        page.sheet.freeze_panes(4, 3)
        self._fields(models)
        self._rules(models)

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
            writer = Writer(placed.limits)
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
                self.book.define(own.name, page.ref(row, column))
        self.next = self.first + len(paths) + 1
        page.text(self.next, 0, "Fixed when the workbook was written", "group")
        for row, name in enumerate(_SWITCHES, start=self.next + 1):
            page.text(row, 0, name)
            for column, placed in enumerate(models, start=self.start):
                on = bool(getattr(placed.model.spec, name))
                page.sheet.write_boolean(row, column, on, self.book.style("right"))
        self.next += len(_SWITCHES) + 1
        for column, placed in enumerate(models, start=self.start):
            if placed.fixed:
                page.text(self.next, 0, "numbers fixed: layers that no field spells", "note")
                page.text(self.next, column, "fixed", "right")
        self.next += 2

    def _rules(self, models: list[Placed]) -> None:
        page = self.page
        page.text(self.next, 0, "Rules", "group")
        first = self.next + 1
        rows: dict[str, int] = {}
        for column, placed in enumerate(models, start=self.start):
            writer = Writer(placed.limits)
            for rule in placed.rules():
                row = rows.setdefault(rule.text, first + len(rows))
                page.text(row, 0, rule.text)
                broken = rule.broken.text(writer)
                page.formula(
                    row,
                    column,
                    f'=IF({broken},"{rule.text}","ok")',
                    rule.text if rule.broken.holds else "ok",
                    "right",
                )
        self.rules = (first, first + len(rows) - 1)
        if rows:
            page.checks(first, self.start, self.rules[1], self.end - 1)

    def broken(self) -> list[str]:
        """How many rules each model breaks, as text of a cell."""
        first, last = self.rules
        if last < first:
            return ["0"] * (self.end - self.start)
        spans = [self.page.span(first, at, last) for at in range(self.start, self.end)]
        return [f'COUNTIF({span},"?*")-COUNTIF({span},"ok")' for span in spans]


def _order(path: str) -> tuple[int, str, int]:
    place, _, field = path.rpartition(".")
    names = list(NAMES)
    return (place != "", place, names.index(field) if field in names else len(names))
