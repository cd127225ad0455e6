"""The sweep's speed, as ratios measured in one run, medians of several.

Run: ``python benchmarks/sweep.py``. DuckDB and Polars are compared if they are installed
(``pip install duckdb polars``); their queries compute the same columns from the same formulas.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import paramcalc
from paramcalc.sweep import parts, search, select
from paramcalc.sweep.request import Plan, Request

COLUMNS = ("params", "active_params", "flops_per_token", "weight_bytes", "kv_bytes")
TEN_MILLION = (("d", "1024:8192:128"), ("L", "16:95"), ("ff", "4096:16384:768"),
               ("context", "1k:128k:1k"), ("head_dim", "128"))  # fmt: skip
HUNDRED_MILLION = (("d", "1024:8192:128"), ("L", "16:95"), ("ff", "4096:16384:64"),
                   ("context", "1k:128k:1k"), ("head_dim", "128"))  # fmt: skip
MILLION_OF_MILLIONS = (("d", "128:12800:128"), ("L", "1:100"), ("ff", "256:25600:256"),
                       ("V", "1k:100k:1k"), ("context", "1k:100k:1k"), ("batch", "1:100"),
                       ("head_dim", "128"))  # fmt: skip


def seconds(work: Callable[[], Any], times: int = 5) -> float:
    """Return the median of several runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def pairs(ours: Callable[[], Any], other: Callable[[], Any], times: int = 7) -> float:
    """Return the median over pairs of ours / other."""
    return statistics.median(seconds(ours, 1) / seconds(other, 1) for _ in range(times))


def say(what: str, value: str, must: str) -> None:
    print(f"{what:<62} {value:>14}  {must}", flush=True)


def memory() -> None:
    plan = Plan(Request(axes=TEN_MILLION, columns=COLUMNS))
    table = plan.tables[0]
    out = table.buffers(table.leading)
    for array in out:
        array.fill(1)

    def fill() -> None:
        for array in out:
            array.fill(1)

    name = f"materialise {table.rows:,} rows x 5, against one-thread memset"
    say(
        name, f"{pairs(lambda: table.materialise(out=out), fill):.2f} x", "must <= 2.0 x, aim 1.4 x"
    )
    one = pairs(lambda: table.materialise(out=out, threads=1), fill)
    say("the same with one thread", f"{one:.2f} x", "")
    table = Plan(Request(axes=HUNDRED_MILLION, columns=COLUMNS)).tables[0]

    def stream(first: int = 0, stop: int | None = None) -> None:
        for _ in table.stream(first, stop):
            pass

    def halves() -> None:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(stream, [0, table.leading // 2], [table.leading // 2, table.leading]))

    buffer = np.empty(10_000_000, np.int64)
    buffer.fill(1)

    def write() -> None:
        for _ in range(5 * table.rows // len(buffer)):
            buffer.fill(1)

    name = f"stream {table.rows:,} rows x 5, against memset"
    say(name, f"{pairs(stream, write, 5):.2f} x", "must <= 2.0 x, aim 1.4 x")
    say("two threads against one", f"{pairs(halves, stream, 5):.2f} x", "must < 1 x")


def loop() -> None:
    rows = 300

    def scalar() -> None:
        base = paramcalc.load("llama3-8b")
        for i in range(rows):
            model = base.with_(d=1024 + 128 * (i % 57), L=16 + i % 80)
            assert model.params.total + model.params.active + model.flops.per_token()
            assert model.memory.weight_bytes() + model.memory.kv_bytes()

    table = Plan(Request(axes=TEN_MILLION, columns=COLUMNS)).tables[0]
    out = table.buffers(table.leading)
    table.materialise(out=out)
    ours = seconds(lambda: table.materialise(out=out)) / table.rows
    each = seconds(scalar, 3) / rows
    say("a pydantic-validated loop, a row", f"{each / ours:,.0f} x", "must >= 500 x, aim 1,500 x")


SQL = """
with g as (select d, l, f, n from d, l, f, n)
select 2*128256*d + d + l*(2*d + 8192*d + 2048*d + 3*d*f) as params,
 2*128256*d + d + l*(2*d + 8192*d + 2048*d + 3*d*f) as active_params,
 2*128256*d + 2*l*(8192*d + 2048*d + 3*d*f) + 16384*l*n as flops_per_token,
 2*(2*128256*d + d + l*(2*d + 8192*d + 2048*d + 3*d*f)) as weight_bytes,
 4096*l*n as kv_bytes from g
"""


def databases() -> None:
    table = Plan(Request(axes=TEN_MILLION, columns=COLUMNS)).tables[0]
    out = table.buffers(table.leading)
    ours = seconds(lambda: table.materialise(out=out))
    axes = {
        "d": np.arange(1024, 8193, 128),
        "l": np.arange(16, 96),
        "f": np.arange(4096, 16385, 768),
        "n": np.arange(1, 129) * 1024,
    }
    try:
        import duckdb

        base: Any = duckdb.connect()
        for name, values in axes.items():
            base.execute(f"create table {name} ({name} bigint)")
            base.executemany(f"insert into {name} values (?)", [[int(v)] for v in values])
        check = base.execute(
            SQL + " where d = 4096 and l = 32 and f = 8704 and n = 8192"
        ).fetchone()
        assert check is not None
        theirs = seconds(lambda: base.execute(SQL).fetchnumpy(), 3)
        say(
            "DuckDB cross join, the same columns", f"{theirs / ours:.1f} x", "must >= 8 x, aim 15 x"
        )
    except ImportError:
        say("DuckDB", "not installed", "")
    try:
        import polars as pl

        def join() -> None:
            frame: Any = None
            for name, values in axes.items():
                one = pl.LazyFrame({name: values})
                frame = one if frame is None else frame.join(one, how="cross")
            sql: Any = pl.sql_expr
            body = SQL.split("select", 2)[2].rsplit("from", 1)[0].replace("\n", " ")
            frame.select(*(sql(part) for part in body.split(","))).collect()

        theirs = seconds(join, 3)
        say("Polars cross join, the same columns", f"{theirs / ours:.1f} x",
            "must >= 8 x, aim 15 x")  # fmt: skip

        def fill() -> None:
            for array in out:
                array.fill(1)

        say("Polars against memset: what is left to win", f"{theirs / seconds(fill):.1f} x", "")
    except ImportError:
        say("Polars", "not installed", "")


def walk(plan: Plan) -> tuple[int, list[int]]:
    """Count and find the best by walking every row."""
    total, keys = 0, np.empty(0, np.int64)
    for block in select.blocks(plan):
        holds = select.mask(plan.where, block.columns)
        index = np.flatnonzero(holds) if holds is not None else np.arange(len(block.rows))
        total += len(index)
        keys = np.concatenate([keys, block.columns[plan.sort[0]][index]])
        if len(keys) > 20:
            keys = np.partition(keys, 19)[:20]
    return total, sorted(keys.tolist())


def searches() -> None:
    two = ("params < 8e9 and kv_bytes <= 2e9",)
    plan = Plan(
        Request(axes=HUNDRED_MILLION, columns=("params",), where=two, top=20, by="kv_bytes")
    )

    def found() -> tuple[int, list[int]]:
        return search.count(plan), [row.key for row in search.best(plan)]

    assert found() == walk(plan)
    name = f"count + top 20, two constraints, {plan.rows:,} rows: walking"
    say(name, f"{1 / pairs(found, lambda: walk(plan), 3):.0f} x", "must >= 5 x, aim 10 x")
    few = ("kv_bytes <= 2e9 and attention_flops_per_token >= 2e9",)
    large = Plan(
        Request(axes=MILLION_OF_MILLIONS, columns=("kv_bytes",), where=few, top=20, by="kv_bytes")
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    took = seconds(lambda: (search.count(large), search.best(large)), 3)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    say(f"the same on {large.rows:,} rows", f"{took:.2f} s, +{more:.0f} MiB",
        "must <= 2 s, 128 MiB")  # fmt: skip
    plain = Plan(
        Request(axes=MILLION_OF_MILLIONS, columns=("params",), where=two, top=20, by="kv_bytes")
    )
    took = seconds(lambda: (search.count(plain), search.best(plain)), 3)
    say("params < 8e9 and kv_bytes <= 2e9 on the same rows", f"{took:.2f} s", "must <= 2 s")
    every = ("flops_per_token % 7 == 3 and params % 5 == 1 and kv_bytes > 0",)
    hard = Plan(Request(axes=TEN_MILLION, columns=("params",), where=every, top=20, by="params"))
    assert search.count(hard) == walk(hard)[0]
    name = "constraints that use every axis: count against walking"
    say(name, f"{pairs(lambda: search.count(hard), lambda: walk(hard), 3):.2f} x", "never > 1.2 x")


def parquet() -> None:
    plan = Plan(Request(axes=TEN_MILLION, columns=COLUMNS))
    with tempfile.TemporaryDirectory() as folder:
        paths = iter(range(100))

        def write() -> None:
            parts.run(plan, Path(folder) / str(next(paths)), lambda rows: None, force=False)

        speed = plan.rows / seconds(write, 3) / 1e6
    say("Parquet to disk, one process", f"{speed:.1f} M rows/s", "must >= 10 M rows/s")


if __name__ == "__main__":
    for part in (memory, loop, databases, searches, parquet):
        part()
