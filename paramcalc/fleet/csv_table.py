"""A planner's CSV: read as spreadsheets write it, written back byte for byte with cells appended.

A record is kept as its own bytes; only what comes after its last cell is new. The delimiter is
found in the heading, quotes and line ends are the file's, bytes that are not UTF-8 pass through.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Literal

from paramcalc.errors import FileError, InputError, printable
from paramcalc.fleet import commas, roles
from paramcalc.fleet.answers import ERROR, Answer
from paramcalc.fleet.figures import Figure
from paramcalc.fleet.row import Cell

DELIMITERS = ",;\t|"
"""Tried in this order; the one that most parts the heading is taken."""
MOST_CELL = 131_072
"""Letters of a cell: more is an unclosed quote."""
_MARKS = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_BOM = "\ufeff"
_POINT = re.compile(r"\$?[0-9]+\.[0-9]+")


class CsvTable:
    """A CSV file whose heading is row ``header_row`` (from 1; a first line ``sep=;`` is none).

    Raises ``FileError`` for what cannot be read, ``InputError`` for a row that is not there.
    """

    def __init__(self, path: Path, header_row: int = 1) -> None:
        self.path = path
        self.header_row = header_row
        try:
            with path.open("rb") as file:
                start = file.read(4)
        except OSError as error:
            raise FileError(
                f"{path}: {(error.strerror or str(error)).lower()}; check the path"
            ) from None
        self.encoding = _MARKS.get(start[:2], "utf-8")
        self.delimiter = ","
        self.point = "."
        """What stands before decimals that are written."""
        self.legacy = False
        self.first = 1
        """The number of the first line's row."""
        self._sniff()
        self.width = self.rows = 0
        """The most cells of a record from the heading on, and how many there are below it."""
        for number, (raw, cells) in enumerate(self._records(), self.first):
            if number <= header_row and "\0" in raw:
                raise FileError(
                    f"{path}: row {number} holds null characters, as UTF-16 or UTF-32 without its"
                    " mark does; save it as UTF-8"
                )
            if number == header_row:
                self.headers = [cell.strip() for cell in cells]
                self.quoted = raw.lstrip(_BOM).startswith('"') and _all_quoted(raw, len(cells))
            if number >= header_row:
                self.width = max(self.width, len(cells))
                self.rows += number > header_row
        if not hasattr(self, "headers"):
            raise InputError(f"header-row = {header_row}: {path} has {number} rows; lower it")
        self.headers += [""] * (self.width - len(self.headers))

    def _sniff(self) -> None:
        """Find the delimiter, and whether all of the file is in its encoding."""
        found = False
        first = ""
        for number, line in enumerate(self._lines(), 1):
            if not first:
                first = line
            told = line.removeprefix(_BOM).rstrip("\r\n")
            if number == 1 and told.lower().startswith("sep=") and len(told) == 5:
                self.delimiter, found, self.first = told[4], True, 0
            self.legacy = self.legacy or not (line.isascii() or _encodable(line))
            if not found and number >= self.header_row and line.strip():
                found, plain = True, _outside_quotes(line)
                self.delimiter = max(
                    DELIMITERS, key=lambda sign: (roles.known(line.split(sign)), plain.count(sign))
                )
        if not first:
            raise FileError(f"{self.path}: is empty; give a table with a heading")

    def _lines(self) -> Iterator[str]:
        """The file's lines with their ends, the mark of its encoding in the first."""
        errors = "surrogateescape" if self.encoding == "utf-8" else "strict"
        try:
            with self.path.open(encoding=self.encoding, errors=errors, newline="") as file:
                while line := file.readline(MOST_CELL * 8):
                    if len(line) == MOST_CELL * 8:
                        raise FileError(f"{self.path}: a line is too long; is it a CSV file?")
                    yield line
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or f"not {self.encoding}"
            raise FileError(f"{self.path}: {why.lower()}; save it as UTF-8") from None

    def _records(self) -> Iterator[tuple[str, list[str]]]:
        """Every record, as it stands and as its cells."""
        held: list[str] = []

        def lines() -> Iterator[str]:
            for number, line in enumerate(self._lines()):
                held.append(line)
                yield line if number else line.removeprefix(_BOM)

        reader = csv.reader(lines(), delimiter=self.delimiter)
        raw = ""
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                where = reader.line_num
                raise FileError(
                    f"{self.path}: row at line {where}: {error}; close its quote"
                ) from None
            if cells is None:
                break
            raw = "".join(held)
            held.clear()
            yield raw, cells
        more = io.StringIO(raw + "\nx", newline="")
        if raw and len(list(csv.reader(more, delimiter=self.delimiter))) == 1:
            raise FileError(f"{self.path}: the last row has an open quote; close it")

    def cells(self, places: dict[str, int]) -> Iterator[dict[str, Cell] | None]:
        """Yield the cells of each row below the heading by role; None for an empty row."""
        read = commas.read if self.delimiter == ";" else commas.as_it_is
        self.point = "," if self.delimiter == ";" else "."
        price = places.get("price", self.width)
        for number, (_, cells) in enumerate(self._records(), self.first):
            if number > self.header_row:
                full = any(cell.strip() for cell in cells)
                if price < len(cells) and _POINT.fullmatch(cells[price].strip()):
                    self.point = "."  # as the table's own prices
                yield (
                    {r: read(r, cells[p]) if p < len(cells) else "" for r, p in places.items()}
                    if full
                    else None
                )

    def number(self, place: int) -> int:
        """Return the number of the row that ``cells`` gave at a place, from 0."""
        return self.header_row + 1 + place

    def write(self, path: Path, names: Sequence[str], answers: Iterable[Answer | None]) -> None:
        """Write the file to ``path`` with columns appended; ``answers`` as ``cells`` gave rows."""
        each = iter(answers)
        with path.open("w", encoding=self.encoding, errors="surrogateescape", newline="") as file:
            for number, (raw, cells) in enumerate(self._records(), self.first):
                if number < self.header_row:
                    file.write(raw)
                elif number == self.header_row:
                    file.write(self._longer(raw, cells, [*names, ERROR]))
                else:
                    answer = next(each)
                    if answer is not None:
                        new = [*map(self._text, answer.figures), self._plain(answer.error or "")]
                        file.write(self._longer(raw, cells, new))
                    elif cells:
                        file.write(self._longer(raw, cells, [""] * (len(names) + 1)))
                    else:
                        file.write(raw)

    def _longer(self, raw: str, cells: list[str], new: list[str]) -> str:
        body = raw.rstrip("\r\n")
        out = io.StringIO()
        quoting: Literal[0, 1] = csv.QUOTE_ALL if self.quoted else csv.QUOTE_MINIMAL
        csv.writer(out, delimiter=self.delimiter, lineterminator="", quoting=quoting).writerow(new)
        lead = self.delimiter * (self.width - len(cells) + bool(cells))
        return body + lead + out.getvalue() + raw[len(body) :]

    def _plain(self, text: str) -> str:
        """A message in letters that the file's encoding surely has, and no formula."""
        text = printable(text)
        text = text.encode("ascii", "replace").decode() if self.legacy else text
        return f"'{text}" if text[:1] in tuple("=+-@\t\r") else text

    def _text(self, figure: Figure) -> str:
        if figure is None:
            return ""
        if isinstance(figure, Decimal):
            return f"{figure:f}".replace(".", self.point)
        return str(figure).lower() if isinstance(figure, bool) else str(figure)

    def near(self) -> str:
        """Say which of the first rows looks like a heading, where the given one does not."""
        for number, (_, cells) in enumerate(self._records(), self.first):
            if number > roles.MOST_NAMED:
                break
            if number != self.header_row and roles.is_heading(cells):
                return f"; row {number} looks like a heading: --header-row {number}"
        return ""


def _encodable(line: str) -> bool:
    try:
        line.encode()
    except UnicodeEncodeError:
        return False
    return True


def _outside_quotes(line: str) -> str:
    return "".join(line.split('"')[::2])


def _all_quoted(raw: str, cells: int) -> bool:
    """Whether each cell of a heading stands in quotes."""
    return _outside_quotes(raw.strip("\r\n" + _BOM)).strip("".join(DELIMITERS)) == "" and (
        raw.count('"') >= 2 * cells
    )
