"""Accelerators on the screen and in files: a list, or one with the source of each figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paramcalc.deploy import hardware
from paramcalc.deploy.figures import exact_dollars
from paramcalc.deploy.hardware import FORMATS, Accelerator, Source
from paramcalc.errors import InputError
from paramcalc.quantities.catalogue import Known
from paramcalc.views.tables import Cell, Section, Size


def chosen(words: Sequence[str], files: Sequence[str]) -> tuple[list[Accelerator], bool]:
    """Return the accelerators that words ask for, and whether they name exactly one.

    Raises ``InputError`` if there is none.
    """
    if words:
        try:
            return [hardware.find("-".join(words), files)], True
        except InputError as error:
            unknown = error
    units = hardware.all(files)
    found = [unit for unit in units if all(_has(unit, word) for word in words)]
    if words and not found:
        raise unknown
    return found, bool(words) and len(found) == 1


def _has(unit: Accelerator, word: str) -> bool:
    text = " ".join([unit.name, unit.label, unit.vendor, unit.unit, *unit.aliases])
    return word.lower() in text.lower()


def record(unit: Accelerator) -> dict[str, Any]:
    """Return an accelerator with full names and raw integers, and its sources by figure."""
    sources = {name: source._asdict() for name, source in unit.sources.items()}
    return flat(unit) | {"aliases": list(unit.aliases), "sources": sources}


def flat(unit: Accelerator) -> dict[str, Any]:
    """Return an accelerator as one row: raw integers, None where nothing is known."""
    return {
        "name": unit.name,
        "label": unit.label,
        "aliases": " ".join(unit.aliases),
        "vendor": unit.vendor,
        "unit": unit.unit,
        "memory_bytes": unit.memory_bytes,
        "visible_bytes": unit.visible_bytes,
        "bandwidth_bytes_per_second": unit.bandwidth,
        **{f"peak_{name}_flops_per_second": unit.peaks.get(name) for name in FORMATS},
        "link_bytes_per_second": unit.link_bandwidth,
        "link_one_way_bytes_per_second": unit.link_one_way,
        "link_kind": unit.link_kind,
        "watts": unit.watts,
        "price_per_hour_micro_dollars": unit.price_per_hour_micro,
        "note": unit.note,
    }


def raw(units: list[Accelerator]) -> Section:
    """Return the rows as a table of full names and raw integers."""
    rows = [flat(unit) for unit in units]
    table = Section(
        f"{len(units)} accelerators",
        [(name, "left" if isinstance(value, str) else "right") for name, value in rows[0].items()],
    )
    for row in rows:
        table.add(*row.values())
    return table


def listing(units: list[Accelerator]) -> Section:
    """Return the list as a person reads it, within 80 columns."""
    priced = any(unit.price_per_hour_micro for unit in units)
    heads = ["GB", "GiB", "TB/s", "16-bit", "fp8", "fp4", "GB/s", "W"]
    table = Section(
        f"{len(units)} accelerators",
        [
            ("", "left"),
            *((head, "right") for head in heads),
            ("$/h", "right") if priced else ("unit", "left"),
        ],
    )
    for unit in units:
        wide = unit.peaks.get("bf16", unit.peaks.get("fp16"))
        table.add(
            unit.name,
            f"{unit.memory_bytes / 10**9:.1f}",
            f"{unit.memory_bytes / 2**30:.0f}",
            f"{unit.bandwidth / 10**12:.2f}",
            _tera(wide),
            _tera(unit.peaks.get("fp8")),
            _tera(unit.peaks.get("fp4")),
            None if unit.link_bandwidth is None else f"{unit.link_bandwidth / 10**9:,.0f}",
            unit.watts,
            _priced(unit) if priced else unit.unit,
        )
    table.notes += [
        "GB and GiB: memory installed. TB/s: its bandwidth. GB/s: links, both ways together.",
        "16-bit, fp8, fp4: dense TFLOP/s (never 2:4 sparse); 16-bit is BF16, or FP16 without it.",
        "paramcalc hardware NAME shows one with the source of each figure.",
    ]
    return table


def _tera(flops: int | None) -> str | None:
    return None if flops is None else f"{flops / 10**12:,.0f}"


def _priced(unit: Accelerator) -> str | None:
    price = unit.price_per_hour_micro
    return None if price is None else exact_dollars(price)


def words(unit: Accelerator, files: Sequence[str]) -> list[str]:
    """Return what describes an accelerator under its title, and those an alias might mean too."""
    other = [f"also {', '.join(unit.aliases)}"] if unit.aliases else []
    near = [
        near.name
        for near in hardware.all(files)
        if near != unit and any(near.name.startswith(f"{alias}-") for alias in unit.aliases)
    ]
    return [
        unit.name,
        f"one {unit.unit}",
        *other,
        *([f"others: {', '.join(near)}"] if near else []),
    ]


def cells(unit: Accelerator, *, raw: bool) -> Section:
    """Return one accelerator's figures, each with the number of its source in the notes.

    ``raw`` gives plain integers with their unit in place of a person's.
    """
    sources = list(dict.fromkeys(unit.sources.values()))
    measures = [("unit", "left")] if raw else []
    table = Section(
        "Figures",
        [("", "left"), ("value", "right"), *measures, ("known", "left"), ("source", "left")],
    )
    for name, label, value, measure in _figures(unit):
        source = unit.sources.get(name)
        cited = f"[{sources.index(source) + 1}]" if source else None
        shown: Cell = value if raw else _person(value, measure)
        table.add(label, shown, *([measure] if raw else []), _known(source), cited)
    if unit.note:
        table.notes.append(unit.note)
    if not unit.peaks:
        table.notes.append("No rates by format are published.")
    table.notes += [f"[{number}] {_cite(source)}" for number, source in enumerate(sources, 1)]
    return table


def _known(source: Source | None) -> Known:
    """A published figure is a measured one; what a person's own file states is assumed."""
    return "derived" if source is None else source.known


def _figures(unit: Accelerator) -> list[tuple[str, str, int, str]]:
    """Name in the sources, label, value and unit of each figure that is known."""
    every = [
        ("memory", "memory", unit.memory_bytes, "bytes"),
        ("visible", "memory that software sees", unit.visible_bytes, "bytes"),
        ("bandwidth", "memory bandwidth", unit.bandwidth, "bytes/s"),
        *((f"peaks.{name}", f"{name}, dense", unit.peaks.get(name), "FLOP/s") for name in FORMATS),
        ("link", f"{unit.link_kind or 'link'}, both ways", unit.link_bandwidth, "bytes/s"),
        ("", "one way", unit.link_one_way, "bytes/s"),
        ("watts", "power", unit.watts, "W"),
        ("price_per_hour", "price", unit.price_per_hour_micro, "micro-dollars/h"),
    ]
    return [
        (name, label, value, measure)
        for name, label, value, measure in every
        if value is not None and (name != "visible" or name in unit.sources)
    ]


def _person(value: int, measure: str) -> Cell:
    if measure == "bytes":
        return Size(value)
    if measure == "micro-dollars/h":
        return f"${exact_dollars(value)}/h"
    if measure == "W":
        return f"{value:,} W"
    kind = "FLOP/s" if measure == "FLOP/s" else "B/s"
    power, prefix = (12, "T") if value >= 10**12 else (9, "G")
    digits = f"{value / 10**power:,.3f}".rstrip("0").rstrip(".")
    return f"{digits} {prefix}{kind}"


def _cite(source: Source) -> str:
    return ", ".join(part for part in source if part)
