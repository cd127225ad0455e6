"""The list of presets with what a reader compares first."""

from __future__ import annotations

from typing import Any

from paramcalc.errors import InputError, did_you_mean
from paramcalc.model import Model
from paramcalc.sources import presets
from paramcalc.sources.loading import load
from paramcalc.spelling import shown
from paramcalc.views.tables import Section

_SORTS = {
    "name": None,
    "parameters": "params",
    "active": "active_params",
    "context": "context",
    "kv": "kv_bytes_per_token",
}
"""Columns to sort by: the headings, and what each is called in a record."""
_SAME = {"kv bytes": "kv", "kv_bytes": "kv"} | {key: name for name, key in _SORTS.items() if key}
"""Other spellings of them."""


def rows(
    words: list[str], moe: bool | None, low: int | None, high: int | None, by: str
) -> list[dict[str, Any]]:
    """Return one record a preset that fits. Raises ``InputError`` for an unknown ``by``."""
    wanted = by.strip().lower()
    wanted = _SAME.get(wanted, wanted)
    if wanted not in _SORTS:
        near = did_you_mean(wanted, [*_SORTS, *_SAME])
        raise InputError(f"by = {shown(by)}: unknown column{near}; take one of {', '.join(_SORTS)}")
    found: list[dict[str, Any]] = []
    for name in presets.names():
        model = load(name)
        if _fits(model, words, moe, low, high):
            found.append(
                {
                    "name": name,
                    "params": model.params.total,
                    "active_params": model.params.active,
                    "context": model.spec.context,
                    "kv_bytes_per_token": model.memory.kv_bytes_per_token(),
                    "published": model.spec.about.published if model.spec.about else None,
                    "source": model.spec.about.source if model.spec.about else None,
                }
            )
    column = _SORTS[wanted]
    if column is not None:
        found.sort(key=lambda row: int(row[column] or 0))
    return found


def _fits(
    model: Model, words: list[str], moe: bool | None, low: int | None, high: int | None
) -> bool:
    about = model.spec.about
    text = " ".join([model.name, *(about.hub if about else ())]).lower()
    has_experts = any(t.role == "router" for t in model.ledger.tensors)
    total = model.params.total
    return (
        all(word.lower() in text for word in words)
        and moe in (None, has_experts)
        and (low is None or total >= low)
        and (high is None or total <= high)
    )


def section(found: list[dict[str, Any]]) -> Section:
    """Return the records as a table."""
    table = Section(
        f"{len(found)} presets",
        [
            ("", "left"),
            ("parameters", "right"),
            ("active", "right"),
            ("context", "right"),
            ("KV bytes", "right"),
        ],
    )
    for row in found:
        active = row["active_params"] if row["active_params"] != row["params"] else None
        table.add(
            row["name"], row["params"], active, row["context"], row["kv_bytes_per_token"] or None
        )
    table.notes.append("KV bytes: what the first token adds to the cache, in BF16")
    return table
