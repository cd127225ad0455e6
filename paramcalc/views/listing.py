"""A model as lists for a person: its layers by number, its tensors, what a checkpoint stores."""

from __future__ import annotations

from math import prod

from paramcalc.model import Model
from paramcalc.quantities import params
from paramcalc.views.tables import Section


def layers_section(model: Model) -> Section:
    """Return every layer by number, equal neighbours as one row."""
    section = Section(
        "Layers, exact",
        [
            ("", "left"),
            ("kind", "left"),
            ("parameters each", "right"),
            ("active each", "right"),
        ],
    )
    runs: list[tuple[str, int, int, params.LayerKind]] = []
    numbered = sorted(
        (kind.name.split()[0] != "encoder", number, kind)
        for kind in model.params.by_kind
        for span in kind.ranges
        for number in range(*span)
    )
    for _, number, kind in numbered:
        if runs and runs[-1][3] == kind and runs[-1][2] == number - 1:
            runs[-1] = (kind.name, runs[-1][1], number, kind)
        else:
            runs.append((kind.name, number, number, kind))
    for name, first, last, kind in runs:
        label = str(first) if first == last else f"{first} to {last}"
        section.add(label, name, kind.params, kind.active)
    return section


def ledger_section(model: Model) -> Section:
    """Return the ledger itself as a table: one row a tensor."""
    section = Section(
        "Tensors",
        [
            ("", "left"),
            ("shape", "right"),
            ("copies", "right"),
            ("parameters", "right"),
            ("use", "left"),
        ],
        paths=True,
    )
    for t in model.ledger.tensors:
        shape_text = " × ".join(str(size) for size in t.shape)
        section.add(t.name, shape_text, t.copies, t.params, "tied" if params.is_tied(t) else t.use)
    section.add("total", None, None, model.params.total, None, strong=True)
    return section


def stored_section(model: Model) -> Section:
    """Return what a checkpoint holds, fused and stacked as it is: one row a tensor."""
    section = Section(
        "Stored tensors",
        [("", "left"), ("shape", "right"), ("copies", "right"), ("elements", "right")],
        paths=True,
    )
    for t in model.stored:
        shape_text = " × ".join(str(size) for size in t.shape)
        name = f"{t.name} (buffer)" if t.buffer else t.name
        section.add(name, shape_text, t.copies, t.copies * prod(t.shape))
    section.add("parameters", None, None, model.params.total, strong=True)
    return section
