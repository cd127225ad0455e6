"""A model's weights in every format, and one format tensor by tensor."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from paramcalc import formats
from paramcalc.errors import InputError
from paramcalc.formats import gguf_layout, llama_cpp
from paramcalc.formats.mixed import Mixed, mixed
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.quantities import params
from paramcalc.views.tables import Section, Size


def rows(model: Model) -> list[dict[str, Any]]:
    """Return a row a format: name, bytes, bits a weight in ten-thousandths, what it is.

    A file type that no row of some tensor fits is left out, as ``llama-quantize`` refuses it.
    """
    elements = params.stored(model.ledger)
    found = []
    for name in SCHEMES:
        fmt = model.format(name)
        found.append(_format(name, formats.weight_bytes(model.ledger, fmt), elements, fmt.note))
    kind = model.reading.model_type if model.reading else None
    files = []
    for name in llama_cpp.file_types():
        try:
            own = mixed(name, model.ledger, kind, model.name)
        except InputError:
            continue
        files.append(_format(name, own.n_bytes, own.elements, own.note))
    return found + sorted(files, key=lambda row: -row["bytes"])


def _format(name: str, size: int, weights: int, what: str) -> dict[str, Any]:
    bits = round(Fraction(80_000 * size, weights))
    return {"format": name, "bytes": size, "bits_per_weight_e4": bits, "what": what}


def section(found: list[dict[str, Any]]) -> Section:
    """Return the formats as a table."""
    columns = [("", "left"), ("bits a weight", "right"), ("GB and GiB", "right")]
    table = Section("Weights in each format", columns)
    for row in found:
        bits = row["bits_per_weight_e4"]
        table.add(row["format"], f"{bits // 10_000}.{bits % 10_000:04}", Size(row["bytes"]))
    table.notes.append("fp8 to nvfp4: matrices of layers, scales included; the rest stays bf16")
    table.notes.append("capitals: llama.cpp's file types, without a file's metadata")
    return table


def tensors(model: Model, dtype: str) -> list[dict[str, Any]]:
    """Return the tensors of one format: name, type, shape, copies, bytes. Raises ``InputError``."""
    fmt = model.format(dtype)
    if isinstance(fmt, Mixed):
        kind = model.reading.model_type if model.reading else None
        layout = gguf_layout.layout_of(kind, model.name)
        return [
            _row(t.name, t.type, t.shape, t.layers, t.n_bytes)
            for t in llama_cpp.tensor_types(model.ledger, fmt.name, layout)
        ]
    found = []
    for t in model.ledger.tensors:
        if type(t.copies) is int and t.copies == 0:
            continue
        size = formats.tensor_bytes(t, fmt)
        plain = fmt.covers != "all" and size == 2 * t.stored
        found.append(_row(t.name, "bf16" if plain else fmt.name, t.shape, t.copies, size))
    return found


def _row(name: str, kind: str, shape: tuple[int, ...], copies: int, size: int) -> dict[str, Any]:
    return {
        "tensor": name,
        "type": kind,
        "shape": " x ".join(map(str, shape)),
        "copies": copies,
        "bytes": size,
    }


def tensor_section(model: Model, dtype: str, found: list[dict[str, Any]]) -> Section:
    """Return one format's tensors as a table, with their sum."""
    columns = [
        ("", "left"),
        ("type", "left"),
        ("shape", "right"),
        ("copies", "right"),
        ("", "right"),
    ]
    table = Section(f"Tensors in {model.format(dtype).name}", columns, paths=True)
    for row in found:
        size = Size(row["bytes"], brief=True)
        table.add(row["tensor"], row["type"], row["shape"], row["copies"], size)
    total = Size(sum(row["bytes"] for row in found), brief=True)
    table.add("all", "", "", None, total, strong=True)
    return table
