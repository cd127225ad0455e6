"""One model's column of sheets Deployment and Lookups: figures by the keys of their rows, each a
named cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramcalc.symbols import Formula, symbol
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.inputs import Placed

if TYPE_CHECKING:
    from paramcalc.views.workbook.deployment import DeploymentSheet


class Column:
    """One model's column: ``put`` writes a figure and gives its symbol."""

    def __init__(self, sheet: DeploymentSheet, placed: Placed, number: int) -> None:
        self.sheet = sheet
        self.placed = placed
        self.number = number
        self.column = sheet.start + number
        self.symbols: dict[str, Formula] = {}
        self.words: dict[str, str] = {}
        self.ruled: set[str] = set()
        self.price: int | None = None
        """Microdollars of a GPU-hour as written."""

    def name(self, key: str) -> str:
        """The name of this model's cell of a figure."""
        return self.placed.prefix + key

    def at(self, key: str) -> Formula:
        """The symbol of a figure."""
        return self.symbols[key]

    def put(self, key: str, text: str, value: Any, style: str = "whole", most: int = 0) -> Formula:
        """Write a figure under its row, name the cell and return its symbol."""
        ref = self.show(key, text, value, style)
        self.sheet.page.book.define(self.name(key), ref)
        if most:
            self.sheet.limits[self.name(key)] = most
        self.symbols[key] = symbol(self.name(key), value or 0)
        return self.symbols[key]

    def use(self, key: str, check: str, text: str, value: int, most: int) -> None:
        """Write what is in use of a typed number while its check is ok, name it and keep its
        symbol."""
        name = self.placed.used + key
        ref = self.show(f"used {key}", checks.in_use(self.check(check), text, value), value)
        self.sheet.page.book.define(name, ref)
        self.sheet.limits[name] = most
        self.symbols[key] = symbol(name, value)

    def flag(self, key: str, value: int) -> None:
        """Know a cell that is 1 or 0, which is written later."""
        self.symbols[key] = symbol(self.name(key), value)

    def check(self, key: str) -> str:
        """The cell that checks what is typed."""
        return self.sheet.page.ref(self.sheet.check_row(key), self.column)

    def put_if(self, flag: str, key: str, label: str, formula: str, value: int) -> Formula:
        """Write a figure that is empty unless a flag is 1. Its number stands in sheet Steps, for
        formulas that use it; return that number's symbol."""
        ref = self.sheet.steps.put(self.placed.model.name, label, formula, value)
        self.put(key, self.if_(flag, ref), value if self.at(flag).value else "")
        self.symbols[key] = symbol(ref, value)
        return self.symbols[key]

    def if_(self, flag: str, text: str) -> str:
        """A cell's formula that is empty unless a flag is 1."""
        return f'=IF({self.name(flag)}=1,{text},"")'

    def show(self, key: str, text: str, value: int | float | str, style: str = "whole") -> str:
        """Write a cell under its row, without a name, and return its reference."""
        if key in self.sheet.lookups.rows:
            page, row, column = self.sheet.lookups.place(key, self.number)
        else:
            page, row, column = self.sheet.page, self.sheet.rows[key], self.column
        return page.formula(row, column, text, value, style)
