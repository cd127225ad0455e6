"""Intermediate values: long parts of formulas, and powers, in cells of their own."""

from __future__ import annotations

from paramcalc.numbers import BITS, ONE
from paramcalc.symbols import Atom, Formula
from paramcalc.views.cells import Writer
from paramcalc.views.workbook.book import Book, cell
from paramcalc.views.workbook.column import Column

HALF = 1 << BITS // 2
"""Products of two numbers of 30 bits are taken in halves, which keeps all below 2^46."""
MOST_LABEL = 76
POWERS = (
    "A share to a power: digit is a binary digit of the exponent, square the share squared once"
    " more on each row (in units of 2^-30), value the product so far."
)


class Steps:
    """The sheet of intermediate values."""

    first = 4

    def __init__(self, book: Book) -> None:
        page = book.page("Steps", 10, 80, 26, 16, 8)
        self.page = page
        page.text(0, 0, "Intermediate values", "title")
        page.text(1, 0, "Parts of formulas that are too long for one cell.", "note")
        page.text(2, 0, POWERS, "note")
        page.heads(3, ["model", "formula"])
        page.heads(3, ["value", "square", "digit"], 2, over="numbers")
        page.freeze(4, 0)
        self.row = self.first
        self._held: dict[str, str] = {}

    def writer(self, label: str, limits: dict[str, int]) -> Writer:
        """Return a writer of one model's formulas; its long parts stand in the rows from here on,
        under the label."""

        def hold(formula: Formula, text: str) -> str:
            return self._hold(label, formula, text)

        writer = Writer(limits, hold)
        writer.power = lambda atom: self._power(label, atom, writer)
        return writer

    def largest(self, column: Column, first: int) -> None:
        """Show the largest value of a model's rows, which begin with the ``first``."""
        rows = range(first, self.row)
        value = max((abs(int(self.page.values[row, 2])) for row in rows), default=0)
        span = self.page.span(first, 2, self.row - 1)
        text = f"=MAX(MAX({span}),-MIN({span}))" if rows else "=0"
        column.put("largest_step", text, value)

    def _hold(self, model: str, formula: Formula, text: str) -> str:
        if text not in self._held:
            self._held[text] = self.put(model, formula.text(), text, formula.value)
        return self._held[text]

    def put(self, model: str, label: str, text: str, value: int) -> str:
        """Write an intermediate value (a formula without ``=``) and return its reference."""
        self.page.text(self.row, 0, model)
        short = label if len(label) <= MOST_LABEL else label[:MOST_LABEL] + "..."
        self.page.text(self.row, 1, short, "note")
        ref = self.page.formula(self.row, 2, f"={text}", value)
        self.row += 1
        return ref

    def _power(self, model: str, atom: Atom, writer: Writer) -> str:
        """``numbers.fixed_power``, a row for each binary digit of the exponent: squares are taken
        and rounded in the same order, so that the cells hold the same integers."""
        base, exponent = atom.parts
        share = self._hold(model, base, writer.text(base))
        tokens = self._hold(model, exponent, writer.text(exponent))
        exponent_text = exponent.text()
        power, square = str(ONE), share
        found, squared = ONE, base.value
        page = self.page
        for digit in range(writer.most(exponent).bit_length()):
            row, label = self.row, f"a share to the power of {exponent_text}, digit {digit}"
            own = cell(row, 4)
            one = exponent.value >> digit & 1
            whole = f"INT({tokens}/{1 << digit})"
            page.formula(row, 4, f"={whole}-2*INT({tokens}/{2 << digit})", one)
            found = found * squared >> BITS if one else found
            text = f"IF({own}=1,{_times(power, square)},{power})"
            power = self.put(model, label, text, found)
            squared = squared * squared >> BITS
            square = page.formula(row, 3, f"={_times(square, square)}", squared)
        return power


def _times(a: str, b: str) -> str:
    """``a * b >> 30`` of two cells, exact."""
    high = f"INT({a}/{HALF})"
    return f"INT(({high}*{b}+INT(({a}-{high}*{HALF})*{b}/{HALF}))/{HALF})"
