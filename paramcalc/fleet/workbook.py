"""A planner's workbook: one sheet of it read, and written back with columns appended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from paramcalc.errors import FileError, InputError, did_you_mean
from paramcalc.fleet import roles
from paramcalc.fleet.answers import ERROR, Answer
from paramcalc.fleet.figures import Figure
from paramcalc.fleet.package import Package, parse, parser_of, plain
from paramcalc.fleet.row import Cell, Fault
from paramcalc.fleet.worksheet import MOST_COLUMNS, Line, Worksheet
from paramcalc.spelling import shown

MOST_TEXTS = 10_000_000


class WorkbookTable:
    """A sheet whose heading is row ``header_row``: the one called ``sheet``, else the first that is
    not hidden. Raises ``FileError`` for what cannot be read, ``InputError`` for what is not there.
    """

    def __init__(self, path: Path, header_row: int = 1, sheet: str | None = None) -> None:
        self.path = path
        self.header_row = header_row
        self.package = Package(path)
        kinds = self.package.related("")
        book = next((name for kind, name in kinds.values() if kind == "officeDocument"), "")
        self.book = book
        self.sheets: dict[str, tuple[str, bool]] = {}
        """Each sheet's part and whether it is hidden, by name."""
        self._find_sheets()
        self.sheet = self._chosen(sheet)
        self.part = self.sheets[self.sheet][0]
        self.styles = self._related("styles")
        texts = self._related("sharedStrings")
        shared = _texts(self.package, texts) if texts else []
        self.worksheet = Worksheet(self.package, self.part, shared, header_row)
        lines = self.worksheet.lines
        if not lines or lines[0].number != header_row:
            last = lines[-1].number if lines else 0
            why = "is empty" if last else "and all after it are empty"
            raise InputError(
                f"header-row = {header_row}: the row {why} in sheet {shown(self.sheet)};"
                " name the row of the heading"
            )
        self.width = self.worksheet.width
        cells = lines[0].cells
        texts_ = [cells.get(i, "") for i in range(self.width)]
        self.headers = ["" if isinstance(t, Fault) else t.strip() for t in texts_]
        self.rows = len(lines) - 1

    def _related(self, kind: str) -> str | None:
        found = self.package.related(self.book).values()
        return next((name for own, name in found if own == kind), None)

    def _find_sheets(self) -> None:
        parts = self.package.related(self.book)

        def start(tag: str, attributes: dict[str, str]) -> None:
            if tag == "sheet":
                ids = (value for key, value in attributes.items() if plain(key) == "id")
                kind, part = parts.get(next(ids, ""), ("", ""))
                if kind == "worksheet":
                    hidden = attributes.get("state", "visible") != "visible"
                    self.sheets[attributes.get("name", "")] = (part, hidden)

        self.package.scan(self.book, start)

    def _chosen(self, name: str | None) -> str:
        seen = [sheet for sheet, (_, hidden) in self.sheets.items() if not hidden]
        listed = ", ".join(map(shown, seen))
        if name is None:
            if not seen:
                raise InputError(f"{self.path}: no sheet is shown; give --sheet")
            return seen[0]
        if name not in self.sheets:
            near = did_you_mean(name, self.sheets)
            raise InputError(f"sheet = {shown(name)}: no such sheet{near}; there are {listed}")
        return name

    def cells(self, places: dict[str, int]) -> Iterator[dict[str, Cell] | None]:
        """Yield the cells of each row below the heading by role; None for an empty row."""
        sheet = self.worksheet
        hiding = any(merge.bottom > self.header_row for merge in sheet.merges)
        for line in sheet.lines[1:]:
            if not any(isinstance(c, Fault) or c.strip() for c in line.cells.values()):
                yield None
                continue
            found = {role: line.cells.get(place, "") for role, place in places.items()}
            if hiding:
                for role, place in places.items():
                    if merge := sheet.merged(line.number, place):
                        found[role] = Fault(f"inside the merged cells {merge.text}; unmerge them")
            yield found

    def number(self, place: int) -> int:
        """Return the number of the row that ``cells`` gave at a place, from 0."""
        return self.worksheet.lines[1 + place].number

    def write(self, path: Path, names: Sequence[str], answers: Iterable[Answer | None]) -> None:
        """Write the workbook to ``path`` with columns appended; ``answers`` as ``cells`` gave rows.

        Raises ``InputError`` where the sheet has no room for them.
        """
        heads = [*names, ERROR]
        if self.width + len(heads) > MOST_COLUMNS:
            raise InputError(
                f"{self.path}: {self.width:,} columns, and a sheet holds {MOST_COLUMNS:,};"
                " name fewer with --columns"
            )
        changed = {}
        style = b""
        if self.styles is not None and self.styles in self.package.parts:
            changed[self.styles], style = _grouped(self.package.read(self.styles))
        sheet = self.worksheet

        def rows() -> Iterator[tuple[Line, Sequence[Figure], bytes]]:
            yield sheet.lines[0], heads, sheet.heading_style
            for line, answer in zip(sheet.lines[1:], answers, strict=True):
                if answer is not None:
                    yield line, [*answer.figures, answer.error], style

        changed[self.part] = sheet.appended(self.width, rows())
        with path.open("wb") as file:
            self.package.write(file, changed)
        self.package.zip.close()  # it may be written over

    def near(self) -> str:
        """Say where a heading may be, where the given row has none."""
        lines = self.worksheet.lines[: roles.MOST_NAMED]
        for line in lines[1:]:
            if roles.is_heading([str(cell) for cell in line.cells.values()]):
                return f"; row {line.number} looks like a heading: --header-row {line.number}"
        others = [name for name in self.sheets if name != self.sheet]
        return f"; other sheets: {', '.join(map(shown, others[:10]))}: --sheet" if others else ""


def _texts(package: Package, name: str) -> list[str]:
    """The workbook's shared texts, their runs joined and readings of characters left out."""
    found: list[str] = []
    pieces: list[str] = []
    inside = {"t": 0, "rPh": 0}

    def start(tag: str, _: dict[str, str]) -> None:
        name = plain(tag)
        if name in inside:
            inside[name] += 1
        elif name == "si":
            pieces.clear()

    def end(tag: str) -> None:
        name = plain(tag)
        if name in inside:
            inside[name] -= 1
        elif name == "si":
            found.append("".join(pieces))
            if len(found) > MOST_TEXTS:
                raise FileError(f"{package.path}: over {MOST_TEXTS:,} texts; use CSV")

    def text(piece: str) -> None:
        if inside["t"] and not inside["rPh"]:
            pieces.append(piece)

    parser = parser_of(package, name)
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parse(package, name, parser, package.read(name))
    return found


def _grouped(styles: bytes) -> tuple[bytes, bytes]:
    """The part of styles with one more, the first with grouped digits, and that style's attribute.

    As it was, and no style, where its list is not of the usual form.
    """
    found = re.search(rb'<((?:\w+:)?)cellXfs\s+count="(\d+)"[^>]*>(.*?)</\1cellXfs>', styles, re.S)
    if found is None:
        return styles, b""
    prefix, count = found[1], int(found[2])
    xfs = re.findall(rb"<%bxf[\s/>]" % prefix, found[3])
    font = re.search(rb'<%bxf\s[^>]*fontId="(\d+)"' % prefix, found[3])
    if len(xfs) != count:
        return styles, b""
    new = b'<%bxf numFmtId="3" fontId="%b" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/>'
    filled = found[0].replace(b'count="%d"' % count, b'count="%d"' % (count + 1), 1)
    close = b"</%bcellXfs>" % prefix
    filled = filled[: -len(close)] + new % (prefix, font[1] if font else b"0") + close
    return styles[: found.start()] + filled + styles[found.end() :], b' s="%d"' % count
