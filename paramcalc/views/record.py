"""The report for a machine: raw integers, full names, stable columns."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pydantic import BaseModel

from paramcalc.families.names import Stored
from paramcalc.ledger import Tensor
from paramcalc.model import Model
from paramcalc.quantities import shape
from paramcalc.quantities.catalogue import CATALOGUE, Known
from paramcalc.quantities.components import parts
from paramcalc.views.answers import Answers


def record(answers: Answers) -> dict[str, Any]:
    """Return everything about a model as one document."""
    model, n = answers.model, answers.at.n
    changes = {key: answers.change(key) for key in answers.before}
    return {
        "model": model.name,
        "spec": spec_record(model),
        "config": config_record(model),
        "about": model.spec.about.model_dump(mode="json") if model.spec.about else None,
        "context": n,
        "batch": answers.at.batch,
        "kv_dtype": answers.kv_dtype.name,
        "quantities": answers.values,
        "known": {key: answers.known(key) for key in CATALOGUE},
        "change": {key: change for key, change in changes.items() if change is not None},
        "params_by_component": dict(model.params.by_component),
        "params_by_part": [p._asdict() for p in parts(model.ledger) if p.kind == "part"],
        "params_mtp": model.params.mtp,
        "params_towers": model.params.towers,
        "layers": layers(model),
        "cache_by_kind": [
            {**row._asdict(), "bytes": row.elements * answers.kv_dtype.bits // 8}
            for row in model.memory.cache_by_kind(n)
        ],
        "cache_by_layer": [
            {**row._asdict(), "bytes": row.elements * answers.kv_dtype.bits // 8}
            for row in model.memory.cache_by_layer(n)
        ],
        "shape": [
            {k: float(v) if isinstance(v, Fraction) else v for k, v in r._asdict().items()}
            for r in shape.ratios(model.plan, model.ledger)
        ],
        "rules_of_thumb": [
            {**r._asdict(), "error": float(r.error)}
            for r in shape.rules_of_thumb(model.spec.d_model, model.plan, model.ledger, n)
        ],
        "tensors": [tensor_record(t) for t in model.ledger.tensors],
        "stored_tensors": [stored_record(t) for t in model.stored],
    }


def spec_record(model: Model) -> dict[str, Any]:
    """Return the fields of the specification that a person can write, defaults that are not None
    in; a family's own blocks are left out."""
    return _fields(model.spec)


_UNWRITTEN = ("about", "blocks", "outer")


def _fields(section: BaseModel) -> dict[str, Any]:
    named = {name: getattr(section, name) for name in type(section).model_fields}
    kept = {k: v for k, v in named.items() if k not in _UNWRITTEN and v is not None and v != ()}
    return {name: _plain(value) for name, value in kept.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _fields(value)
    return [_plain(inner) for inner in value] if isinstance(value, tuple) else value


def config_record(model: Model) -> dict[str, Any] | None:
    """Return what a config.json said of itself, and what was not read; None for a preset."""
    reading = model.reading
    if reading is None:
        return None
    return {
        "model_type": reading.model_type,
        "arch": reading.arch,
        "unused_keys": list(reading.unused),
        "left_out": list(reading.left_out),
        "assumed": list(reading.assumed),
    }


def stored_record(tensor: Stored) -> dict[str, Any]:
    """Return a stored tensor's row: its shape as a checkpoint has it, and what is fused in it."""
    return {
        "name": tensor.name,
        "shape": list(tensor.shape),
        "copies": tensor.copies,
        "buffer": tensor.buffer,
        "holds": list(tensor.rows),
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
    sure: Known = "assumed" if answers.model.assumed else "exact"
    flat += [
        (f"params_{role}", count, "parameters", sure)
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
