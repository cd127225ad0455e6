"""llama.cpp's file types beside the other formats: a type for each tensor, as bytes of its rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import NamedTuple

from paramcalc.ledger import Ledger, Tensor
from paramcalc.numbers import Num, ceil_div

_PREFIX = re.compile(r"^(?:[a-z_]+\.)?layers\.(?:[^.*]+\.)?\*\.")


class Mixed(NamedTuple):
    """A file type laid out for one model.

    ``rows`` gives the bytes and elements of all tensors of a ledger row's name, layers together;
    ``n_bytes`` and ``elements`` are those of the whole file, ``bits`` the mean, rounded up.
    """

    name: str
    bits: int
    rows: Mapping[str, tuple[int, int]]
    n_bytes: int
    elements: int
    compute: tuple[str, ...] = ("bf16", "fp16")
    note: str = "llama.cpp's type for each tensor; metadata left out"
    mark: str = ""

    def of(self, tensor: Tensor) -> Num:
        """Bytes of all stored copies: the share of the row's bytes that its elements are."""
        n_bytes, elements = self.rows.get(_plain(tensor.name), (self.n_bytes, self.elements))
        return ceil_div(tensor.stored * n_bytes, elements)


def _plain(name: str) -> str:
    """A row's name without the layers it stands in."""
    return _PREFIX.sub("", name)


def mixed(
    name: str, ledger: Ledger, model_type: str | None = None, preset: str | None = None
) -> Mixed:
    """Return a file type for a model. Raises ``InputError`` for an unknown type."""
    from paramcalc.formats import gguf_layout, llama_cpp  # most runs have no use for them

    layout = gguf_layout.layout_of(model_type, preset)
    held = llama_cpp.tensor_types(ledger, name, layout)
    own = {_plain(t.name): t.elements for t in ledger.tensors}
    rows: dict[str, tuple[int, int]] = {}
    total = elements = 0
    for stored in held:
        count = stored.layers * prod(stored.shape)
        parts = {row: own.get(_plain(row), 1) for row in stored.rows}
        whole = sum(parts.values())
        for row, size in parts.items():
            n_bytes, n = rows.get(_plain(row), (0, 0))
            rows[_plain(row)] = n_bytes + stored.n_bytes * size // whole, n + count * size // whole
        total, elements = total + stored.n_bytes, elements + count
    bits = ceil_div(8 * total, elements)
    return Mixed(llama_cpp.find(name).name, bits, rows, total, elements)


def is_file_type(name: str) -> bool:
    """Whether a name is one of llama.cpp's file types, such as ``Q4_K_M``."""
    from paramcalc.formats import llama_cpp

    plain = name.upper()
    return plain not in ("F32", "F16", "BF16") and plain in llama_cpp.NAMES
