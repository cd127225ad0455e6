"""A sweep as a folder of Parquet parts: written in any order, by any number of machines, resumed.

A part is a run of leading rows of one sheet. Its file is renamed into place when it is whole and
carries, in its own metadata, the sweep it belongs to and its number, so that a part that is there
can be verified and need not be written again.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from paramcalc import __version__
from paramcalc.errors import InputError
from paramcalc.sweep import select, sinks
from paramcalc.sweep.request import Plan, Request
from paramcalc.writing import beside

RECORD = "sweep.json"


class Part(NamedTuple):
    """Leading rows ``first`` to ``stop`` of a table; ``start`` is the table's first row."""

    number: int
    table: int
    first: int
    stop: int
    start: int


def parts(plan: Plan) -> list[Part]:
    """Return the parts of a sweep; the same request always gives the same ones."""
    found: list[Part] = []
    for number, (table, start) in enumerate(zip(plan.tables, plan.starts, strict=True)):
        step = max(1, plan.request.part_rows // table.width)
        for first in range(0, table.leading, step):
            found.append(Part(len(found), number, first, min(table.leading, first + step), start))
    return found


def identity(request: Request) -> str:
    """Return a digest of a request and of the version that answers it."""
    text = json.dumps([__version__, asdict(request)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@lru_cache(maxsize=4)
def _plan(request: Request) -> Plan:
    return Plan(request)


def name_of(number: int) -> str:
    """Return a part's file name."""
    return f"part-{number:06d}.parquet"


def write_part(request: Request, number: int, folder: str) -> int:
    """Write one part and return its rows; a part that is there and whole is left alone.

    Runs on any machine that sees the folder.
    """
    done = rows_of(request, number, folder)
    if done is not None:
        return done
    plan = _plan(request)
    part = parts(plan)[number]
    stamp = {"paramcalc.sweep": identity(request), "paramcalc.part": str(number)}
    rows = 0
    with sinks.opened(Path(folder) / name_of(number), plan, stamp) as sink:
        blocks = select.blocks_of(plan.tables[part.table], part.start, part.first, part.stop)
        for block in select.meeting(plan, blocks):
            sink.write(block)
            rows += len(block.rows)
    return rows


def rows_of(request: Request, number: int, folder: str) -> int | None:
    """Return how many rows a finished part holds; None if it is absent, broken or another's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(folder) / name_of(number)
    try:
        found = pq.read_metadata(path)
    except (OSError, pa.ArrowException):
        return None
    stamp = found.metadata or {}
    if stamp.get(b"paramcalc.sweep") != identity(request).encode():
        return None
    return int(found.num_rows) if stamp.get(b"paramcalc.part") == str(number).encode() else None


def prepare(request: Request, folder: Path, *, force: bool) -> None:
    """Make the folder of a sweep, or accept the one that an earlier run of it left.

    Raises ``InputError`` for a folder that holds another sweep or something else.
    """
    record = folder / RECORD
    try:
        if record.is_file() and json.loads(record.read_text())["sweep"] == identity(request):
            return
        if folder.exists() and any(folder.iterdir()):
            if not force or not record.is_file():
                raise InputError(f"out = {folder}: holds something else; name another folder")
            for path in folder.glob("part-*.parquet"):
                path.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"sweep": identity(request), "request": asdict(request)}, indent=2)
        with beside(record) as held:
            held.write_text(text)
    except (OSError, json.JSONDecodeError, KeyError) as error:
        raise InputError(f"out = {folder}: {getattr(error, 'strerror', None) or error}") from None


def run(
    plan: Plan, folder: Path, advance: Callable[[int], None], *, force: bool, cluster: Any = None
) -> int:
    """Write every part that is not there, here or on a Dask cluster; return all rows.

    ``advance`` is told the rows of the grid that each finished part covers.
    """
    request = plan.request
    prepare(request, folder, force=force)
    for left in folder.glob(".part-*"):
        left.unlink(missing_ok=True)  # what a killed run was writing
    every = parts(plan)
    covered = {p.number: (p.stop - p.first) * plan.tables[p.table].width for p in every}
    total = 0
    for number, rows in _results(request, every, folder, cluster):
        total += rows
        advance(covered[number])
    return total


@contextmanager
def cluster(workers: int | None, address: str | None) -> Iterator[Any]:
    """Connect to a Dask scheduler, or start a local cluster of so many processes; None for neither.

    Raises ``InputError`` for an address that does not answer.
    """
    if workers is None and address is None:
        yield None
        return
    if workers is not None and address is not None:
        raise InputError("--workers and --dask: one cluster at a time; choose one")
    try:
        import distributed
    except ImportError:
        raise InputError("a cluster needs Dask; pip install 'paramcalc[dask]'") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    connect: Any = distributed.Client
    local: Any = distributed.LocalCluster
    try:
        if address is not None:
            with connect(address, timeout=10) as client:
                yield client
        else:
            with (
                local(n_workers=workers, threads_per_worker=1, dashboard_address=None) as started,
                connect(started) as client,
            ):
                yield client
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        first = (str(error).splitlines() or ["no answer"])[0]
        raise InputError(f"dask = {address or workers}: {first}; check that it runs") from None


def _results(
    request: Request, every: list[Part], folder: Path, cluster: Any
) -> Iterator[tuple[int, int]]:
    if cluster is None:
        for part in every:
            yield part.number, write_part(request, part.number, str(folder))
        return
    from distributed import as_completed

    waiting = {}
    for part in every:
        rows = rows_of(request, part.number, str(folder))
        if rows is not None:
            yield part.number, rows
        else:
            job = cluster.submit(
                write_part, request, part.number, str(folder.resolve()), pure=False
            )
            waiting[job] = part.number
    finished: Any = as_completed
    for job, rows in finished(waiting, with_results=True):
        yield waiting[job], rows
