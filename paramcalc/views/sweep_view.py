"""A sweep on the screen and into files."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from paramcalc.errors import InputError
from paramcalc.sweep import search, select, sinks
from paramcalc.sweep.columns import known
from paramcalc.sweep.request import Plan
from paramcalc.sweep.select import Block
from paramcalc.views import output
from paramcalc.views.tables import Section

ASK_BYTES = 2_000_000_000
"""A file expected to be larger than this needs a yes."""
ASK_ROWS = 500_000_000


class Wish(NamedTuple):
    """What is wanted of a sweep: only a count, so many rows on the screen, or a file."""

    only_count: bool
    rows: int
    out: str | None
    force: bool
    yes: bool


def columns(way: str) -> None:
    """Print every column's name and unit."""
    found = [{"column": name, "unit": unit} for name, unit in known([]).items()]
    if way == "json":
        output.write_json(found)
    elif way == "csv":
        output.write_csv(found)
    else:
        table = Section("columns", [("", "left"), ("unit", "left")])
        for row in found:
            table.add(row["column"], row["unit"])
        table.notes.append("and every axis: a field, batch, dtype, kv_dtype")
        output.show([table], markdown_way=way == "markdown")


def answer(plan: Plan, way: str, wish: Wish) -> None:
    """Answer a sweep: a count, a file, or rows on the screen."""
    if not plan.rows:
        reasons = "; ".join(f"{why}: {n:,}" for why, n in plan.dropped().items())
        raise InputError(
            f"sweep: no possible shape ({reasons or 'an axis is empty'}); change an axis"
        )
    if wish.only_count:
        _print_count(plan, way)
    elif wish.out is not None:
        _write(plan, wish)
    else:
        _show(plan, way, wish)


def _print_count(plan: Plan, way: str) -> None:
    number = search.count(plan)
    if way == "json":
        output.write_json({"count": number, "rows": plan.rows, "left_out": plan.dropped()})
    elif way == "csv":
        output.write_csv([{"count": number, "rows": plan.rows}])
    else:
        sys.stdout.write(f"{number if way == 'markdown' else format(number, ',')}\n")


def _selected(plan: Plan) -> Iterator[Block]:
    if plan.request.by is not None:
        yield from found_rows(plan, search.best(plan))
    elif plan.request.pareto:
        yield from select.pareto(plan)
    else:
        yield from select.kept(plan)


def found_rows(plan: Plan, rows: list[search.Row]) -> Iterator[Block]:
    """Yield the rows a search found, in its order, each as a block."""
    for row in rows:
        own = np.array([row.own])
        names = [c.name for c in row.table.numeric]
        columns_ = dict(zip(names, row.table.at(own), strict=True))
        yield Block(row.table, np.array([row.number]), columns_)


def _first(plan: Plan, limit: int) -> tuple[list[Block], int, bool]:
    """The first rows of the answer, how many rows it has, and whether that was counted whole."""
    found: list[Block] = []
    size = total = 0
    plain = not (plan.where or plan.request.by or plan.request.pareto)
    for block in _selected(plan):
        if size < limit:
            found.append(block.take(np.arange(min(len(block.rows), limit - size))))
            size += len(found[-1].rows)
        total += len(block.rows)
        if plain and size >= limit:
            return found, plan.rows, True
    return found, total, True


def _show(plan: Plan, way: str, wish: Wish) -> None:
    limit = plan.rows if way in ("json", "csv") and wish.rows == 20 else wish.rows
    found, total, _ = _first(plan, limit)
    rows = [row for block in found for row in sinks.records(plan, block)]
    if way == "json":
        output.write_json([dict(zip(plan.shown, row, strict=True)) for row in rows])
        return
    if way == "csv":
        output.write_csv([dict(zip(plan.shown, row, strict=True)) for row in rows])
        return
    texts = {c.name for table in plan.tables for c in table.columns if c.formula is None}
    heads = [(name, "left" if name in texts else "right") for name in plan.shown]
    table = Section(_title(plan, total), heads)
    for row in rows:
        table.add(*row)
    if total > len(rows):
        table.notes.append(f"and {total - len(rows):,} more; --rows N or --out FILE for them")
    for reason, number in plan.dropped().items():
        table.notes.append(f"left out: {number:,}, {reason}")
    output.show([table], markdown_way=way == "markdown")


def _title(plan: Plan, total: int) -> str:
    text = f"{total:,} {'row' if total == 1 else 'rows'}"
    if plan.where or plan.request.by or plan.request.pareto:
        text += f" of {plan.rows:,}"
    base = ", ".join(m.name for m in plan.models)
    return f"{text}, the rest as in {base}" if len(plan.models) == 1 else text


def _write(plan: Plan, wish: Wish) -> None:
    path = Path(wish.out or "")
    suffix = sinks.suffix_of(path)
    if path.exists() and not wish.force:
        raise InputError(f"out = {path}: exists; name another or give --force")
    if not path.parent.is_dir():
        raise InputError(f"out = {path}: {path.parent} is no directory; make it first")
    plain = not (plan.where or plan.request.by or plan.request.pareto)
    rows = plan.rows if plain else search.count(plan)
    if suffix == ".xlsx" and rows >= sinks.SHEET_ROWS:
        raise InputError(
            f"out = {path}: {rows:,} rows, and a sheet holds {sinks.SHEET_ROWS - 1:,};"
            " write .csv or .parquet"
        )
    size = rows * len(plan.shown) * (14 if suffix == ".csv" else 40 if suffix != ".parquet" else 4)
    note = f"{rows:,} rows, {len(plan.shown)} columns, about {size / 1e6:,.0f} MB"
    sys.stderr.write(f"paramcalc: {note}\n")
    if (size > ASK_BYTES or rows > ASK_ROWS) and not wish.yes:
        raise InputError(f"out = {path}: {note}; give --yes to write it")
    started, done = time.monotonic(), 0
    with sinks.opened(path, plan) as sink:
        for block in _selected(plan):
            sink.write(block)
            done += len(block.rows)
    seconds = max(time.monotonic() - started, 1e-9)
    sys.stderr.write(
        f"paramcalc: wrote {done:,} rows to {path} in {seconds:,.1f} s,"
        f" {done / seconds:,.0f} rows/s\n"
    )
