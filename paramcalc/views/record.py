"""The report for a machine: raw integers, full names, stable columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from paramcalc.ledger import Tensor
from paramcalc.model import Model
from paramcalc.quantities import shape
from paramcalc.quantities.catalogue import CATALOGUE
from paramcalc.quantities.components import parts
from paramcalc.views.answers import Answers


def record(answers: Answers) -> dict[str, Any]:
    """Return everything about a model as one document."""
    model, n = answers.model, answers.at.n
    changes = {key: answers.change(key) for key in answers.before}
    return {
        "model": model.name,
        "spec": model.spec.model_dump(exclude_none=True, exclude={"about"}, mode="json"),
        "about": model.spec.about.model_dump(mode="json") if model.spec.about else None,
        "context": n,
        "batch": answers.at.batch,
        "kv_dtype": answers.kv_dtype.name,
        "quantities": answers.values,
        "known": {key: answers.known(key) for key in CATALOGUE},
        "change": {key: change for key, change in changes.items() if change is not None},
        "params_by_component": dict(model.params.by_component),
        "params_by_part": [p._asdict() for p in parts(model.ledger) if p.kind == "part"],
        "layers": layers(model),
        "shape": [
            {k: float(v) if isinstance(v, Fraction) else v for k, v in r._asdict().items()}
            for r in shape.ratios(model.plan, model.ledger)
        ],
        "rules_of_thumb": [
            {**r._asdict(), "error": float(r.error)}
            for r in shape.rules_of_thumb(model.plan, model.ledger, n)
        ],
        "tensors": [tensor_record(t) for t in model.ledger.tensors],
    }


def layers(model: Model) -> list[dict[str, Any]]:
    """Return one row a layer."""
    return [
        {"stack": stack, "layer": number, "params": count}
        for stack, number, count in model.params.by_layer
    ]


def rows(answers: Answers) -> list[dict[str, Any]]:
    """Return flat rows for CSV: one a quantity, then one a component."""
    flat = [
        (key, answers.values[key], quantity.unit, answers.known(key))
        for key, quantity in CATALOGUE.items()
    ]
    flat += [
        (f"params_{role}", count, "parameters", "exact")
        for role, count in answers.model.params.by_component.items()
    ]
    names = ("quantity", "value", "unit", "known")
    return [{"model": answers.model.name, **dict(zip(names, row, strict=True))} for row in flat]


def tensor_record(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor's row for a machine."""
    return {
        "name": tensor.name,
        "role": tensor.role,
        "shape": list(tensor.shape),
        "copies": tensor.copies,
        "active": tensor.active,
        "runs": tensor.runs,
        "use": tensor.use,
        "shard": tensor.shard,
        "params": tensor.params,
        "active_params": tensor.active_params,
        "flops_per_token": tensor.flops,
    }
