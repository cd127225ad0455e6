"""Commas in numbers: in a file whose cells semicolons part, a comma may stand before decimals."""

from __future__ import annotations

import re

from paramcalc.fleet.row import Cell, Fault

SIZES = ("gpus", "tp", "context", "batch")
"""Roles whose cells hold whole numbers."""
_GROUPS = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]{1,3}(?:,[0-9]{3})+")
_EITHER = re.compile(r"0*[1-9][0-9]{0,2}[.,]000")
_DECIMALS = re.compile(r"([0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+),([0-9]+)([A-Za-z]?)")


def as_it_is(_role: str, text: str) -> Cell:
    """Return a cell of a file in which a comma parts cells: as it stands."""
    return text


def read(role: str, text: str) -> Cell:
    """Return a cell with a point before decimals and nothing between thousands.

    Sizes are whole, so three digits behind a sign are thousands: 8.192 is 8192, as 8,192 is. Where
    those are zeros the sign may stand before decimals too, 1 or a thousand: a fault. In a price a
    comma stands before decimals: 2,49 is 2.49, 1.234,50 is 1234.50. Other cells stay as they are.
    """
    plain = text.strip()
    if role in SIZES and _EITHER.fullmatch(plain):
        few = plain[:-4]
        return Fault(f"{plain} may be {few} or {few},000; write {few} or {few}000, without a sign")
    if role in SIZES and _GROUPS.fullmatch(plain):
        return plain.replace(".", "").replace(",", "")
    found = _DECIMALS.fullmatch(plain) if role in SIZES or role == "price" else None
    return f"{found[1].replace('.', '')}.{found[2]}{found[3]}" if found else text
