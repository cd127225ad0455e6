"""The load of experts: screens with a column a routing, and records with raw integers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from paramcalc.deploy.figures import MICRO, Figure, Group
from paramcalc.deploy.moe_load import DRAWS, MILLIONTHS, Batch, Experts
from paramcalc.views import figures_view
from paramcalc.views.tables import Cell, Section, Share


def record(
    name: str, batch: Batch, found: list[tuple[Experts, tuple[Group, ...]]]
) -> dict[str, Any]:
    """Return everything as raw integers, with how each figure is known."""
    return {
        "model": name,
        "tokens": batch.tokens,
        "block": batch.block,
        "ep": batch.ep,
        "seed": batch.seed,
        "draws": DRAWS,
        "experts": [
            {
                "name": experts.name,
                "groups": [
                    {
                        "title": group.title,
                        "figures": figures_view.record([group]),
                        "notes": list(group.notes),
                    }
                    for group in groups
                ],
            }
            for experts, groups in found
        ],
    }


def rows(found: list[tuple[Experts, tuple[Group, ...]]]) -> list[dict[str, Any]]:
    """Return one row a figure, for CSV."""
    return [
        {"experts": experts.name, **row}
        for experts, groups in found
        for row in figures_view.rows(groups)
    ]


def sections(
    batch: Batch, found: list[tuple[Experts, tuple[Group, ...]]], *, raw: bool
) -> list[Section]:
    """Return the tables of each set of experts; ``raw`` has integers for shares and ratios."""
    return [
        table
        for experts, groups in found
        for table in (
            _given(experts, groups[0], raw),
            _routings(batch, groups[1:], raw),
            _flops(groups[1:]),
        )
    ]


def headline(name: str, batch: Batch) -> str:
    """Return the title: the model and the tokens."""
    return f"{name}  expert load of {batch.tokens:,} tokens"


def _given(experts: Experts, group: Group, raw: bool) -> Section:
    table = Section(
        f"{experts.name}.experts", [("", "left"), ("", "right"), ("", "left"), ("known", "left")]
    )
    for figure in group.figures:
        unit = "" if figure.unit == MILLIONTHS and not raw else figure.unit
        table.add(figure.label, _cell(figure, raw), unit, figure.known)
    table.notes += group.notes
    return table


def _routings(batch: Batch, groups: tuple[Group, ...], raw: bool) -> Section:
    """One column a routing; FLOPs stand in a table of their own."""
    table = Section(
        "One layer",
        [("", "left"), *((group.title, "right") for group in groups), ("known", "left")],
    )
    by_key = [{figure.key: figure for figure in group.figures} for group in groups]
    keys = dict.fromkeys(key for figures in reversed(by_key) for key in figures)
    for key in keys:
        one = next(figures[key] for figures in by_key if key in figures)
        if one.unit != "FLOPs":
            label = f"{one.label} ({one.unit})" if raw and one.unit in ("ppm", MILLIONTHS) else None
            cells = [_cell(figures[key], raw) if key in figures else None for figures in by_key]
            table.add(label or one.label, *cells, one.known)
    table.notes += [f"{group.title}: {note}" for group in groups for note in group.notes]
    table.notes.append(f"dropless: each expert's rows in blocks of {batch.block}")
    table.notes.append(
        f"largest, drawn: mean of {DRAWS} batches, seed {batch.seed}; the rest is expected"
    )
    if batch.ep > 1:
        table.notes.append(f"ranks: {batch.ep}, of consecutive experts, without drops")
    return table


def _flops(groups: tuple[Group, ...]) -> Section:
    table = Section("FLOPs of all layers", [("", "left")])
    first = [figure for figure in groups[0].figures if figure.unit == "FLOPs"]
    table.columns += [(figure.label.partition(",")[0], "right") for figure in first]
    for group in groups:
        table.add(group.title, *(f.value for f in group.figures if f.unit == "FLOPs"))
    return table


def _cell(figure: Figure, raw: bool) -> Cell:
    if figure.value is None or raw:
        return figure.value
    if figure.unit == "ppm":
        return Share(Fraction(figure.value, MICRO))
    return millionths(figure.value) if figure.unit == MILLIONTHS else figure.value


def millionths(value: int) -> str:
    """Return a ratio to three places, or all there are of one below a thousandth."""
    if 0 < value < MICRO // 1000:
        return f"{value / MICRO:.6f}".rstrip("0")
    return f"{value / MICRO:,.3f}"
