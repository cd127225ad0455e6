"""FLOPs under the rules of other tools: one with its words, or all side by side."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from paramcalc.model import Model
from paramcalc.quantities.conventions import CONVENTIONS, Count, count, find, variants
from paramcalc.views.tables import Cell, Section, Share

ALL = "all"
"""What asks for every convention."""


def counts(model: Model, name: str) -> list[Count]:
    """Return a convention and its other forms, or every one for ``all``, at the model's context.

    Raises ``InputError`` for an unknown name.
    """
    names = list(CONVENTIONS) if name == ALL else [find(name).name, *variants(name)]
    return [count(model.ledger, model.context, each) for each in names]


def record(model: Model, name: str) -> dict[str, Any]:
    """Return one convention, with its other forms beside it, or all, as one document."""
    rows = rows_of(model, name)
    head = {"model": model.name, "context": model.context}
    if name == ALL:
        return {**head, "conventions": rows}
    return {**head, **rows[0], "variants": rows[1:]}


def rows_of(model: Model, name: str) -> list[dict[str, Any]]:
    """Return one row a convention: raw integers, full names."""
    return [_row(model, found) for found in counts(model, name)]


def _row(model: Model, found: Count) -> dict[str, Any]:
    rule = found.convention
    known = "exact" if rule.name == "exact" else "derived"
    return {
        "convention": rule.name,
        "source": rule.source,
        "counts": rule.counts,
        "leaves_out": rule.leaves_out,
        "unit": rule.unit,
        "known": "assumed" if model.spec.context is None else known,
        "forward_flops_per_token": found.forward_per_token,
        "forward_flops": found.forward,
        "training_flops_per_token": found.training_per_token,
        "training_flops": found.training,
        "ratio_numerator": found.compared,
        "ratio_denominator": found.exact,
    }


def sections(model: Model, name: str) -> list[Section]:
    """Return a table for a person: each convention's figures, what it counts and leaves out."""
    found = counts(model, name)
    if name == ALL:
        return [_side_by_side(model, found)]
    return [_alone(model, each) for each in found]


def _at(model: Model) -> str:
    known = "assumed" if model.spec.context is None else "derived"
    return f"{model.context:,} tokens, {known}"


def _alone(model: Model, found: Count) -> Section:
    rule = found.convention
    table = Section(
        f"As {rule.name} counts, {_at(model)}",
        [("", "left"), (rule.unit, "right"), ("of exact", "right")],
    )
    table.add("one token: forward", _whole(found.forward_per_token))
    table.add("a sequence: forward", found.forward, _forward_share(model, found))
    if found.training is not None:
        table.add("one token: training", _whole(found.training_per_token))
        table.add("a sequence: training", found.training, _share(found), strong=True)
    table.notes += [
        f"counts: {rule.counts}",
        f"leaves out: {rule.leaves_out}",
        f"source: {rule.source}",
        "one token: the mean over the sequence",
    ]
    return table


def _side_by_side(model: Model, found: list[Count]) -> Section:
    table = Section(
        f"Training FLOPs as other tools count them, {_at(model)}",
        [("", "left"), ("one token", "right"), ("a sequence", "right"), ("of exact", "right")],
    )
    for each in found:
        table.add(
            each.convention.name,
            None if each.training is None else _whole(each.training_per_token),
            each.training,
            _share(each),
            strong=each.convention.name == "exact",
        )
    for each in found:
        if each.training is None:
            table.notes.append(
                f"{each.convention.name}: {each.forward:,} {each.convention.unit} forward, a"
                " multiply-add being 1; no training"
            )
    table.notes.append("one token: the mean over the sequence; exact: the causal sum, windows in")
    table.notes.append("--as NAME says what a rule counts, leaves out, and where it stands")
    return table


def _whole(per_token: int | None) -> Cell:
    return "no integer" if per_token is None else per_token


def _share(found: Count) -> Share | None:
    return None if found.training is None else Share(Fraction(found.training, found.exact))


def _forward_share(model: Model, found: Count) -> Share:
    return Share(Fraction(found.forward, model.flops.prefill()))
