"""Workbooks recalculated by LibreOffice, and edited as a person would edit them."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

PROGRAM = shutil.which("soffice") or shutil.which("libreoffice")
ABSENT = "LibreOffice is not installed (Debian's package libreoffice-calc)"
needs_office = pytest.mark.skipif(PROGRAM is None, reason=ABSENT)
SETTINGS = """<?xml version="1.0" encoding="UTF-8"?>
<oor:items xmlns:oor="http://openoffice.org/2001/registry">
<item oor:path="/org.openoffice.Office.Calc/Formula/Load">
<prop oor:name="OOXMLRecalcMode" oor:op="fuse"><value>0</value></prop></item>
</oor:items>
"""
"""A profile that computes every formula of a file when it is opened."""
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
MOST_REPEATED = 2_000
"""Empty cells that a row repeats to the sheet's end are not read."""

Cells = dict[str, dict[str, Any]]
"""Sheets by name, cells by reference: a number as a float, text, or None."""


def convert(paths: list[Path], folder: Path, kind: str) -> list[Path]:
    """Open workbooks, compute all of them, and save them as another kind of file.

    Two programs share them, each with a profile of its own.
    """
    running = [
        _started(part, folder, kind, folder / f"profile{number}")
        for number, part in enumerate((paths[::2], paths[1::2]))
        if part
    ]
    try:
        for program in running:
            output, _ = program.communicate(timeout=600)
            assert program.returncode == 0, output
    finally:
        for program in running:
            program.kill()
    return [folder / f"{path.stem}.{kind}" for path in paths]


def _started(paths: list[Path], folder: Path, kind: str, profile: Path) -> Any:
    assert PROGRAM is not None
    (profile / "user").mkdir(parents=True, exist_ok=True)
    (profile / "user" / "registrymodifications.xcu").write_text(SETTINGS, encoding="utf-8")
    command = [PROGRAM, "--headless", f"-env:UserInstallation={profile.as_uri()}"]
    command += ["--convert-to", kind, "--outdir", str(folder), *map(str, paths)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def recalculated(paths: list[Path], folder: Path) -> list[Cells]:
    """The cells of workbooks as LibreOffice computes them.

    Read from a flat OpenDocument file, which has all digits of a number: LibreOffice writes 15 of
    them into a workbook.
    """
    return [read(path) for path in convert(paths, folder, "fods")]


def read(path: Path) -> Cells:
    found: Cells = {}
    for _, table in ElementTree.iterparse(path):
        if table.tag != _TABLE + "table" or table.get(_TABLE + "name") is None:
            continue
        own: dict[str, Any] = {}
        number = 0
        for row in _rows(table):
            repeated = int(row.get(_TABLE + "number-rows-repeated", "1"))
            column = 0
            for cell in row:
                wide = int(cell.get(_TABLE + "number-columns-repeated", "1"))
                value = _value(cell)
                if value is not None and wide < MOST_REPEATED:
                    for place in range(column, column + wide):
                        own[f"{letters(place)}{number + 1}"] = value
                column += wide
            number += repeated
        found[table.get(_TABLE + "name", "")] = own
        table.clear()
    return found


def _rows(table: ElementTree.Element) -> Iterator[ElementTree.Element]:
    for child in table:
        if child.tag == _TABLE + "table-row":
            yield child
        elif child.tag in (_TABLE + "table-header-rows", _TABLE + "table-row-group"):
            yield from _rows(child)


def _value(cell: ElementTree.Element) -> Any:
    kind = cell.get(_OFFICE + "value-type")
    if kind is None:
        return None
    if kind in ("float", "percentage", "currency"):
        return float(cell.get(_OFFICE + "value", "nan"))
    return "".join("".join(p.itertext()) for p in cell.findall(_TEXT + "p"))


def letters(column: int) -> str:
    text, column = "", column + 1
    while column:
        column, rest = divmod(column - 1, 26)
        text = chr(65 + rest) + text
    return text


class Package:
    """A workbook's parts, to be read and edited without a library that would rewrite them."""

    def __init__(self, path: Path) -> None:
        with zipfile.ZipFile(path) as file:
            self.parts = {name: file.read(name) for name in file.namelist()}
        book = self.parts["xl/workbook.xml"].decode()
        self.sheets = re.findall(r'<sheet name="([^"]+)"', book)
        names = re.findall(r'<definedName name="([^"]+)"[^>]*>([^<]+)!([^<]+)</definedName>', book)
        self.names = {name: (sheet, cell.replace("$", "")) for name, sheet, cell in names}

    def part(self, sheet: str) -> str:
        return f"xl/worksheets/sheet{self.sheets.index(sheet) + 1}.xml"

    def put(self, sheet: str, cell: str, value: int | float | str | None) -> None:
        """Type a number or a word into a cell, whatever stood there; None empties it."""
        part = self.part(sheet)
        if value is None:
            new = f'<c r="{cell}"/>'
        elif isinstance(value, str):
            new = f'<c r="{cell}" t="inlineStr"><is><t>{value}</t></is></c>'
        else:
            new = f'<c r="{cell}"><v>{value}</v></c>'
        text = self.parts[part].decode()
        pattern = rf'<c r="{cell}"(?:[^>/]*/>|[^>]*>.*?</c>)'
        text, count = re.subn(pattern, lambda _: new, text, count=1)
        assert count == 1, (sheet, cell)
        self.parts[part] = text.encode()

    def type(self, name: str, value: int | float | str | None) -> None:
        """Type into the cell of a name."""
        self.put(*self.names[name], value)

    def save(self, path: Path) -> None:
        """Write the workbook without the values of its formulas, so that none can be taken over."""
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for name, data in self.parts.items():
                if name.startswith("xl/worksheets/sheet"):
                    data = re.sub(rb"(</f>)<v>[^<]*</v>", rb"\1", data)
                file.writestr(name, data)
