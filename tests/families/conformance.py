"""Families against the golden facts: what the conformance test asserts and its table shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import paramcalc
from paramcalc.families.names import Stored
from paramcalc.model import Model
from tests.families.causes import Cause, all_causes

GOLDEN = Path(__file__).parent.parent / "golden"
Shapes = Counter[tuple[int, ...]]
Names = Counter[tuple[str, tuple[int, ...]]]


@cache
def rows(name: str) -> list[dict[str, Any]]:
    """Return the golden rows of a file: types, configs (released) or varied."""
    lines = (GOLDEN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def label(row: dict[str, Any]) -> str:
    """Return a row's name in test reports."""
    if "slug" in row:
        return str(row["slug"])
    changed = "+".join(row.get("changed", {}))
    return f"{row['model_type']}-{row['arch']}" + (f"-{changed}"[:60] if changed else "")


def model_of(row: dict[str, Any]) -> Model:
    """Return the model that a row's configuration describes, released or complete."""
    config = row.get("released_config") or row.get("config") or row["changed"]
    return paramcalc.load({**config, "model_type": row["model_type"]}, arch=row["arch"])


def published_params(row: dict[str, Any]) -> int:
    """Return the count to meet: as released, where the class forces a tied head."""
    return int(row.get("params_as_released", row["params"]))


def shapes_of(model: Model) -> Shapes:
    """Return the multiset of stored shapes, buffers out."""
    found: Shapes = Counter()
    for tensor in parameters(model):
        found[tuple(tensor.shape)] += tensor.copies
    return found


def golden_shapes(row: dict[str, Any]) -> Shapes:
    """Return the multiset of the framework's shapes; a separate head as released added."""
    found: Shapes = Counter()
    for _, shape, count in row["tensors"]:
        found[tuple(shape)] += count
    if "params_as_released" in row:
        table = next(tuple(shape) for name, shape, _ in row["tensors"] if "shared" in name)
        found[table] += 1
    return found


def digest(shapes: Shapes) -> str:
    """Return a short mark of a multiset of shapes."""
    text = json.dumps(sorted((list(shape), count) for shape, count in shapes.items()))
    return sha256(text.encode()).hexdigest()[:16]


def names_of(model: Model) -> Names:
    """Return the multiset of (name, shape), numbers in names as {i}."""
    found: Names = Counter()
    for tensor in parameters(model):
        found[_plain(tensor.name), tuple(tensor.shape)] += tensor.copies
    return found


def golden_names(row: dict[str, Any]) -> Names:
    """Return the framework's names and shapes, numbers as {i}."""
    found: Names = Counter()
    for name, shape, count in row["tensors"]:
        found[_plain(name), tuple(shape)] += count
    return found


def _plain(name: str) -> str:
    return re.sub(r"(?<=[._])(\d+|\{e\})(?=\.|$)", "{i}", name)


def parameters(model: Model) -> list[Stored]:
    """Return the stored tensors that are no buffers."""
    return [tensor for tensor in model.stored if not tensor.buffer]


class Work(NamedTuple):
    """FLOPs of a sequence beside the framework's; ``cause`` explains a difference."""

    n: int
    ours: int
    framework: int
    cause: Cause | None
    explained: int

    @property
    def exact(self) -> bool:
        """Whether they are equal without a cause."""
        return self.ours == self.framework

    @property
    def accounted(self) -> bool:
        """Whether they are equal, or differ by what the cause gives, to the last one."""
        return self.exact or self.ours + self.explained == self.framework


def work_of(row: dict[str, Any], model: Model) -> list[Work]:
    """Return both counts at each length that the golden row has."""
    cause = all_causes().get((row["model_type"], row["arch"]))
    found = []
    for length, fact in (row.get("forward_flops") or {}).items():
        n, total = int(length), int(fact["total"])
        ours = model.flops.prefill(n, all_pairs=True)
        extra = 0 if cause is None or ours == total else cause.extra(model, n)
        found.append(Work(n, ours, total, cause, extra))
    return found
