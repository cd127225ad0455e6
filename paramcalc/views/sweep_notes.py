"""What to know of a sweep's rows: how many were left out and why, what figures rest on."""

from __future__ import annotations

from paramcalc.deploy.fit import NODE, beyond
from paramcalc.sweep.request import Plan

FEW = 6
"""Models that a note names."""


def remarks(plan: Plan) -> list[str]:
    """Return what to know of the rows: how many were left out and why, what figures rest on."""
    found = [f"left out: {number:,}, {reason}" for reason, number in plan.dropped().items()]
    return found + _of_gpus(plan)


def _of_gpus(plan: Plan) -> list[str]:
    """What to know of the figures of GPUs that are shown."""
    found = []
    if "cost_per_million_tokens" in plan.shown:
        found.append("cost of a million tokens: decode alone; prompts have a column of their own")
    if _only_replicas(plan):
        found.append(
            "gpus without tp: every GPU holds the whole model, a replica each; --tp 1:8:x2 shares"
            " it out (paramcalc fit --gpus chooses tp and pp)"
        )
    widest = max((max(a.values) for a in plan.axes if a.field == "tp" and a.values), default=1)
    if widest > NODE:
        found.append(f"tp above {NODE} exchanges as if all GPUs were in one node")
    return found + _beyond(plan)


def _only_replicas(plan: Plan) -> bool:
    """Whether several GPUs are asked for, and nobody said how many share one model."""
    if any(axis.field == "tp" for axis in plan.axes):
        return False
    sizes = [d.fields["gpus"] for s in plan.sheets for d in s.dims if "gpus" in d.fields]
    return any(size.max(initial=1) > 1 for size in sizes)


def _beyond(plan: Plan) -> list[str]:
    """Contexts asked of GPUs that are longer than a model's own, as ``fit`` says it."""
    found: dict[str, str] = {}
    for sheet in plan.sheets:
        asked = [int(dim.fields["context"].max()) for dim in sheet.dims if "context" in dim.fields]
        if sheet.words["gpu"] is None or not sheet.rows or not asked:
            continue
        if over := beyond(sheet.spec, asked[0]):
            found[sheet.model.name] = f"context = {asked[0]:,}: {over}"
    if len(found) < 2:
        return list(found.values())
    names = ", ".join([*found][:FEW])
    more = f" and {len(found) - FEW:,} more" if len(found) > FEW else ""
    return [f"context: beyond what these have of their own: {names}{more}"]
