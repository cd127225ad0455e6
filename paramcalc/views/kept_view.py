"""What one microbatch keeps for the backward pass, tensor by tensor, on one GPU."""

from __future__ import annotations

from typing import Any

from paramcalc.deploy.activations.tensors import Kept
from paramcalc.deploy.training import Plan
from paramcalc.views.tables import Section, Size

_OUTSIDE, _LOSS = "outside the layers", "by the loss"


def rows(plan: Plan) -> list[dict[str, Any]]:
    """Return a row a tensor: where it stands, its bytes in one layer of one GPU, and why."""
    found = []
    for layer in plan.kept.layers:
        where = ".".join(p for p in (layer.stack, "layers", layer.label) if p)
        found += [_row(plan, where, layer.n_layers, tensor) for tensor in layer.tensors]
        found += [_row(plan, f"{where}, while computed again", 1, tensor) for tensor in layer.again]
    found += [_row(plan, _OUTSIDE, 1, tensor) for tensor in plan.kept.outside]
    found += [_row(plan, _LOSS, 1, tensor) for tensor in plan.kept.loss]
    return found


def _row(plan: Plan, where: str, layers: int, tensor: Kept) -> dict[str, Any]:
    return {
        "where": where,
        "tensor": tensor.name,
        "layers": layers,
        "elements": tensor.elements,
        "element_bytes": tensor.width,
        "bytes_per_layer": tensor.rank_bytes(plan.layout.tp, plan.sequence_parallel),
        "divided_by": tensor.split,
        "known": tensor.known,
        "by": tensor.why,
    }


def sections(plan: Plan) -> list[Section]:
    """Return a table a kind of layer, with the sum of one layer."""
    found: dict[str, Section] = {}
    sums: dict[str, int] = {}
    for row in rows(plan):
        where = row["where"]
        if where not in found:
            many = f", one of {row['layers']:,}" if row["layers"] > 1 else ""
            columns = [("", "left"), ("", "right"), ("known", "left"), ("kept for", "left")]
            title = where if where in (_OUTSIDE, _LOSS) else f"in {where}{many}"
            found[where] = Section(f"Kept {title}", columns, paths=True)
        size = Size(row["bytes_per_layer"], brief=True)
        found[where].add(row["tensor"], size, row["known"], row["by"])
        sums[where] = sums.get(where, 0) + row["bytes_per_layer"]
    for where, section in found.items():
        section.add("all", Size(sums[where], brief=True), "", "", strong=True)
    return list(found.values())
