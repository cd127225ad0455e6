"""A spec with fields replaced by arrays or symbols, wherever they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.errors import InputError
from paramcalc.spec import ModelSpec

DEPLOYMENT = {"batch": 1, "gpus": 1, "tp": 1}
"""Axes that are not fields of a model, and their value where there is no axis."""


def of_model(values: dict[str, Any], words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that are fields of the model. On a GPU the context is not: it is asked of
    the deployment, as in ``fit``, and leaves a learned table of positions as long as it is."""
    beside = {*DEPLOYMENT, *(("context",) if words.get("gpu") is not None else ())}
    return {name: value for name, value in values.items() if name not in beside}


def placed(spec: ModelSpec, values: dict[str, Any]) -> ModelSpec:
    """Return a spec with fields replaced by arrays or symbols, without validation."""
    from paramcalc.spelling import stated_inside

    data = spec.model_dump(exclude_unset=True)
    for name, value in values.items():
        if name in DEPLOYMENT:
            continue
        if "." not in name and data.get(name) is None:
            ways = [f"{place}{name}" for place, _ in stated_inside(data, name)] or [name]
        else:
            ways = [name]
        for way in ways:
            spec = _put(spec, way.split("."), value)
    return spec


def _put(section: Any, way: list[str], value: Any) -> Any:
    if len(way) == 1:
        return section.model_copy(update={way[0]: value})
    child = getattr(section, way[0], None)
    if child is None or (isinstance(child, tuple) and not _is_place(way[1], len(child))):
        raise InputError(
            f"{'.'.join(way)}: there is no section {way[0]} to set it in; check the name"
        )
    if isinstance(child, tuple):
        inner = _put(child[int(way[1])], way[2:], value)
        child = (*child[: int(way[1])], inner, *child[int(way[1]) + 1 :])
    else:
        child = _put(child, way[1:], value)
    return section.model_copy(update={way[0]: child})


def _is_place(text: str, size: int) -> bool:
    return text.isdecimal() and int(text) < size
