"""llama.cpp's file types: what each tensor of a GGUF file is stored as, and the bytes of all.

A file type such as ``Q4_K_M`` is a rule from a tensor to a type (``llama_mix``); the tensors are
those that conversion makes (``gguf_layout``); a type has bytes for each block of a row
(``ggml_types``). The bits per weight that llama.cpp publishes for Llama 3.1 8B
(``tools/quantize/README.md``) follow to the last digit.

Bytes are those of the tensors. A file adds its metadata: some MB, nearly all of it vocabulary, and
up to 31 bytes after each tensor.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import prod
from typing import NamedTuple

from paramcalc.errors import InputError, did_you_mean
from paramcalc.formats.ggml_types import TYPES
from paramcalc.formats.gguf_layout import LLAMA, Layout, block_count, tensors
from paramcalc.formats.llama_mix import Mix, Traits
from paramcalc.ledger import Ledger, Tensor


class FileType(NamedTuple):
    """A file type: its name, the type most tensors get, and whether ``llama-quantize`` refuses to
    make it without an importance matrix."""

    name: str
    base: str
    needs_imatrix: bool = False


_PLAIN = "F32 F16 BF16 Q1_0 Q2_0 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q6_K IQ3_S IQ4_NL IQ4_XS TQ1_0 TQ2_0"
_NEEDY = "IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ3_XXS"
_MIXED = {
    "Q3_K_S": "Q3_K",
    "Q3_K_M": "Q3_K",
    "Q3_K_L": "Q3_K",
    "Q4_K_S": "Q4_K",
    "Q4_K_M": "Q4_K",
    "Q5_K_S": "Q5_K",
    "Q5_K_M": "Q5_K",
    "IQ3_M": "IQ3_S",
    "MXFP4_MOE": "MXFP4",
}
_MIXED_NEEDY = {"Q2_K_S": "Q2_K", "IQ2_S": "IQ2_XS", "IQ2_M": "IQ2_S", "IQ3_XS": "IQ3_S"}
FILE_TYPES = {
    f.name: f
    for f in (
        *(FileType(name, name) for name in _PLAIN.split()),
        *(FileType(name, name, True) for name in _NEEDY.split()),
        *(FileType(name, base) for name, base in _MIXED.items()),
        *(FileType(name, base, True) for name, base in _MIXED_NEEDY.items()),
    )
}
_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}
NAMES = frozenset({*FILE_TYPES, *_ALIASES})
"""Every spelling that ``find`` takes, in upper case."""


class Stored(NamedTuple):
    """Tensors of a file that are alike: name (``*`` for the layer), the ledger's rows in one, its
    shape, in how many ``layers`` (1 outside them), type, and bytes of all."""

    name: str
    rows: tuple[str, ...]
    shape: tuple[int, ...]
    layers: int
    type: str
    n_bytes: int


def file_types() -> list[str]:
    """Return the names of all file types that ``llama-quantize`` makes."""
    return list(FILE_TYPES)


def find(name: str) -> FileType:
    """Return the file type of that name, in any case; ``q4_k`` is ``Q4_K_M``, as in llama.cpp.

    Raises ``InputError`` for an unknown one.
    """
    plain = str(name).upper()
    key = _ALIASES.get(plain, plain)
    if key not in FILE_TYPES:
        near = did_you_mean(key, FILE_TYPES)
        known = ", ".join(FILE_TYPES)
        raise InputError(f"dtype = {name}: no file type of llama.cpp{near}; take one of {known}")
    return FILE_TYPES[key]


MOST_LAYERS = 512
"""``LLAMA_MAX_LAYERS`` of llama.cpp (src/llama-hparams.h)."""


def tensor_types(
    ledger: Ledger, file_type: str, layout: Layout = LLAMA, *, imatrix: bool = False
) -> list[Stored]:
    """Return what a file of that type holds, tensors alike together, in the file's order.

    ``layout`` comes from ``gguf_layout.layout_of``. ``imatrix`` says that an importance matrix is
    given, which changes a few tensors of IQ4_XS, IQ4_NL, Q4_0 and Q5_0; where a type needs one it
    is taken to be there. Raises ``InputError`` for an unknown type, or one that no row of some
    tensor fits.
    """
    file = find(file_type)
    layers = sum(kind.n_layers for kind in ledger.layers)
    if layers > MOST_LAYERS:
        raise InputError(
            f"dtype = {file_type}: llama.cpp reads at most {MOST_LAYERS} layers, and there are"
            f" {layers:,}; take another format"
        )
    held = tensors(ledger, layout)
    has_head = any(t.name == "output.weight" for t in held)
    mix = Mix(
        file.name, file.base, imatrix or file.needs_imatrix, _traits(ledger, layout, has_head)
    )
    found: dict[tuple[str, tuple[int, ...], str], Stored] = {}
    for tensor in held:
        kind = TYPES[mix.type_of(tensor)]
        name = re.sub(r"blk\.\d+\.", "blk.*.", tensor.name)
        columns = tensor.shape[-1]
        n_bytes = tensor.elements // columns * kind.row_bytes(columns)
        key = name, tensor.shape, kind.name
        old = found.get(key) or Stored(name, tensor.rows, tensor.shape, 0, kind.name, 0)
        found[key] = old._replace(layers=old.layers + 1, n_bytes=old.n_bytes + n_bytes)
    return list(found.values())


def weight_bytes(
    ledger: Ledger, file_type: str, layout: Layout = LLAMA, *, imatrix: bool = False
) -> int:
    """Return the bytes of all tensors of a file of that type. Raises ``InputError``."""
    held = tensor_types(ledger, file_type, layout, imatrix=imatrix)
    return sum(tensor.n_bytes for tensor in held)


def bits_per_weight(
    ledger: Ledger, file_type: str, layout: Layout = LLAMA, *, imatrix: bool = False
) -> Fraction:
    """Return bits over weights of all tensors of the file, as llama.cpp reports it.

    Raises ``InputError``.
    """
    held = tensor_types(ledger, file_type, layout, imatrix=imatrix)
    weights = sum(tensor.layers * prod(tensor.shape) for tensor in held)
    return Fraction(8 * sum(tensor.n_bytes for tensor in held), weights)


def _traits(ledger: Ledger, layout: Layout, has_head: bool) -> Traits:
    """What the rules ask, read off the rows; the first layer with values tells the sharing."""
    experts, group = 0, 0
    for kind in ledger.layers:
        rows = {row.name: row for row in kind.rows if isinstance(row, Tensor)}
        found = [row.copies for name, row in rows.items() if name.startswith("ffn.experts.")]
        experts = max(experts, *found, 0)
        value, out = rows.get("attention.v", rows.get("attention.k")), rows.get("attention.o")
        if value and out and not group and not kind.stack:
            group = out.shape[1] // value.shape[0]
    return Traits(layout.arch, block_count(ledger), experts, group, has_head)
