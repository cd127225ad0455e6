"""Checks of what is typed: a cell says ok, or what must stand there.

Validation of a spreadsheet lets an empty cell pass, and whatever is pasted. So formulas do not use
a typed cell itself but one beside it ("in use"), which takes over what is right. Until a wrong one
is, the value as written stands in, the answers stay empty, and the sheets say which cell it is.
"""

from __future__ import annotations

from paramcalc.views.workbook.book import Page

OK = "ok"
MOST_WORDS = 255
"""Letters of a text inside a formula."""


def words(text: str) -> str:
    """Return a text as it stands in a formula, quotes included."""
    return '"' + text[:MOST_WORDS].replace('"', '""') + '"'


def whole(ref: str, low: int, high: int) -> str:
    """Return the check of a whole number from ``low`` to ``high``."""
    wrong = words(f"must be a whole number from {low:,} to {high:,}")
    inside = f"AND({ref}>={low},{ref}<={high},INT({ref})={ref})"
    return _numeric(ref, inside, wrong)


def tenths(ref: str, high: int) -> str:
    """Return the check of a number above 0 and up to ``high``, with at most one decimal."""
    wrong = words(f"must be a number from 0.1 to {high:,}, with at most one decimal")
    inside = f"AND({ref}>0,{ref}<={high},ROUND({ref}*10,0)=ROUND({ref}*10,6))"
    return _numeric(ref, inside, wrong)


def amount(ref: str, high: int) -> str:
    """Return the check of a number above 0 and up to ``high``, or nothing."""
    wrong = words(f"must be a number above 0, up to {high:,}, or empty")
    return f'IF({ref}="","{OK}",{_numeric(ref, f"AND({ref}>0,{ref}<={high})", wrong)})'


def _numeric(ref: str, inside: str, wrong: str) -> str:
    return f'IF(ISNUMBER({ref}),IF({inside},"{OK}",{wrong}),{wrong})'


def listed(ref: str, names: str, sheet: str) -> str:
    """Return the check of a word of a list. ``MATCH`` alone takes ``*`` for any word."""
    wrong = words(f"must be a name of the list on sheet {sheet}")
    place = f"MATCH({ref},{names},0)"
    same = f'IF(INDEX({names},{place})={ref},"{OK}",{wrong})'
    return f"IF(ISNUMBER({place}),{same},{wrong})"


def in_use(check: str, text: str, written: int) -> str:
    """Return the formula of the value in use: a text while its check is ok, else the value as
    written."""
    return f'=IF({check}="{OK}",{text},{written})'


def broken(span: str) -> str:
    """Return how many checks of a block of cells are not ok, as text of a cell."""
    return f'COUNTIF({span},"?*")-COUNTIF({span},"{OK}")'


def redden(page: Page, row: int, column: int, last_row: int, last_column: int, check: int) -> None:
    """Colour typed cells whose check, in rows that begin with ``check``, is not ok."""
    own = page.local(check, column)
    page.colour_where(
        row, column, last_row, last_column, f'AND({own}<>"",{own}<>"{OK}")', good=False
    )
