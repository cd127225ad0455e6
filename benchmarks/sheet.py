"""What a workbook costs: CPU time of ``paramcalc sheet`` from start to file, and of its parts.

The whole command runs in a process of its own, starting Python included; writing alone is timed in
this one. Medians. Run: ``python benchmarks/sheet.py [RUNS]``.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import paramcalc
from paramcalc.deploy import hardware
from paramcalc.views import workbook

SETS = (["llama3-8b"], ["deepseek-v3.2"], ["llama3-8b", "gpt-oss-20b", "gemma3-27b"])


def cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(runs: int) -> None:
    units, gpu = hardware.all(), hardware.find("h100")
    program = [str(Path(sys.executable).with_name("paramcalc")), "sheet"]
    print(f"{'models':<40} {'command':>8} {'limit':>7} {'writing':>8} {'file':>7}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.xlsx"
        for names in SETS:
            whole, writing = [], []
            for _ in range(runs):
                whole.append(cpu([*program, *names, "-o", str(path), "--force"]))
                models = [paramcalc.load(name) for name in names]
                began = time.process_time()
                workbook.write(path, models, units, workbook.wish(gpu))
                writing.append(time.process_time() - began)
            spent, alone = statistics.median(whole), statistics.median(writing)
            limit = "1.00 s" if len(names) == 1 else ""
            size = path.stat().st_size / 1000
            print(
                f"{' '.join(names):<40} {spent:>6.2f} s {limit:>7} {alone:>6.2f} s {size:>4.0f} kB"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
