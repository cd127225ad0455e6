"""A planner's own table with figures beside its rows: the file, and what to say of it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from paramcalc.deploy import hardware
from paramcalc.errors import FileError, InputError, printable
from paramcalc.fleet import answers, roles
from paramcalc.fleet.answers import ERROR, Answer, Fleet
from paramcalc.fleet.csv_table import CsvTable
from paramcalc.fleet.workbook import WorkbookTable
from paramcalc.model import DEFAULT_CONTEXT
from paramcalc.sources.files import typed
from paramcalc.spelling import shown
from paramcalc.writing import beside, free

KINDS = (".csv", ".tsv", ".xlsx", ".xlsm")
_EMPTY = {
    "context": "context the model's own",
    "batch": "batch 1",
    "dtype": "weights as released",
    "kv_dtype": "cache bf16",
    "gpus": "1 GPU",
    "tp": "tp and pp as fit chooses",
}
"""What holds where no cell says otherwise; the last two for GPUs."""
MOST_FAULTS = 5
"""Rows whose faults are said beside the file too."""


class Wish(NamedTuple):
    """What is wanted: ``given`` are the columns by role, ``columns`` those to append."""

    source: str
    out: str
    given: Mapping[str, str | None]
    columns: Sequence[str] = ()
    sheet: str | None = None
    header_row: int = 1
    hardware: Sequence[str] = ()
    price: str | None = None
    force: bool = False


class Done(NamedTuple):
    """What was written: rows with a model, those of them with a fault, the fleet that answered."""

    rows: int
    faults: int
    notes: list[str]
    fleet: Fleet


def write(wish: Wish) -> Done:
    """Read a table, append its figures and write it to ``wish.out``, whole or not at all.

    Raises ``InputError``, or ``FileError`` for a file that cannot be read.
    """
    began = time.perf_counter()
    source, out = typed(wish.source), typed(wish.out)
    _check_names(wish, source, out)
    table: CsvTable | WorkbookTable
    if source.suffix.lower() in (".csv", ".tsv"):
        if wish.sheet is not None:
            raise InputError(f"sheet = {shown(wish.sheet)}: {source} is CSV; leave it out")
        table = CsvTable(source, wish.header_row)
    else:
        table = WorkbookTable(source, wish.header_row, wish.sheet)
    try:
        places = roles.find(table.headers, wish.given)
    except InputError as error:
        raise InputError(f"{error}{table.near()}") from None
    priced = wish.price is not None or "price" in places or _own_price(wish.hardware)
    names = answers.columns(wish.columns, places, priced=priced)
    fleet = Fleet(names, source.parent, wish.hardware, wish.price)
    try:
        found = [None if cells is None else fleet.answer(cells) for cells in table.cells(places)]
    except answers.NoModels as error:
        column = shown(table.headers[places["model"]])
        raise InputError(f"model-column = {column}: {error}") from None
    _write(table, out, _free(names, table.headers), found)
    rows = [answer for answer in found if answer is not None]
    faults = sum(answer.error is not None for answer in rows)
    notes = [
        *_columns_read(wish, table, places),
        *_assumed(fleet, places),
        *_renamed(names, table.headers),
        *_unfit(rows),
        *_faults(table, found),
    ]
    if isinstance(table, WorkbookTable) and len(table.sheets) > 1:
        hidden = ", which is hidden" if table.sheets[table.sheet][1] else ""
        notes.append(f"sheet {shown(table.sheet)}{hidden}; the other sheets are as they were")
    if isinstance(table, CsvTable) and table.legacy:
        notes.append("the file is not UTF-8: its bytes are kept, names beyond ASCII may not match")
    seconds = time.perf_counter() - began
    speed = f" ({len(rows) / seconds:,.0f} rows/s)" if seconds > 1 else ""
    notes.append(
        f"wrote {out}: {_many(len(rows), 'row')}, {faults:,} with a fault in {ERROR}{speed}"
    )
    return Done(len(rows), faults, [printable(note) for note in notes], fleet)


def _check_names(wish: Wish, source: Path, out: Path) -> None:
    """Refuse names of files that cannot be before anything is read."""
    kind = source.suffix.lower()
    if kind == ".xls":
        raise FileError(f"{source}: an old .xls; save it as .xlsx")
    if kind not in KINDS:
        raise InputError(f"table = {source}: unknown kind of file; end it in {', '.join(KINDS)}")
    if out.suffix.lower() != kind:
        raise InputError(f"out = {out}: a {kind} stays one; end it in {kind}")
    free(out, force=wish.force)


def _own_price(files: Sequence[str]) -> bool:
    """Whether a person's own accelerators have a price."""
    if not files:
        return False
    return any(unit.price_per_hour_micro is not None for unit in hardware.all(files))


def _free(names: Sequence[str], headers: Sequence[str]) -> list[str]:
    """The names of the new columns: longer ones where the table has theirs already."""
    taken = {header.strip().lower() for header in headers}
    if ERROR in taken:
        raise InputError(
            f"{ERROR}: the table has a column of that name, and was annotated before; take the"
            " table as it was, or remove the columns"
        )
    return [_unused(name, taken) for name in names]


def _unused(name: str, taken: set[str]) -> str:
    """A name that no column has: itself, else ``paramcalc_`` and it, else that with a number."""
    longer = f"paramcalc_{name}"
    numbered = (f"{longer}_{number}" for number in count(2))
    return next(each for each in chain([name, longer], numbered) if each not in taken)


def _renamed(names: Sequence[str], headers: Sequence[str]) -> list[str]:
    pairs = [
        (old, new) for old, new in zip(names, _free(names, headers), strict=True) if old != new
    ]
    return [f"the table has {old} already; the new column is {new}" for old, new in pairs]


def _write(
    table: CsvTable | WorkbookTable, out: Path, names: list[str], found: list[Answer | None]
) -> None:
    with beside(out) as held:
        table.write(held, names, found)


def _columns_read(
    wish: Wish, table: CsvTable | WorkbookTable, places: Mapping[str, int]
) -> list[str]:
    guessed = [role for role in places if wish.given.get(role) is None]
    if not guessed:
        return []
    pairs = ", ".join(f"{role} from {shown(table.headers[places[role]])}" for role in guessed)
    return [f"guessed by their names: {pairs}"]


def _assumed(fleet: Fleet, places: Mapping[str, int]) -> list[str]:
    """Say what holds where there is no column or an empty cell."""
    wanted = [
        text for role, text in _EMPTY.items() if "gpu" in places or role not in ("gpus", "tp")
    ]
    found = [f"where a cell is empty or there is no column: {', '.join(wanted)}"]
    if fleet.assumed_context:
        found.append(
            f"context = {DEFAULT_CONTEXT:,}: assumed in {_many(fleet.assumed_context, 'question')}"
            " whose model states none"
        )
    return found


def _unfit(rows: Sequence[Answer]) -> list[str]:
    unfit = sum(answer.unfit for answer in rows)
    verb = "does" if unfit == 1 else "do"
    return [f"{_many(unfit, 'row')} {verb} not fit: times and money left empty"] if unfit else []


def _faults(table: CsvTable | WorkbookTable, found: Sequence[Answer | None]) -> list[str]:
    """The first faults, each with the number of its row."""
    wrong = [
        (table.number(place), answer.error)
        for place, answer in enumerate(found)
        if answer is not None and answer.error is not None
    ]
    told = [f"row {number}: {error}" for number, error in wrong[:MOST_FAULTS]]
    left = len(wrong) - len(told)
    return told + ([f"and {_many(left, 'more row')} with a fault"] if left else [])


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
