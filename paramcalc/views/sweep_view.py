"""A sweep on the screen and into files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paramcalc.deploy.hardware import Accelerator
from paramcalc.errors import InputError
from paramcalc.sweep import search, select, sinks
from paramcalc.sweep.columns import how_known, known
from paramcalc.sweep.request import Plan
from paramcalc.sweep.select import Block
from paramcalc.views import output
from paramcalc.views.sweep_notes import remarks
from paramcalc.views.tables import Measure, Section, Size
from paramcalc.writing import free

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
    workers: int | None = None
    dask: str | None = None
    plot: str | None = None


def columns(way: str, kinds: Collection[Accelerator] = ()) -> None:
    """Print every column's name and unit, and how it is known (of some kinds of GPU)."""
    found = [
        {"column": name, "unit": unit, "known": how_known(name, kinds)}
        for name, unit in known([]).items()
    ]
    if way == "json":
        output.write_json(found)
    elif way == "csv":
        output.write_csv(found)
    else:
        table = Section("columns", [("", "left"), ("unit", "left"), ("known", "left")])
        for row in found:
            table.add(row["column"], row["unit"], row["known"])
        table.notes.append("and every axis: a field, gpu; batch, gpus and tp are 1 without one")
        output.show([table], markdown_way=way == "markdown")


def answer(plan: Plan, way: str, wish: Wish) -> None:
    """Answer a sweep: a count, a file, or rows on the screen."""
    if not plan.rows:
        reasons = "; ".join(f"{why}: {n:,}" for why, n in plan.dropped().items())
        fix = "an axis or --columns" if any(s.refused for s in plan.sheets) else "an axis"
        raise InputError(
            f"sweep: no possible shape ({reasons or 'an axis is empty'}); change {fix}"
        )
    if wish.plot is not None:
        from paramcalc.views import sweep_plot

        sweep_plot.draw(plan, wish.plot, force=wish.force)
    if wish.plot is None or wish.out is not None:
        _give(plan, way, wish)
    if wish.plot or wish.only_count or wish.out or way in ("json", "csv"):
        for line in remarks(plan):  # where no table has them
            output.say(f"note: {line}")


def _give(plan: Plan, way: str, wish: Wish) -> None:
    """Print the count, write the file, or show the rows."""
    if wish.only_count:
        _print_count(plan, way)
    elif wish.workers is not None or wish.dask is not None:
        if wish.out is None or not wish.out.endswith(("/", os.sep)):
            raise InputError("--workers and --dask: write parts; give --out folder/")
        write_parts(plan, wish)
    elif wish.out is not None and wish.out.endswith(("/", os.sep)):
        write_parts(plan, wish)
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


def _first(plan: Plan, limit: int) -> tuple[list[Block], int]:
    """The first rows of the answer, and how many rows it has."""
    found: list[Block] = []
    size = total = 0
    for block in _selected(plan):
        if size < limit:
            found.append(block.take(np.arange(min(len(block.rows), limit - size))))
            size += len(found[-1].rows)
        total += len(block.rows)
        if plan.every_row and size >= limit:
            return found, plan.rows
    return found, total


def _show(plan: Plan, way: str, wish: Wish) -> None:
    limit = plan.rows if way in ("json", "csv") and wish.rows == 20 else wish.rows
    found, total = _first(plan, limit)
    rows = [row for block in found for row in sinks.records(plan, block)]
    if way == "json":
        output.write_json([dict(zip(plan.shown, row, strict=True)) for row in rows])
        return
    if way == "csv":
        output.write_csv([dict(zip(plan.shown, row, strict=True)) for row in rows])
        return
    output.show([section(plan, rows, total)], markdown_way=way == "markdown")


def section(
    plan: Plan,
    rows: list[tuple[Any, ...]],
    total: int,
    *,
    more: str = "--rows N or --out FILE for them",
) -> Section:
    """Return the first rows of an answer of ``total`` as a table; ``more`` says where all are."""
    texts = {c.name for table in plan.tables for c in table.columns if c.formula is None}
    heads = [(name, "left" if name in texts else "right") for name in plan.shown]
    axes = {"model", *(axis.field for axis in plan.axes)}
    keys = len(list(takewhile(axes.__contains__, plan.shown)))
    table = Section(_title(plan, total), heads, keys=keys)
    units = known([axis.field for axis in plan.axes])
    money = {i for i, name in enumerate(plan.shown) if units[name] == "microdollars"}
    for row in rows:
        table.add(*(_money(cell) if i in money else cell for i, cell in enumerate(row)))
    if total > len(rows):
        table.notes.append(f"and {total - len(rows):,} more; {more}")
    table.notes += remarks(plan)
    return table


def whole_columns(plan: Plan, most: int) -> dict[str, Any]:
    """Return the shown columns of the whole answer: arrays of integers, lists of texts.

    Raises ``InputError`` where it has more than ``most`` cells.
    """
    rows = plan.rows if plan.every_row else plan.request.top or search.count(plan)
    if rows * len(plan.shown) > most:
        raise InputError(f"{rows:,} rows: too many at once; paramcalc sweep --out writes them")
    pieces: dict[str, list[Any]] = {name: [] for name in plan.shown}
    for block in _selected(plan):
        for name, column in zip(plan.shown, sinks.cells(plan, block), strict=True):
            own = isinstance(column, np.ndarray)
            pieces[name].append(column.copy() if own else [column] * len(block.rows))
    found: dict[str, Any] = {}
    for name, parts in pieces.items():
        if parts and isinstance(parts[0], np.ndarray):
            found[name] = np.concatenate(parts)
        else:
            found[name] = [text for part in parts for text in part]
    return found


def _money(cell: Any) -> Any:
    """Micro-dollars as a person reads them; nothing where there is no price."""
    from paramcalc.views.figures_view import text

    unit = "microdollars"
    return Measure(cell, unit, text(cell, unit)) if isinstance(cell, int) else cell


def _title(plan: Plan, total: int) -> str:
    text = f"{total:,} {'row' if total == 1 else 'rows'}"
    if not plan.every_row:
        text += f" of {plan.rows:,}"
    base = ", ".join(m.name for m in plan.models)
    return f"{text}, the rest as in {base}" if len(plan.models) == 1 else text


def _write(plan: Plan, wish: Wish) -> None:
    path = Path(wish.out or "")
    suffix = sinks.suffix_of(path)
    free(path, force=wish.force)
    rows = plan.rows if plan.every_row else search.count(plan)
    if suffix == ".xlsx" and rows >= sinks.SHEET_ROWS:
        raise InputError(
            f"out = {path}: {rows:,} rows, and a sheet holds {sinks.SHEET_ROWS - 1:,};"
            " write .csv or .parquet"
        )
    expect(plan, rows, suffix, wish)
    with progress(rows) as advance, sinks.opened(path, plan) as sink:
        for block in _selected(plan):
            sink.write(block)
            advance(len(block.rows))
    output.say(f"wrote {_many(rows, 'row')} to {path}")


def expect(plan: Plan, rows: int, suffix: str, wish: Wish) -> None:
    """Say how large the answer will be, and refuse a large one without a yes."""
    size = rows * len(plan.shown) * _CELL[suffix]
    note = (
        f"{_many(rows, 'row')}, {_many(len(plan.shown), 'column')}, about {Size(size, brief=True)}"
    )
    seconds = rows / _SPEED[suffix]
    note += f" and {seconds:,.0f} s" if seconds >= 1 else ""
    output.say(note)
    if (size > ASK_BYTES or rows > ASK_ROWS) and not wish.yes:
        raise InputError(f"out = {wish.out}: {note}; give --yes to write it")


_CELL = {".csv": 12, ".jsonl": 32, ".ndjson": 32, ".parquet": 2, ".xlsx": 10}
"""Bytes a cell takes, about."""
_SPEED = {".csv": 1e6, ".jsonl": 5e5, ".ndjson": 5e5, ".parquet": 1e7, ".xlsx": 4e4}
"""Rows a second, about."""


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar with rows a second and the time left on a terminal's standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns_ = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}% {task.fields[speed]} rows/s"),
        TimeRemainingColumn(),
    )
    screen = Console(stderr=True)
    with Progress(*columns_, console=screen, disable=not screen.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=total, speed="")

        def advance(rows: int) -> None:
            bar.update(task, advance=rows, speed=f"{bar.tasks[0].speed or 0:,.0f}")

        yield advance


def _many(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def write_parts(plan: Plan, wish: Wish) -> None:
    """Write a folder of Parquet parts, here, in processes or on a Dask cluster."""
    from paramcalc.sweep import parts

    if plan.request.by or plan.request.pareto:
        raise InputError("--top, --min, --max and --pareto: are one answer, not parts; name a file")
    sinks.suffix_of(Path("x.parquet"))
    folder = Path(wish.out or "")
    expect(plan, plan.rows, ".parquet", wish)
    with parts.cluster(wish.workers, wish.dask) as client, progress(plan.rows) as advance:
        rows = parts.run(plan, folder, advance, force=wish.force, cluster=client)
    output.say(f"{_many(rows, 'row')} in {_many(len(parts.parts(plan)), 'part')} in {folder}")
