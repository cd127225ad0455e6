"""Layers that differ: from one mapping a layer to the groups and patterns of a specification."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from paramcalc import rules

Layers: TypeAlias = list[dict[str, Any]]
"""Fields that differ from layer to layer, one entry a layer."""


def stack(kinds: Layers) -> dict[str, Any]:
    """Return the fields for layers that may differ: the fields themselves where all are equal (then
    no label sets them apart)."""
    if not kinds:
        return {}
    if all(kind == kinds[0] for kind in kinds):
        return {field: value for field, value in kinds[0].items() if field != "label"}
    return {"layers": layers(kinds)}


def both(*parts: Layers) -> Layers:
    """Return each layer's fields of several lists together."""
    return [{k: v for part in layer for k, v in part.items()} for layer in zip(*parts, strict=True)]


def layers(kinds: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return ``layers:`` of a specification for a list of layers' fields, one entry a layer.

    Up to three runs of equal layers stand as runs; else the shortest pattern that repeats, and runs
    again where it would be longer than a pattern may be.
    """
    every = [dict(kind) for kind in kinds]
    runs: list[dict[str, Any]] = []
    for kind in every:
        if runs and runs[-1]["kind"] == kind:
            runs[-1]["repeat"] += 1
        else:
            runs.append({"kind": kind, "repeat": 1})
    groups = [{**run["kind"], "repeat": run["repeat"]} for run in runs]
    n = len(every)
    if len(groups) > 3:
        lengths = range(1, min(n, rules.MOST_PERIOD) + 1)
        period = next((p for p in lengths if every[p:] == every[: n - p]), None)
        if period is not None:
            return [{"pattern": _runs(every[:period])}]
    del groups[-1]["repeat"]
    return groups


def _runs(kinds: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for kind in kinds:
        if found and {k: v for k, v in found[-1].items() if k != "repeat"} == kind:
            found[-1]["repeat"] = found[-1].get("repeat", 1) + 1
        else:
            found.append(dict(kind))
    return found
