"""The header of a GGUF file: its tensors, and what its metadata says of the model.

One bounded pass (docs/gguf.md of ggml has the layout): every length is held against the bytes that
are there before anything is read, and a vocabulary is stepped over, which is most of a header. The
``gguf`` package knows the types of tensors and their blocks; the tests hold the pass against its
reader, which builds an array for each token.
"""

from __future__ import annotations

import mmap
import struct
from math import prod
from pathlib import Path
from typing import Any

from paramcalc.errors import FileError
from paramcalc.sources.contents import Contents, FileTensor

_CODES = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_STRING, _ARRAY = 8, 9
_VERSIONS = (2, 3)
_ALIGNMENT = 32
MOST_ENTRIES = 100_000
MOST_ITEMS = 600_000
"""Of an array: the largest vocabularies have half of it."""
MOST_KEPT = 4096
"""Items of an array that is read; of a longer one (a vocabulary) its length is all that counts."""
MOST_TEXT = 1_048_576
"""Bytes kept of a text."""
MOST_DIMS = 8


def read(path: Path) -> Contents:
    """Return what a GGUF file holds. Raises ``FileError`` for a broken one or without the extra."""
    try:
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    except ImportError:
        raise FileError(f"{path}: to read it: pip install 'paramcalc[gguf]'") from None
    kinds = {int(k): (k.name, *GGML_QUANT_SIZES[k]) for k in GGMLQuantizationType}
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            tensors, metadata = _Header(data).read(kinds)
    except OSError as error:
        raise FileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    except ValueError as error:
        raise FileError(f"{path}: broken GGUF file: {error}") from None
    return Contents((str(path),), tuple(tensors), metadata, ggml=True)


class _Header:
    """A place in the header; every step stays inside the file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at, self.order = data, 0, "<"

    def read(
        self, kinds: dict[int, tuple[str, int, int]]
    ) -> tuple[list[FileTensor], dict[str, Any]]:
        """Return the tensors and the metadata; ``kinds`` are (name, elements, bytes) of a block.

        Raises ``ValueError``.
        """
        if self.data[:4] != b"GGUF":
            raise ValueError("it does not start with GGUF")
        self.skip(4)
        if self.data[4:6] == b"\0\0":  # a version below 65,536, its low bytes last
            self.order = ">"
        version = self.number("I")
        if version not in _VERSIONS:
            raise ValueError(f"it is of version {version:,}; 2 and 3 are read")
        count, entries = (self.count(MOST_ENTRIES, what) for what in ("tensors", "entries"))
        metadata: dict[str, Any] = {}
        for _ in range(entries):
            key = self.text()
            metadata[key] = self.value(self.number("I"))
        rows = [self.tensor(kinds) for _ in range(count)]
        self.placed(rows, metadata.get("general.alignment", _ALIGNMENT))
        return [tensor for tensor, _ in rows], metadata

    def number(self, code: str) -> Any:
        size = struct.calcsize(self.order + code)
        if self.at + size > len(self.data):
            raise ValueError("it ends inside its header")
        (value,) = struct.unpack_from(self.order + code, self.data, self.at)
        self.at += size
        return value

    def skip(self, size: int) -> None:
        if size > len(self.data) - self.at:
            raise ValueError(
                f"it states {size:,} bytes where {len(self.data) - self.at:,} are left"
            )
        self.at += size

    def text(self) -> str:
        size = self.number("Q")
        start = self.at
        self.skip(size)
        return self.data[start : start + min(size, MOST_TEXT)].decode(errors="replace")

    def count(self, most: int, what: str) -> int:
        value: int = self.number("Q")
        if value > most:
            raise ValueError(f"it states {value:,} {what}; at most {most:,} are read")
        return value

    def value(self, kind: int, depth: int = 0) -> Any:
        """A value of the metadata; of a long array, how many items it has."""
        if kind in _CODES:
            return self.number(_CODES[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise ValueError(f"it has a value of the unknown kind {kind}")
        if depth > 2:
            raise ValueError("its arrays nest too deeply")
        inner, items = self.number("I"), self.count(MOST_ITEMS, "items in an array")
        if items <= MOST_KEPT or inner == _ARRAY:
            return [self.value(inner, depth + 1) for _ in range(items)]
        if inner in _CODES:
            self.skip(items * struct.calcsize(self.order + _CODES[inner]))
        elif inner == _STRING:
            self.skip_texts(items)
        else:
            raise ValueError(f"it has values of the unknown kind {inner}")
        return items

    def skip_texts(self, items: int) -> None:
        size_at = struct.Struct(self.order + "Q").unpack_from
        data, at, last = self.data, self.at, len(self.data) - 8
        for _ in range(items):
            if at > last:
                raise ValueError("it ends inside its header")
            at += 8 + size_at(data, at)[0]
        self.at = 0
        self.skip(at)

    def tensor(self, kinds: dict[int, tuple[str, int, int]]) -> tuple[FileTensor, int]:
        """A tensor, and where its data starts."""
        name, dims = self.text(), self.number("I")
        if dims > MOST_DIMS:
            raise ValueError(f"it has a tensor of {dims:,} dimensions")
        shape = tuple(self.number("Q") for _ in range(dims))
        elements = prod(shape)
        if elements > 2**50:
            raise ValueError("it has a tensor of more than 2^50 elements")
        kind, offset = self.number("I"), self.number("Q")
        if kind not in kinds:
            raise ValueError(f"it has a tensor of the unknown type {kind}")
        word, block, n_bytes = kinds[kind]
        if elements % block:
            raise ValueError(f"it has a tensor of {elements:,} elements in blocks of {block}")
        return FileTensor(name, shape[::-1], word, elements // block * n_bytes), offset

    def placed(self, rows: list[tuple[FileTensor, int]], alignment: Any) -> None:
        """Hold the tensors' places against the end of the file."""
        if type(alignment) is not int or alignment < 1:
            raise ValueError("its general.alignment is no whole number above 0")
        start = -(-self.at // alignment) * alignment
        seen: set[str] = set()
        for tensor, offset in rows:
            if start + offset + tensor.n_bytes > len(self.data):
                raise ValueError("it has a tensor that ends after the file")
            if tensor.name in seen:
                raise ValueError("it has two tensors of one name")
            seen.add(tensor.name)
