"""The header of a GGUF file: its tensors, and what its metadata says of the model.

The ``gguf`` package reads it; before it may, ``_bounded`` walks the header once and holds every
length in it against the bytes that are there, since the package trusts them.
"""

from __future__ import annotations

import mmap
import struct
from math import prod
from pathlib import Path
from typing import Any

from paramcalc.errors import FileError
from paramcalc.sources.contents import Contents, FileTensor

_WIDTHS = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
_STRING, _ARRAY = 8, 9
MOST_ENTRIES = 100_000
MOST_ITEMS = 600_000
"""Of an array: the largest vocabularies have half of it."""
MOST_DIMS = 8


def read(path: Path) -> Contents:
    """Return what a GGUF file holds. Raises ``FileError`` for a broken one or without the extra."""
    try:
        from gguf import GGUFReader, GGUFValueType
    except ImportError:
        raise FileError(f"{path}: to read it: pip install 'paramcalc[gguf]'") from None
    _bounded(path)
    try:
        reader = GGUFReader(str(path))
        metadata: dict[str, Any] = {}
        for key, field in reader.fields.items():
            if field.types and field.types[0] == GGUFValueType.ARRAY and len(field.data) > 4096:
                metadata[key] = len(field.data)  # a vocabulary: its length is all that counts
            else:
                metadata[key] = field.contents()
        tensors = tuple(
            FileTensor(
                str(t.name),
                tuple(int(size) for size in reversed(t.shape.tolist())),
                t.tensor_type.name,
                int(t.n_bytes),
            )
            for t in reader.tensors
        )
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, MemoryError) as error:
        raise FileError(f"{path}: broken GGUF file: {str(error)[:120]}") from None
    except OSError as error:
        raise FileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    return Contents((str(path),), tensors, metadata, ggml=True)


class _Walk:
    """A place in the header; every step stays inside the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at, self.order = data, 0, "<"

    def number(self, code: str) -> int:
        size = struct.calcsize(code)
        if self.at + size > len(self.data):
            raise ValueError("it ends inside its header")
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.at += size
        return int(value)

    def skip(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise ValueError(
                f"it states {size:,} bytes where {len(self.data) - self.at:,} are left"
            )
        self.at += size

    def count(self, most: int, what: str) -> int:
        value = self.number("Q")
        if value > most:
            raise ValueError(f"it states {value:,} {what}; at most {most:,} are read")
        return value

    def value(self, kind: int, depth: int = 0) -> None:
        if kind == _STRING:
            self.skip(self.number("Q"))
        elif kind == _ARRAY:
            if depth > 2:
                raise ValueError("its arrays nest too deeply")
            inner, items = self.number("I"), self.count(MOST_ITEMS, "items in an array")
            if inner in _WIDTHS:
                self.skip(items * _WIDTHS[inner])
            else:
                for _ in range(items):
                    self.value(inner, depth + 1)
        elif kind in _WIDTHS:
            self.skip(_WIDTHS[kind])
        else:
            raise ValueError(f"it has a value of the unknown kind {kind}")


def _bounded(path: Path) -> None:
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _walk(data)
    except OSError as error:
        raise FileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except ValueError as error:
        raise FileError(f"{path}: broken GGUF file: {error}") from None


def _walk(data: mmap.mmap) -> None:
    if data[:4] != b"GGUF":
        raise ValueError("it does not start with GGUF")
    walk = _Walk(data)
    walk.skip(4)
    version = walk.number("I")
    if version & 65535 == 0:
        walk.order = ">"
    tensors, entries = walk.count(MOST_ENTRIES, "tensors"), walk.count(MOST_ENTRIES, "entries")
    for _ in range(entries):
        walk.skip(walk.number("Q"))
        walk.value(walk.number("I"))
    for _ in range(tensors):
        walk.skip(walk.number("Q"))
        dims = walk.number("I")
        if dims > MOST_DIMS:
            raise ValueError(f"it has a tensor of {dims:,} dimensions")
        sizes = [walk.number("Q") for _ in range(dims)]
        if prod(sizes) > 2**50:
            raise ValueError("it has a tensor of more than 2^50 elements")
        walk.skip(4)
        if walk.number("Q") > len(data):
            raise ValueError("it has a tensor that starts after its end")
