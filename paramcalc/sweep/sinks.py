"""Where the rows go: CSV, JSON lines, Parquet, a workbook. Each file is written beside its name and
renamed when it is whole."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from paramcalc.errors import InputError
from paramcalc.sweep.request import Plan
from paramcalc.sweep.select import Block
from paramcalc.writing import beside

SHEET_ROWS = 1_048_576
"""Rows of a worksheet, the heading included."""
SAFE = 2**53
"""Integers up to here survive a spreadsheet's doubles."""


class Sink(Protocol):
    """Something that takes blocks of rows."""

    def write(self, block: Block) -> None:
        """Take a block's rows."""

    def close(self) -> None:
        """Finish the file."""


def cells(plan: Plan, block: Block) -> list[Any]:
    """Return the shown columns of a block: arrays, or a text that repeats."""
    texts = {c.name: c.text for c in block.table.columns if c.formula is None}
    return [block.columns[n] if n in block.columns else texts[n] for n in plan.shown]


def records(plan: Plan, block: Block) -> Iterator[tuple[Any, ...]]:
    """Yield a block's rows as tuples of Python ints and texts."""
    size = len(block.rows)
    columns = [c.tolist() if isinstance(c, np.ndarray) else [c] * size for c in cells(plan, block)]
    return zip(*columns, strict=True)


class CsvSink:
    """Comma-separated, one heading."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.plan = plan
        self.file = path.open("w", encoding="utf-8", newline="")
        self.writer = csv.writer(self.file, lineterminator="\n")
        self.writer.writerow(plan.shown)

    def write(self, block: Block) -> None:
        """Write a block's rows."""
        self.writer.writerows(records(self.plan, block))

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


class JsonSink:
    """One JSON object a line."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.plan = plan
        self.file = path.open("w", encoding="utf-8")

    def write(self, block: Block) -> None:
        """Write a block's rows."""
        for row in records(self.plan, block):
            self.file.write(json.dumps(dict(zip(self.plan.shown, row, strict=True))) + "\n")

    def close(self) -> None:
        """Finish the file."""
        self.file.close()


class ParquetSink:
    """Parquet: zstd, no dictionary, byte-stream split; integers beyond int64 as decimal128."""

    def __init__(self, path: Path, plan: Plan, stamp: dict[str, str] | None = None) -> None:
        pa, pq = _arrow()
        self.plan, self.pa = plan, pa
        exact = {
            c.name
            for table in plan.tables
            for c, dtype in zip(table.numeric, table.dtypes, strict=True)
            if dtype is object
        }
        texts = {c.name for table in plan.tables for c in table.columns if c.formula is None}
        types = [
            pa.string() if n in texts else pa.decimal128(38, 0) if n in exact else pa.int64()
            for n in plan.shown
        ]
        self.schema = pa.schema(list(zip(plan.shown, types, strict=True)), metadata=stamp)
        split = [n for n, kind in zip(plan.shown, types, strict=True) if kind == pa.int64()]
        self.writer = pq.ParquetWriter(
            path,
            self.schema,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
        )

    def write(self, block: Block) -> None:
        """Write a block's rows as a row group."""
        size = len(block.rows)
        arrays = [
            self.pa.array(c if isinstance(c, np.ndarray) else [c] * size, field.type)
            for c, field in zip(cells(self.plan, block), self.schema, strict=True)
        ]
        self.writer.write_table(self.pa.Table.from_arrays(arrays, schema=self.schema))

    def close(self) -> None:
        """Write the footer."""
        self.writer.close()


class WorkbookSink:
    """A workbook of one sheet; integers beyond 2^53 are written as text, so no digit is lost."""

    def __init__(self, path: Path, plan: Plan) -> None:
        xlsxwriter = _workbook()
        self.plan = plan
        self.spool = TemporaryDirectory()
        """For rows until the file is made; the library leaves them where that fails."""
        options = {"constant_memory": True, "in_memory": False, "tmpdir": self.spool.name}
        self.book = xlsxwriter.Workbook(str(path), options)
        self.sheet = self.book.add_worksheet("sweep")
        self.whole = self.book.add_format({"num_format": "#,##0"})
        self.sheet.freeze_panes(1, 0)
        self.sheet.set_column(0, len(plan.shown), 20)
        self.sheet.write_row(0, 0, plan.shown, self.book.add_format({"bold": True}))
        self.row = 1

    def write(self, block: Block) -> None:
        """Write a block's rows."""
        for row in records(self.plan, block):
            for column, value in enumerate(row):
                if isinstance(value, int) and abs(value) <= SAFE:
                    self.sheet.write_number(self.row, column, value, self.whole)
                else:
                    self.sheet.write_string(self.row, column, str(value))
            self.row += 1

    def close(self) -> None:
        """Write the file. Raises ``OSError``."""
        from xlsxwriter.exceptions import FileCreateError

        try:
            self.book.close()
        except FileCreateError as error:
            raise OSError(str(error)) from None
        finally:
            self.spool.cleanup()


_SINKS: dict[str, Callable[[Path, Plan], Sink]] = {
    ".csv": CsvSink,
    ".jsonl": JsonSink,
    ".ndjson": JsonSink,
    ".parquet": ParquetSink,
    ".xlsx": WorkbookSink,
}


def suffix_of(path: Path) -> str:
    """Return the kind of file a name asks for. Raises ``InputError``."""
    suffix = path.suffix.lower()
    if suffix not in _SINKS:
        kinds = ", ".join(_SINKS)
        raise InputError(
            f"out = {path}: unknown kind of file; end it in {kinds}, or in / for parts"
        )
    if suffix == ".parquet":
        _arrow()
    if suffix == ".xlsx":
        _workbook()
    return suffix


@contextmanager
def opened(path: Path, plan: Plan, stamp: dict[str, str] | None = None) -> Iterator[Sink]:
    """Open a file for rows; it takes its name when all of them are in it, and else is gone.

    ``stamp`` goes into a Parquet file's own metadata.
    """
    kind = _SINKS[suffix_of(path)]
    with beside(path) as held:
        sink = ParquetSink(held, plan, stamp) if stamp else kind(held, plan)
        try:
            yield sink
        finally:
            sink.close()


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow; pip install 'paramcalc[parquet]'") from None
    return pyarrow, pyarrow.parquet


def _workbook() -> Any:
    try:
        import xlsxwriter
    except ImportError:
        raise InputError("a workbook needs XlsxWriter; pip install 'paramcalc[xlsx]'") from None
    return xlsxwriter
