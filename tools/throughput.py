"""Print the table of docs/serving.md: predicted throughput beside published measurements.

python tools/throughput.py
"""

from __future__ import annotations

import json
import sys
from fractions import Fraction
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent))

import paramcalc
from paramcalc.deploy import hardware, serving
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.serving import Service, Workload

MEASURED = Path(__file__).parent.parent / "tests" / "golden" / "measured_throughput.json"
MAX_SEQS = 2048
"""Requests at once: the source does not state its own limit."""


def predicted(model: str, gpu: str, tp: int, prompt: int, output: int) -> int:
    """Return the tokens a second written at the largest batch that fits, by default assumptions."""
    unit = hardware.find(gpu)
    engine = Engine(max_seqs=MAX_SEQS)
    deployment = Deployment(paramcalc.load(model), Layout(tp=tp), "fp8", "fp8", engine)
    machine = serving.machine(unit, deployment.format, 60, 80, 10_000)
    service = Service(deployment, unit, machine, Workload(prompt, output, 1))
    return service.at(batch=service.largest_batch).served_rate


def main() -> None:
    text = MEASURED.read_text(encoding="utf-8")
    lengths: dict[tuple[int, int], dict[str, str]] = {}
    errors: list[Fraction] = []
    names = []
    for row in json.loads(text)["rows"]:
        gpus = row["gpu"] if row["tp"] == 1 else f"{row['tp']} × {row['gpu']}"
        names.append(f"{row['model']}, {gpus}")
        for prompt, output, measured in row["tokens_per_second"]:
            rate = predicted(row["model"], row["gpu"], row["tp"], prompt, output)
            errors.append(Fraction(rate, measured) - 1)
            cell = f"{rate:,} / {measured:,}, {float(errors[-1]):+.0%}"
            lengths.setdefault((prompt, output), {})[names[-1]] = cell
    print(f"| in, out | {' | '.join(names)} |")
    print("|---" * (len(names) + 1) + "|")
    for (prompt, output), cells in lengths.items():
        shown = " | ".join(cells.get(name, "") for name in names)
        print(f"| {prompt:,}, {output:,} | {shown} |")
    low, middle, high = (float(f(errors)) for f in (min, median, max))
    print(
        f"\nOf {len(errors)} rows the error is {low:+.0%} to {high:+.0%}, the median {middle:+.0%}."
    )


if __name__ == "__main__":
    main()
