"""The explanation on a screen and as tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from paramcalc.model import Model
from paramcalc.symbolic import legend
from paramcalc.views.explain import Step
from paramcalc.views.tables import ACCENT, Section, fit, flow

if TYPE_CHECKING:
    from rich.console import Console


def as_tables(steps: list[Step]) -> list[Section]:
    """Return the steps as tables, one a heading."""
    found: dict[str, Section] = {}
    for step in steps:
        table = found.setdefault(
            step.group,
            Section(
                step.group,
                [
                    ("what", "left"),
                    ("formula", "left"),
                    ("numbers", "left"),
                    ("value", "right"),
                    ("unit", "left"),
                ],
            ),
        )
        table.add(step.name, step.symbols, step.numbers, step.value, step.unit)
    return list(found.values())


def terminal(console: Console, model: Model, steps: list[Step]) -> None:
    """Print the symbols, then each step: its integer, its formula, the formula in numbers."""
    from rich.padding import Padding

    def put(text: str, indent: int, style: str = "") -> None:
        fitted = fit(text, console.encoding)
        console.print(Padding(fitted, (0, 0, 0, indent), expand=False), style=style)

    put(f"{model.name}  {model.params.total:,} parameters", 0, "bold")
    listed = [entry for entry in legend(model.spec, model.context) if _used(entry[0], steps)]
    items = [
        f"{short} = {value:,}" if short == field else f"{short} = {field} = {value:,}"
        for short, field, value in listed
    ]
    for line in flow(items, console.width):
        put(line, 0)
    group = ""
    for step in steps:
        if step.group != group:
            group = step.group
            console.print()
            put(group, 0, f"bold {ACCENT}")
        put(f"{step.name}: {step.value:,} {step.unit}", 2, "bold")
        put(step.symbols if "=" in step.symbols else f"= {step.symbols}", 4)
        if step.numbers not in (step.symbols, str(step.value), f"{step.value:,}"):
            put(f"= {step.numbers}", 4, "dim")


def _used(name: str, steps: list[Step]) -> bool:
    """Whether a symbol stands in a formula."""
    whole = re.compile(rf"(?<![\w\[]){re.escape(name)}(?![\w\[])")
    return any(whole.search(step.symbols) for step in steps)
