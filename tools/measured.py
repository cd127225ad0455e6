"""Print the table of docs/capacity.md: memory that others measured, and what fit computes.

python tools/measured.py
"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import paramcalc
from paramcalc.deploy import hardware
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.parallel import Layout

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
MEASURED = json.loads((GOLDEN / "measured_serving.json").read_text(encoding="utf-8"))
HEAD = """\
| model, format, GPUs | share | weights | fit | | activations | fit | | cache room | fit | |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"""


class Row(NamedTuple):
    """One measured run, and what ``fit`` computes of it in bytes."""

    facts: dict[str, Any]
    deployment: Deployment
    weights: int
    activation: int
    kv: int


def computed(facts: dict[str, Any]) -> Row:
    """Return what ``fit`` computes with its defaults for a run."""
    engine = Engine(Fraction(facts["utilization"]), MEASURED["page"])
    model = paramcalc.load(facts["preset"])
    layout = Layout(tp=facts["tp"])
    deployment = Deployment(model, layout, facts["dtype"], engine=engine)
    (stage,) = deployment.stages
    budget = deployment.budget(hardware.find(MEASURED["gpu"]).visible_bytes)
    return Row(facts, deployment, stage.weights, stage.workspace, budget - stage.fixed)


def _pair(measured: str, ours: int) -> str:
    """Three cells: GiB as published, GiB as computed, and the difference."""
    size = ours / 2**30
    gap = size - float(measured)
    return f"{measured} | {size:.2f} | {gap:+.2f}"


def main() -> None:
    """Print the table."""
    print(HEAD)
    for facts in MEASURED["rows"]:
        row = computed(facts)
        parts = [
            _pair(facts["weights"], row.weights),
            _pair(facts["activation"], row.activation),
            _pair(facts["kv"], row.kv),
        ]
        name = f"{facts['preset']}, {facts['dtype']}, {facts['tp']}"
        print(f"| {name} | {facts['utilization']} | {' | '.join(parts)} |")


if __name__ == "__main__":
    main()
