"""What one command costs beside an empty program on the same stack, measured in pairs.

The empty program is a typer app with one typed command, one pydantic model and one rich table. Each
pair runs both, in alternating order; the ratio of their CPU times (user + system) is printed as a
median over pairs. Run: ``python benchmarks/startup.py [PAIRS]``.
"""

from __future__ import annotations

import compileall
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import paramcalc

EMPTY = '''
from typing import Annotated
import typer
from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

class Item(BaseModel):
    name: str
    size: int = 1

app = typer.Typer()

@app.command()
def main(
    name: Annotated[str, typer.Argument(help="A name.")],
    size: Annotated[int, typer.Option(help="A size.")] = 1,
) -> None:
    """Print one row."""
    item = Item(name=name, size=size)
    table = Table("name", "size")
    table.add_row(item.name, str(item.size))
    Console().print(table)

app()
'''


def cpu(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ratio(ours: list[str], empty: list[str], pairs: int) -> tuple[float, float, float]:
    """Return the median ratio and both median CPU times in seconds."""
    times: list[tuple[float, float]] = []
    for i in range(pairs):
        if i % 2:
            second = cpu(empty)
            times.append((cpu(ours), second))
        else:
            times.append((cpu(ours), cpu(empty)))
    a, b = ([pair[i] for pair in times] for i in (0, 1))
    return statistics.median(x / y for x, y in times), statistics.median(a), statistics.median(b)


def main(pairs: int) -> None:
    compileall.compile_dir(str(Path(paramcalc.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "empty.py"
        script.write_text(EMPTY, encoding="utf-8")
        program = [str(Path(sys.executable).with_name("paramcalc"))]
        empty = [sys.executable, str(script)]
        print(f"{'command':<24} {'ratio':>6} {'limit':>6} {'ours':>9} {'empty':>9}")
        for name, ours, other, limit in (
            ("llama3-8b", ["llama3-8b"], ["x"], 1.25),
            ("--help", ["--help"], ["--help"], 1.0),
            ("show --help", ["show", "--help"], ["--help"], 1.0),
        ):
            middle, mine, theirs = ratio(program + ours, empty + other, pairs)
            print(
                f"{name:<24} {middle:>6.2f} {limit:>6.2f}"
                f" {mine * 1e3:>6.0f} ms {theirs * 1e3:>6.0f} ms"
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 21)
