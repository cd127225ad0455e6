"""A worksheet's XML: its cells read in one pass, and cells inserted where they belong in the bytes.

Nothing else in the part is touched: formulas, styles, filters, pictures and what no library knows
stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import NamedTuple
from xml.sax.saxutils import escape

from paramcalc.errors import printable
from paramcalc.fleet.figures import Figure
from paramcalc.fleet.package import Package, parse, parser_of, plain
from paramcalc.fleet.row import Cell, Fault

SAFE = 2**53
"""Integers up to here survive a spreadsheet's doubles; larger ones are written as text."""
SAFE_DIGITS = 15
"""Of a decimal: as many survive."""
MOST_COLUMNS = 16_384
_OPEN = re.compile(rb"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = rb"""\s%s\s*=\s*(?:"[^"]*"|'[^']*')"""
_WIDTH = 18
_NO_VALUE = Fault("a formula without a stored value; open and save the workbook in a spreadsheet")


class Line(NamedTuple):
    """A row of the sheet: its number, its cells by column from 0, where its element starts and
    ends, and (column, place) of the empty cells after its last value."""

    number: int
    cells: dict[int, Cell]
    start: int
    end: int
    blank: tuple[tuple[int, int], ...]


class Merge(NamedTuple):
    """Merged cells, rows from 1 and columns from 0, ends included."""

    text: str
    top: int
    left: int
    bottom: int
    right: int


class Worksheet:
    """The rows of a sheet from ``first`` (from 1) on. Raises ``FileError`` for what is no sheet."""

    def __init__(self, package: Package, name: str, shared: Sequence[str], first: int) -> None:
        self.package = package
        self.name = name
        self.data = package.read(name)
        if self.data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise package.broken(f"part {name} is in UTF-16")
        self.lines: list[Line] = []
        self.merges: list[Merge] = []
        self.heading_style = b""
        self._read(shared, first)
        self.width = max((max(line.cells, default=-1) + 1 for line in self.lines), default=0)
        for merge in self.merges:
            if merge.bottom >= first:
                self.width = max(self.width, merge.right + 1)

    def _read(self, shared: Sequence[str], first: int) -> None:
        parser = parser_of(self.package, self.name)
        reader = _Reader(self, shared, first, lambda: int(parser.CurrentByteIndex))
        parser.StartElementHandler = reader.start
        parser.EndElementHandler = reader.end
        parser.CharacterDataHandler = reader.text
        parse(self.package, self.name, parser, self.data)

    def appended(self, first: int, rows: Iterable[tuple[Line, Sequence[Figure], bytes]]) -> bytes:
        """Return the sheet with figures in the columns from ``first`` on, in the order of rows.

        With each row comes the style of its numbers, an attribute such as `` s="3"``.
        """
        data, pieces, done, wide = self.data, [], 0, 0
        for line, figures, style in rows:
            tag = _OPEN.match(data, line.start)
            assert tag is not None  # the parser found it there
            opening = re.sub(_ATTRIBUTE % b"spans", b"", tag[0])
            prefix = opening[1:].partition(b"row")[0]
            wide = max(wide, len(figures))
            places = dict(line.blank)
            after = [at for column, at in places.items() if column >= first + len(figures)]
            inside = [at for column, at in places.items() if column >= first]
            new = b"".join(
                _cell(prefix, line.number, first + i, figure, style)
                for i, figure in enumerate(figures)
            )
            pieces += [
                data[done : line.start],
                opening,
                data[tag.end() : min(inside, default=line.end)],
                new,
            ]
            done = min(after, default=line.end)
        pieces.append(data[done:])
        return _framed(b"".join(pieces), first, wide)

    def merged(self, number: int, column: int) -> Merge | None:
        """The merged cells that hide a cell: it is in them and not their first."""
        for merge in self.merges:
            inside = merge.top <= number <= merge.bottom and merge.left <= column <= merge.right
            if inside and (number, column) != (merge.top, merge.left):
                return merge
        return None


class _Reader:
    """Collects rows while the parser goes over a sheet; ``place`` is where it stands."""

    def __init__(
        self, sheet: Worksheet, shared: Sequence[str], first: int, place: Callable[[], int]
    ) -> None:
        self.sheet = sheet
        self.shared = shared
        self.first = first
        self.place = place
        self.row = self.column = self.begin = 0
        self.cells: dict[int, Cell] = {}
        self.blank: list[tuple[int, int]] = []
        self.at = 0
        self.kind = self.style = ""
        self.formula = self.valued = self.taking = False
        self.pieces: list[str] = []
        self.depth = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = plain(tag)
        if name == "row":
            self.row = _whole(attributes.get("r"), self.row + 1)
            self.begin, self.column = self.place(), -1
            self.cells, self.blank = {}, []
        elif name == "c":
            reference = attributes.get("r")
            self.column = _column(reference) if reference else self.column + 1
            self.at = self.place()
            self.kind, self.style = attributes.get("t", "n"), attributes.get("s", "")
            self.formula = self.valued = False
            self.pieces = []
        elif name == "f":
            self.formula = True
        elif name in ("v", "t"):
            self.taking = self.valued = True
        elif name == "rPh":
            self.depth += 1
        elif name == "mergeCell":
            self.merge(attributes.get("ref", ""))

    def text(self, piece: str) -> None:
        if self.taking and not self.depth:
            self.pieces.append(piece)

    def end(self, tag: str) -> None:
        name = plain(tag)
        if name in ("v", "t"):
            self.taking = False
        elif name == "rPh":
            self.depth -= 1
        elif name == "c":
            if self.formula or self.valued:
                self.cells[self.column] = self.value()
                self.blank.clear()
                if self.row == self.first and self.style:
                    self.sheet.heading_style = f' s="{escape(self.style)}"'.encode()
            else:
                self.blank.append((self.column, self.at))
        elif name == "row" and self.row >= self.first:
            line = Line(self.row, self.cells, self.begin, self.place(), tuple(self.blank))
            self.sheet.lines.append(line)

    def value(self) -> Cell:
        """The cell as a text: a shared one by its number, a number in its shortest form."""
        text = "".join(self.pieces)
        if self.formula and not text:
            return "" if self.valued and self.kind == "str" else _NO_VALUE
        if self.kind == "s":
            place = _whole(text, -1)
            return self.shared[place] if 0 <= place < len(self.shared) else Fault("has no text")
        if self.kind == "b":
            return "true" if text == "1" else "false"
        return _number(text) if self.kind == "n" else text

    def merge(self, text: str) -> None:
        ends = text.split(":")
        if len(ends) == 2 and all(re.fullmatch(r"[A-Z]{1,3}[0-9]{1,7}", end) for end in ends):
            (left, top), (right, bottom) = ((_column(e), _row(e)) for e in ends)
            if len(self.sheet.merges) < MOST_MERGES:
                self.sheet.merges.append(Merge(text, top, left, bottom, right))


MOST_MERGES = 100_000


def _whole(text: str | None, empty: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else empty


def _column(reference: str) -> int:
    """A reference's column, from 0."""
    number = 0
    for letter in reference:
        if not "A" <= letter <= "Z":
            break
        number = number * 26 + ord(letter) - 64
    return number - 1


def _row(reference: str) -> int:
    return int(reference.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))


def _letters(column: int) -> str:
    text, number = "", column + 1
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(65 + rest) + text
    return text


def _number(text: str) -> str:
    """A stored number as a person reads it: 2.4900000000000002 is 2.49, 1.0 is 1."""
    if text.isdecimal():
        return text
    try:
        value = float(text)
    except ValueError:
        return text
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _cell(prefix: bytes, row: int, column: int, figure: Figure, style: bytes) -> bytes:
    """A cell with a figure: a number, a truth, or a text that no spreadsheet takes for a formula;
    nothing for an empty one."""
    if figure is None or figure == "":
        return b""
    place = f'{_letters(column)}{row}"'.encode()
    if isinstance(figure, bool):
        kind, inner = b' t="b"', b"<%bv>%d</%bv>" % (prefix, figure, prefix)
    elif isinstance(figure, int) and abs(figure) <= SAFE:
        kind, inner = b"", b"<%bv>%d</%bv>" % (prefix, figure, prefix)
    elif isinstance(figure, Decimal) and len(figure.as_tuple().digits) <= SAFE_DIGITS:
        # dollars, in no style: grouped digits would hide the decimals
        kind, style, inner = b"", b"", b"<%bv>%b</%bv>" % (prefix, f"{figure:f}".encode(), prefix)
    else:
        text = escape(printable(str(figure))).encode("ascii", "xmlcharrefreplace")
        kind = b' t="inlineStr"'
        inner = b'<%bis><%bt xml:space="preserve">%b</%bt></%bis>' % (
            prefix,
            prefix,
            text,
            prefix,
            prefix,
        )
    return b'<%bc r="%b%b%b>%b</%bc>' % (prefix, place, style, kind, inner, prefix)


def _framed(data: bytes, first: int, wide: int) -> bytes:
    """The sheet's own account of its size and columns, widened."""
    size = re.search(rb'<(?:\w+:)?dimension\s+ref="([A-Z]+\d+(?::[A-Z]+\d+)?)"', data)
    if size is not None:
        start, _, end = size[1].decode().rpartition(":")
        last = _letters(max(_column(end), first + wide - 1))
        widened = f"{start or end}:{last}{_row(end)}".encode()
        data = data[: size.start(1)] + widened + data[size.end(1) :]
    column = b'col min="%d" max="%d" width="%d" customWidth="1"/>' % (
        first + 1,
        first + wide,
        _WIDTH,
    )
    head = data.index(b"sheetData")
    found = re.search(rb"</((?:\w+:)?)cols\s*>", data[:head])
    if found is None:
        start = data.rindex(b"<", 0, head)
        prefix = data[start + 1 : head]
        new = b"<%bcols><%b%b</%bcols>" % (prefix, prefix, column, prefix)
        return data[:start] + new + data[start:]
    ends = re.findall(rb'\smax\s*=\s*"(\d+)"', data[: found.start()])
    if max(map(int, ends), default=0) > first:
        return data
    return data[: found.start()] + b"<%b%b" % (found[1], column) + data[found.start() :]
