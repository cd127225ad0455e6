"""Columns as a data frame: pandas, polars or Arrow, whichever is there, with equal integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from paramcalc.errors import InputError

Columns = Mapping[str, Sequence[Any]]
INT64 = 2**63
INT128 = 2**127


def pandas(columns: Columns) -> Any:
    """Return a pandas frame: int64, Int64 where a cell is empty, objects beyond int64.

    Raises ``InputError`` where pandas is not installed.
    """
    library = _library("pandas")
    found = {}
    for name, values in columns.items():
        bits = _bits(values)
        empty = bits and any(value is None for value in values)
        dtype = None if bits is None else object if bits > 64 else "Int64" if empty else "int64"
        found[name] = library.Series(_plain(values), dtype=dtype or _words(values))
    return library.DataFrame(found)


def polars(columns: Columns) -> Any:
    """Return a polars frame: Int64, Int128 beyond it, objects beyond that.

    Raises ``InputError`` where polars is not installed.
    """
    library = _library("polars")
    kinds = {
        64: library.Int64,
        128: getattr(library, "Int128", library.Object),
        256: library.Object,
    }
    found = []
    for name, values in columns.items():
        bits = _bits(values)
        kind = None if bits is None else kinds[bits]
        if bits is None and _words(values) is object and not _is_text(values):
            kind = library.Object
        found.append(library.Series(name, _plain(values), dtype=kind))
    return library.DataFrame(found)


def arrow(columns: Columns) -> Any:
    """Return an Arrow table: int64, decimals beyond it, as a sweep's Parquet files have them.

    Raises ``InputError`` where pyarrow is not installed.
    """
    library = _library("pyarrow")
    kinds = {64: library.int64(), 128: library.decimal128(38, 0), 256: library.decimal256(76, 0)}
    arrays = {}
    for name, values in columns.items():
        bits = _bits(values)
        if bits == 128 and any(abs(value) >= 10**38 for value in values if value is not None):
            bits = 256
        plain = _plain(values)
        if bits is None and _words(values) is object and not _is_text(values):
            plain = [None if value is None else str(value) for value in values]
        arrays[name] = library.array(plain, kinds[bits] if bits else None)
    return library.table(arrays)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(f"a frame of {name} needs {name}; pip install {name}") from None


def _bits(values: Sequence[Any]) -> int | None:
    """64, 128 or 256 for a column of ints by its largest, empty cells allowed; None for others."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return 64
    ints = [value for value in values if value is not None]
    if not ints or any(type(value) is not int for value in ints):
        return None
    most = max(max(ints), -min(ints) - 1)
    return 64 if most < INT64 else 128 if most < INT128 else 256


def _words(values: Sequence[Any]) -> Any:
    """The kind of a column that does not hold ints: truths, or objects as they are."""
    return "bool" if values and all(type(value) is bool for value in values) else object


def _is_text(values: Sequence[Any]) -> bool:
    return all(value is None or isinstance(value, str) for value in values)


def _plain(values: Sequence[Any]) -> Any:
    return values if isinstance(values, np.ndarray) and values.dtype != object else list(values)
