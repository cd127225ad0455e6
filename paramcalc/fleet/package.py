"""A workbook as a package of parts: bounded, checked, and written back with one part changed."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from xml.parsers import expat

from paramcalc.errors import FileError

MOST_PARTS = 10_000
MOST_BYTES = 2_000_000_000
"""Of all parts, unpacked."""
MOST_PART = 500_000_000
"""Of a part that is read whole."""
CHUNK = 1 << 20
_OLD = b"\xd0\xcf\x11\xe0"
"""What an .xls starts with, and a workbook with a password."""

Start = Callable[[str, dict[str, str]], None]


class Package:
    """The parts of a .xlsx or .xlsm. Raises ``FileError`` with one line for what is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                old = file.read(4) == _OLD
            book = None if old else zipfile.ZipFile(path)
        except OSError as error:
            raise FileError(f"{path}: {(error.strerror or '').lower()}; check the path") from None
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            raise self.broken("no workbook") from None
        if book is None:
            raise FileError(
                f"{path}: an old .xls, or a workbook with a password; save it as .xlsx without"
            )
        self.zip = book
        self.parts = {info.filename: info for info in self.zip.infolist()}
        size = sum(info.file_size for info in self.parts.values())
        if len(self.parts) != len(self.zip.infolist()):
            raise self.broken("a part stands in it twice")
        if len(self.parts) > MOST_PARTS or size > MOST_BYTES:
            raise FileError(
                f"{path}: {size:,} bytes in {len(self.parts):,} parts, unpacked; save it anew"
            )

    def broken(self, why: str) -> FileError:
        """Return the error of a workbook that cannot be read."""
        return FileError(f"{self.path}: {why}; open and save it in a spreadsheet")

    def read(self, name: str) -> bytes:
        """Return a part whole. Raises ``FileError``."""
        info = self.parts.get(name)
        if info is None:
            raise self.broken(f"has no part {name[:80]}")
        if info.file_size > MOST_PART:
            raise FileError(f"{self.path}: {name[:80]} has {info.file_size:,} bytes; use CSV")
        with self._reading(info) as file:
            data: bytes = file.read()
            return data

    @contextmanager
    def _reading(self, info: zipfile.ZipInfo) -> Iterator[Any]:
        try:
            with self.zip.open(info) as file:
                yield file
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError):
            raise self.broken(f"part {info.filename[:80]} is broken") from None

    def write(self, target: BinaryIO, changed: Mapping[str, bytes]) -> None:
        """Write the package, parts that changed in place of the old ones, all else as it is."""
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as out:
            for name, info in self.parts.items():
                kept = zipfile.ZipInfo(name, info.date_time)
                kept.compress_type = (
                    zipfile.ZIP_STORED
                    if info.compress_type == zipfile.ZIP_STORED
                    else zipfile.ZIP_DEFLATED
                )
                kept.external_attr = info.external_attr
                kept.file_size = len(changed[name]) if name in changed else info.file_size
                with out.open(kept, "w") as sink:
                    if name in changed:
                        sink.write(changed[name])
                        continue
                    with self._reading(info) as source:
                        while piece := source.read(CHUNK):
                            sink.write(piece)

    def related(self, name: str) -> dict[str, tuple[str, str]]:
        """Return what a part relates to, by id: the kind of relation and the other part's name."""
        part = PurePosixPath(name)
        own = str(part.parent / "_rels" / f"{part.name}.rels")
        found: dict[str, tuple[str, str]] = {}

        def start(tag: str, attributes: dict[str, str]) -> None:
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = attributes.get("Target", "")
                full = target.lstrip("/") if target[:1] == "/" else str(part.parent / target)
                kind = attributes.get("Type", "").rpartition("/")[2]
                found[attributes.get("Id", "")] = (kind, _flat(full))

        self.scan(own if name else "_rels/.rels", start)
        return found

    def scan(self, name: str, start: Start) -> None:
        """Call ``start`` with each element's plain name and attributes."""
        parser = parser_of(self, name)
        parser.StartElementHandler = lambda tag, attributes: start(plain(tag), attributes)
        parse(self, name, parser, self.read(name))


def plain(tag: str) -> str:
    """Return a tag without its prefix."""
    return tag.rpartition(":")[2]


def parser_of(package: Package, name: str) -> Any:
    """Return a parser that refuses what no spreadsheet writes: entities."""
    parser = expat.ParserCreate()
    parser.buffer_text = True

    def refuse(*_: object) -> None:
        raise package.broken(f"part {name[:80]} declares a document type")

    parser.StartDoctypeDeclHandler = refuse
    return parser


def parse(package: Package, name: str, parser: Any, data: bytes) -> None:
    """Parse a part. Raises ``FileError`` where it is no XML."""
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        raise package.broken(f"part {name[:80]} is no XML") from None


def _flat(name: str) -> str:
    """A part's name without ``..``."""
    while (shorter := re.sub(r"(^|/)[^/]+/\.\./", r"\1", name)) != name:
        name = shorter
    return name.removeprefix("./")
