"""Deployments in a sweep: what a row's speed and cost take, in one run.

    python benchmarks/fleet.py

Prints CPU time ratios: the cost column against a loop over ``serve``'s own objects (the same
numbers), and against the FLOPs column of the same grid.
"""

from __future__ import annotations

import statistics
import time

import paramcalc
from paramcalc.deploy import hardware, serving
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.hardware_file import priced
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.serving import Service, Workload
from paramcalc.sweep.request import Plan, Request

AXES = (
    ("n_layers", "8:96"),
    ("context", "1k:128k:x2"),
    ("batch", "1:512"),
    ("gpu", "h100,h200"),
    ("gpus", "8"),
    ("tp", "1,2,4,8"),
)


def swept(column: str) -> tuple[float, int]:
    """Return CPU seconds and rows of the grid with one column."""
    plan = Plan(Request(models=("llama3.1-8b",), axes=AXES, columns=(column,), price="2.49"))
    tables = plan.tables
    started = time.process_time()
    rows = sum(len(block[0]) for table in tables for _, block in table.stream())
    return time.process_time() - started, rows


def looped(rounds: int) -> float:
    """Return CPU seconds for as many rows, one object each."""
    model = paramcalc.load("llama3.1-8b")
    gpu = priced(hardware.find("h100"), "2.49")
    started = time.process_time()
    for batch in range(1, rounds + 1):
        one = Deployment(model, Layout(tp=8))
        machine = serving.machine(gpu, one.format, 60, 80, 10_000)
        service = Service(one, gpu, machine, Workload(2048, 1, batch))
        service.cost(service.step_time, service.replica_batch)
    return time.process_time() - started


def main() -> None:
    """Print one line a ratio."""
    cost = [swept("cost_per_million_tokens") for _ in range(5)]
    rows = cost[0][1]
    each = statistics.median(seconds for seconds, _ in cost) / rows
    flops = statistics.median(swept("flops_per_token")[0] for _ in range(5)) / rows
    loop = statistics.median(looped(200) for _ in range(3)) / 200
    print(f"cost of {rows:,} deployments: {1 / each / 1e6:.0f} M rows/s of one core")
    print(f"a loop over serve, a row               {loop / each:>10,.0f} x")
    print(f"the FLOPs column of the same grid      {each / flops:>10.1f} x")


if __name__ == "__main__":
    main()
