"""A workbook as the sheets write it: cells with their formula and its value, styles, names.

Every formula is written with the integer that Python has for it, so that a reader that computes
nothing (a preview, a data frame) shows the same. Text never becomes a formula.
"""

from __future__ import annotations

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from paramcalc.errors import InputError
from paramcalc.views.cells import MOST_LETTERS, ROUNDED_ABOVE

STYLES: dict[str, dict[str, Any]] = {
    "title": {"bold": True, "font_size": 14},
    "head": {
        "bold": True,
        "bottom": 1,
        "bg_color": "#E7ECF3",
        "text_wrap": True,
        "valign": "top",
        "align": "left",
        "indent": 1,
    },
    "column": {
        "bold": True,
        "bottom": 1,
        "bg_color": "#E7ECF3",
        "text_wrap": True,
        "valign": "top",
        "align": "right",
    },
    "group": {"bold": True, "font_color": "#0B3D91"},
    "text": {},
    "note": {"font_color": "#5F6B7A", "indent": 1},
    "whole": {"num_format": "#,##0"},
    "total": {"num_format": "#,##0", "bold": True},
    "rate": {"num_format": '#,##0;-#,##0;"unknown"', "align": "right"},
    "tenths": {"num_format": "0.0", "font_color": "#0B3D91", "bg_color": "#FFF7DB", "border": 4},
    "share": {"num_format": "0.0%"},
    "ratio": {"num_format": "0.000"},
    "giga": {"num_format": "#,##0.00"},
    "thousandth": {"num_format": "#,##0.000"},
    "dollars": {"num_format": "$#,##0.00"},
    "input": {"num_format": "#,##0", "font_color": "#0B3D91", "bg_color": "#FFF7DB", "border": 4},
    "word": {"font_color": "#0B3D91", "bg_color": "#FFF7DB", "border": 4, "align": "right"},
    "price": {
        "num_format": "$#,##0.00####",
        "font_color": "#0B3D91",
        "bg_color": "#FFF7DB",
        "border": 4,
    },
    "absent": {"bg_color": "#F1F1F1"},
    "right": {"align": "right"},
    "right_whole": {"num_format": "#,##0", "align": "right"},
}
"""Blue on yellow is what a planner may change."""
ROUNDED = "rounded above 2^53"
GOOD = {"font_color": "#0A5C2B", "bg_color": "#D9F2E0"}
BAD = {"font_color": "#9C0006", "bg_color": "#FFD9D9"}
COLOURS = (
    "#4C72B0",
    "#DD8452",
    "#55A868",
    "#C44E52",
    "#8172B3",
    "#937860",
    "#DA8BC3",
    "#8C8C8C",
    "#CCB974",
    "#64B5CD",
)
"""Of the lines and bars of charts, in their order."""


MOST_PRINTED = 300
"""Letters in a row that are still printed on one page's width; longer rows take several, with the
names on each."""


class Page:
    """One sheet. Rows and columns count from 0."""

    def __init__(self, book: Book, name: str, widths: tuple[float, ...]) -> None:
        self.book = book
        self.name = name
        self.sheet = book.file.get_worksheet_by_name(name)
        self.sheet.hide_gridlines(2)
        self.sheet.set_landscape()
        self.pages = -(-int(sum(widths)) // MOST_PRINTED)
        """Pages side by side on paper."""
        self.sheet.fit_to_pages(self.pages, 0)
        self.sheet.set_footer("&L&A&Rpage &P of &N")
        self.values: dict[tuple[int, int], int | float | str] = {}
        """What each cell with a number or a formula holds."""
        for column, width in enumerate(widths):
            self.sheet.set_column(column, column, width)

    def freeze(self, row: int, column: int) -> None:
        """Keep the rows and columns before these in view, and on every printed page; of a sheet
        that takes several side by side the headings alone, since a title would be cut there."""
        self.sheet.freeze_panes(row, column)
        self.sheet.repeat_rows(0 if self.pages == 1 else row - 1, row - 1)
        if column:
            self.sheet.repeat_columns(0, column - 1)

    def text(self, row: int, column: int, text: str, style: str = "text") -> None:
        """Write text, whatever it begins with."""
        self.sheet.write_string(row, column, text, self.book.style(style))

    def heads(
        self, row: int, texts: Iterable[str], column: int = 0, *, over: str = "words"
    ) -> None:
        """Write a row of headings, over words or over numbers."""
        for place, text in enumerate(texts, start=column):
            self.text(row, place, text, "head" if over == "words" else "column")

    def number(self, row: int, column: int, value: int, style: str = "whole") -> str:
        """Write a number and return the cell's reference."""
        self.sheet.write_number(row, column, value, self.book.style(style))
        self.values[row, column] = value
        return self.ref(row, column)

    def formula(
        self, row: int, column: int, text: str, value: int | float | str, style: str = "whole"
    ) -> str:
        """Write a formula (``=`` included) with its value, and return the cell's reference.

        Raises ``InputError`` where a spreadsheet would not take it.
        """
        if len(text) > MOST_LETTERS:
            raise InputError(
                f"models: a formula of {len(text):,} letters passes a cell's {MOST_LETTERS:,};"
                " write a model with fewer kinds of layers"
            )
        self.sheet.write_formula(row, column, text, self.book.style(style), value)
        self.values[row, column] = value
        return self.ref(row, column)

    def blank(self, row: int, column: int, style: str = "absent") -> None:
        """Write an empty cell in a style."""
        self.sheet.write_blank(row, column, None, self.book.style(style))

    def ref(self, row: int, column: int) -> str:
        """Return a cell's absolute reference, the sheet's name included."""
        return f"{self.name}!{cell(row, column)}"

    def span(self, row: int, column: int, last_row: int, last_column: int | None = None) -> str:
        """Return an absolute reference to a block of cells."""
        end = cell(last_row, column if last_column is None else last_column)
        return f"{self.name}!{cell(row, column)}:{end}"

    def list_of(self, row: int, column: int, source: str, what: str) -> None:
        """Let a cell be one of the words of a range."""
        self.sheet.data_validation(
            row,
            column,
            row,
            column,
            {
                "validate": "list",
                "source": f"={source}",
                "error_title": what[:32],
                "error_message": f"{what}: take one of the list",
            },
        )

    def whole_from(self, row: int, column: int, low: int, high: int, what: str) -> None:
        """Let a cell be a whole number from ``low`` to ``high``."""
        self.sheet.data_validation(
            row,
            column,
            row,
            column,
            {
                "validate": "integer",
                "criteria": "between",
                "minimum": low,
                "maximum": high,
                "error_title": what[:32],
                "error_message": f"{what}: a whole number from {low:,} to {high:,}"[:255],
            },
        )

    @staticmethod
    def cell(row: int, column: int) -> str:
        """Return a cell's absolute reference on its own sheet."""
        return cell(row, column)

    def local(self, row: int, column: int) -> str:
        """Return a cell's relative reference on its own sheet."""
        return f"{letters(column)}{row + 1}"

    def colour(self, row: int, column: int, last_row: int, last_column: int, *rules: Any) -> None:
        """Colour cells: each rule is (criteria, value, good or bad).

        A comparison is of numbers alone: to a spreadsheet a text is above every number.
        """
        own = self.local(row, column)
        for criteria, value, good in rules:
            if criteria == "begins with":
                text = f'LEFT({own},{len(value)})="{value}"'
            else:
                text = f"IF(ISNUMBER({own}),{own}{criteria}{value})"
            self.colour_where(row, column, last_row, last_column, text, good=good)

    def verdicts(self, row: int, column: int, last_row: int, last_column: int) -> None:
        """Colour cells that say whether a model fits."""
        bad = (("begins with", word, False) for word in ("does not", "not", "check"))
        self.colour(row, column, last_row, last_column, ("begins with", "fits", True), *bad)

    def colour_where(
        self, row: int, column: int, last_row: int, last_column: int, text: str, *, good: bool
    ) -> None:
        """Colour cells for which a formula holds, written for the first of them."""
        style = self.book.good if good else self.book.bad
        rule = {"type": "formula", "criteria": f"={text}", "format": style}
        self.sheet.conditional_format(row, column, last_row, last_column, rule)

    def checks(self, row: int, column: int, last_row: int, last_column: int) -> None:
        """Colour cells that say ok, or which rule is broken; empty ones stay as they are."""
        own = self.local(row, column)
        for rule, good in ((f'{own}="ok"', True), (f'AND({own}<>"",{own}<>"ok")', False)):
            self.colour_where(row, column, last_row, last_column, rule, good=good)

    def exactness(self, rows: list[int], start: int, end: int) -> None:
        """Say in column ``end`` where a value of a row passes 2^53, from live formulas."""
        for row in rows:
            span = self.span(row, start, row, end - 1)
            values = [self.values.get((row, column), 0) for column in range(start, end)]
            over = any(isinstance(v, int) and abs(v) > ROUNDED_ABOVE for v in values)
            largest = f"MAX(MAX({span}),-MIN({span}))"
            self.formula(
                row,
                end,
                f'=IF({largest}>{ROUNDED_ABOVE},"{ROUNDED}","")',
                ROUNDED if over else "",
                "note",
            )
        if rows:
            self.colour(min(rows), end, max(rows), end, ("begins with", ROUNDED, False))


class Book:
    """A workbook being written. Raises ``InputError`` where XlsxWriter is not installed."""

    def __init__(self) -> None:
        try:
            import xlsxwriter
        except ImportError:
            raise InputError("a workbook needs XlsxWriter; pip install 'paramcalc[xlsx]'") from None
        # in memory: where a disk is full, what it spools or zips to would fail once more at its end
        self._whole = BytesIO()
        self.file = xlsxwriter.Workbook(
            self._whole,
            {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False},
        )
        self._styles: dict[str, Any] = {}
        self.good = self.file.add_format(GOOD)
        self.bad = self.file.add_format(BAD)

    def sheets(self, names: Iterable[str]) -> None:
        """Add empty sheets, in this order."""
        for name in names:
            self.file.add_worksheet(name)

    def style(self, name: str) -> Any:
        """Return a style by its name."""
        if name not in self._styles:
            self._styles[name] = self.file.add_format(STYLES[name])
        return self._styles[name]

    def page(self, name: str, *widths: float) -> Page:
        """Begin a sheet, with columns of these widths."""
        return Page(self, name, widths)

    def define(self, name: str, ref: str) -> None:
        """Give a cell a name."""
        self.file.define_name(name, f"={ref}")

    def close(self, path: Path) -> None:
        """Write the file. Raises ``OSError``."""
        self.file.close()
        path.write_bytes(self._whole.getbuffer())


def cell(row: int, column: int) -> str:
    """Return the absolute reference of a cell on its own sheet, such as ``$C$7``."""
    return f"${letters(column)}${row + 1}"


def letters(column: int) -> str:
    """Return a column's letters: 0 is A."""
    text = ""
    column += 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text
