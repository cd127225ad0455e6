"""A folder of parts: written anywhere, killed, resumed, never half a part."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paramcalc.errors import InputError
from paramcalc.sweep import parts
from paramcalc.sweep.request import Plan, Request

AXES = (("d_model", "1024:4096:128"), ("n_layers", "1:200"), ("context", "1k:128k:1k"))
COLUMNS = ("d_model", "n_layers", "context", "params", "kv_bytes")
REQUEST = Request(axes=AXES, columns=COLUMNS, part_rows=10_000)
SWEEP = [
    sys.executable, "-m", "paramcalc", "sweep", "--d", "1024:4096:128", "--layers", "1:200",
    "--context", "1k:128k:1k", "--columns", ",".join(COLUMNS), "--part-rows", "10000",
]  # fmt: skip
ROWS = 25 * 200 * 128


def read(folder: Path) -> list[dict[str, int]]:
    tables = [pq.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
    return [row for table in tables for row in table.slice(0, 3).to_pylist()]


def total(folder: Path) -> int:
    return sum(pq.read_metadata(p).num_rows for p in folder.glob("part-*.parquet"))


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.002)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    assert parts.run(Plan(REQUEST), folder, lambda rows: None, force=False) == ROWS
    return folder


def test_parts_hold_every_row_once(whole: Path) -> None:
    assert total(whole) == ROWS
    table = pq.read_table(sorted(whole.glob("part-*.parquet"))[-1])
    last = table.slice(table.num_rows - 1).to_pylist()[0]
    assert (last["d_model"], last["n_layers"], last["context"]) == (4096, 200, 131_072)
    assert last["kv_bytes"] == 200 * 2 * 8 * 128 * 2 * 131_072


def test_parquet_is_written_for_integers(whole: Path) -> None:
    column = pq.read_metadata(next(whole.glob("part-*.parquet"))).row_group(0).column(3)
    assert column.compression == "ZSTD"
    assert "BYTE_STREAM_SPLIT" in column.encodings
    assert not any("DICT" in encoding for encoding in column.encodings)


def test_a_killed_run_resumes_and_redoes_nothing(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    command = [*SWEEP, "--out", f"{folder}/"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    until(lambda: len(list(folder.glob("part-*.parquet"))) >= 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = {p: p.stat().st_mtime_ns for p in folder.glob("part-*.parquet")}
    assert len(finished) < len(list(whole.glob("part-*.parquet")))
    for path in finished:  # a part is whole or absent
        assert parts.rows_of(REQUEST, int(path.stem[5:]), str(folder)) is not None
    broken = folder / parts.name_of(2)
    broken.write_bytes(broken.read_bytes()[:-100])
    (folder / ".part-000009.parquet.1").write_bytes(b"left behind")
    assert subprocess.run(command, check=True, stderr=subprocess.DEVNULL).returncode == 0
    assert read(folder) == read(whole)
    kept = {p: p.stat().st_mtime_ns for p in finished if p != broken}
    assert kept == {p: t for p, t in finished.items() if p != broken}
    assert not list(folder.glob(".part-*"))


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A real scheduler and two workers on loopback."""
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    base = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*base, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", str(file)],
        **quiet,  # type: ignore[call-overload]
    )  # fmt: skip
    workers: list[subprocess.Popen[bytes]] = []
    try:
        until(file.exists)
        for _ in range(2):
            workers.append(
                subprocess.Popen(
                    [
                        *base,
                        "distributed.cli.dask_worker",
                        "--scheduler-file",
                        str(file),
                        "--nthreads",
                        "1",
                        "--no-nanny",
                        "--no-dashboard",
                        "--host",
                        "127.0.0.1",
                        "--local-directory",
                        str(folder),
                    ],
                    **quiet,  # type: ignore[call-overload]
                )
            )
        yield json.loads(file.read_text())["address"], workers
    finally:
        for process in [*workers, scheduler]:
            process.kill()
            process.wait()


def test_a_cluster_that_loses_a_worker_loses_no_part(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with cluster(tmp_path) as (address, workers):
        process = subprocess.Popen(
            [*SWEEP, "--out", f"{folder}/", "--dask", address], stderr=subprocess.PIPE
        )
        until(lambda: len(list(folder.glob("part-*.parquet"))) >= 5)
        workers[0].send_signal(signal.SIGKILL)
        _, errors = process.communicate(timeout=100)
        assert process.returncode == 0, errors
    assert read(folder) == read(whole)


def test_another_sweep_in_the_folder_is_kept(whole: Path, tmp_path: Path) -> None:
    other = Plan(Request(axes=(("n_layers", "1:3"),)))
    with pytest.raises(InputError, match="holds something else"):
        parts.run(other, whole, lambda rows: None, force=False)
    foreign = tmp_path / "mine"
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds something else"):
        parts.run(other, foreign, lambda rows: None, force=True)
    assert total(whole) == ROWS


def test_conditions_go_into_parts(tmp_path: Path) -> None:
    plan = Plan(Request(axes=AXES, columns=COLUMNS, where=("n_layers < 3",), part_rows=100_000))
    assert parts.run(plan, tmp_path / "a", lambda rows: None, force=False) == 25 * 2 * 128
    assert total(tmp_path / "a") == 25 * 2 * 128


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="out = "):
        parts.run(Plan(REQUEST), tmp_path / "file" / "x", lambda rows: None, force=False)


def peak_of(code: str) -> int:
    """The peak resident bytes of a process that runs code, read by itself."""
    tail = "\nimport resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], check=True, capture_output=True, env=os.environ
    )
    return int(done.stdout.split()[-1])


def test_streaming_10_to_the_8_rows_holds_under_64_mib() -> None:
    start = (
        "from paramcalc.sweep.request import Plan, Request\n"
        "from paramcalc.sweep import search, select\n"
        "plan = Plan(Request(axes=(('d', '1024:8192:128'), ('L', '16:95'),"
        " ('ff', '4096:16384:64'), ('context', '1k:128k:1k'))))\n"
        "plan.tables\n"
    )
    walk = "assert sum(len(b.rows) for b in select.blocks(plan)) == 112650240\n"
    assert peak_of(start + walk) - peak_of(start) < 64 * 2**20
