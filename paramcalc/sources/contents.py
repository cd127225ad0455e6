"""Contents: the tensors that files hold, by their headers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from paramcalc.errors import FileError


class FileTensor(NamedTuple):
    """A tensor as a header states it: shape outermost first, and its bytes in the file.

    ``values`` are those of a small tensor that states the shape of a packed one.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    n_bytes: int
    values: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        """Stored elements (for packed weights, of the packed words)."""
        return prod(self.shape)


class Contents(NamedTuple):
    """What one or several files hold together. ``metadata`` is a GGUF file's."""

    files: tuple[str, ...]
    tensors: tuple[FileTensor, ...]
    metadata: Mapping[str, Any] = {}
    ggml: bool = False

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors, headers left out."""
        return sum(t.n_bytes for t in self.tensors)


def read_file(path: Path) -> Contents:
    """Return what a ``.safetensors`` file, its index or folder, or a ``.gguf`` file holds.

    Raises ``FileError`` with one line.
    """
    name = path.name.lower()
    if path.is_dir():
        return read_all(_of_folder(path))
    if name.endswith(".index.json"):
        from paramcalc.sources.safetensors_file import read_index

        return read_index(path)
    if name.endswith(".gguf"):
        from paramcalc.sources.gguf_file import read

        return read(path)
    if name.endswith(".safetensors"):
        from paramcalc.sources.safetensors_file import read as read_one

        return read_one(path)
    raise FileError(f"{path}: is no file of tensors; name a .safetensors, its index or a .gguf")


def read_all(paths: Iterable[Path]) -> Contents:
    """Return what several files hold together. Raises ``FileError``."""
    every = [read_file(path) for path in paths]
    tensors = tuple(t for one in every for t in one.tensors)
    twice = [name for name, n in Counter(t.name for t in tensors).items() if n > 1]
    if twice:
        raise FileError(f"{twice[0]}: stands in two of the files; name each once")
    files = tuple(name for one in every for name in one.files)
    kinds = {one.ggml for one in every}
    if len(kinds) > 1:
        raise FileError("GGUF and safetensors files together; audit one kind at a time")
    return Contents(files, tensors, every[0].metadata if every else {}, kinds == {True})


def in_folder(path: Path) -> list[Path]:
    """Return a folder's files of tensors: its index, else all .safetensors, else all .gguf."""
    index = path / "model.safetensors.index.json"
    if index.is_file():
        return [index]
    return sorted(path.glob("*.safetensors")) or sorted(path.glob("*.gguf"))


def _of_folder(path: Path) -> list[Path]:
    found = in_folder(path)
    if not found:
        raise FileError(f"{path}: is a directory without .safetensors or .gguf; name a file")
    return found
