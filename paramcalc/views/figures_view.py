"""Groups of figures as tables for a person and as records for a machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any

from paramcalc import formats
from paramcalc.deploy.figures import MICRO, Figure, Group
from paramcalc.deploy.fitting import FREE
from paramcalc.errors import InputError
from paramcalc.views.tables import Cell, Measure, Section, Size

_SECONDS = ((86_400, "days"), (3_600, "h"), (60, "min"), (1, "s"))


def sections(groups: Iterable[Group]) -> list[Section]:
    """Return a table a group: each figure with its value, how it is known, and why."""
    found = []
    for group in groups:
        section = Section(
            group.title, [("", "left"), ("", "right"), ("known", "left"), ("by", "left")]
        )
        for figure in group.figures:
            section.add(
                figure.label,
                shown(figure),
                figure.known,
                figure.why,
                strong=figure.key in group.total,
            )
        section.notes.extend(group.notes)
        found.append(section)
    return found


def shown(figure: Figure) -> Cell:
    """Return a figure as a person reads it; a missing one is a dash, never a zero."""
    value, unit = figure.value, figure.unit
    if value is None:
        return "—"
    # the label says that bytes are missing, so a person sees how many, without a sign
    plain = abs(value) if figure.key == FREE else value
    return Measure(value, unit, text(plain, unit))


def text(value: int, unit: str) -> str:
    """Return a number in a unit as a person reads it."""
    if unit == "bytes":
        return str(Size(value))
    if unit == "ppm":
        return f"{value / 10_000:.1f}%"
    if unit == "microseconds":
        return duration(value)
    if unit == "microdollars":
        return dollars(value)
    if unit == "watt-hours":
        return scaled(value, "Wh") if value else "<1 Wh"
    if unit in ("FLOPs", "FLOP/s"):
        return scaled(value, unit)
    if unit == "hundredths":
        return _decimal(value, 2)
    if unit == "tokens/s" and value == 0:
        return "<1 tokens/s"
    return f"{value:,} {unit}".strip()


_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z", "Y", "R", "Q")


def scaled(value: int, unit: str) -> str:
    """A number with a prefix and four digits: 989.4 TFLOP/s."""
    power, size = 0, float(value)
    while abs(size) >= 1000 and power < len(_PREFIXES) - 1:
        size, power = size / 1000, power + 1
    digits = f"{size:,.0f}" if abs(size) >= 1000 else f"{size:.4g}"
    return f"{digits} {_PREFIXES[power]}{unit}"


def _decimal(value: int, places: int) -> str:
    """An integer of 10^-places as a decimal, thousands grouped; no float holds all of them."""
    whole, rest = divmod(abs(value), 10**places)
    return f"{'-' * (value < 0)}{whole:,}.{rest:0{places}d}"


def worked(fmt: formats.AnyFormat, has: Collection[str]) -> str:
    """Return a format of weights, with the arithmetic that it is unpacked to where that differs."""
    own = fmt.compute[0]
    try:
        used = formats.compute_format(fmt, has)
    except InputError:  # no peak is published: memory can still be answered
        return fmt.name
    return fmt.name if used in (own, fmt.name) else f"{fmt.name} (unpacked to {used})"


def duration(microseconds: int) -> str:
    """Return a time in the largest unit that it reaches: 12.3 days, 4.56 ms."""
    for size, name in _SECONDS:
        if microseconds >= size * MICRO:
            return f"{_decimal(round(Fraction(microseconds, size * MICRO // 100)), 2)} {name}"
    return f"{_decimal(microseconds, 3) if microseconds else '<0.001'} ms"


def dollars(micro: int) -> str:
    """Return micro-dollars as dollars: whole cents, hundredths of one below a dollar, and all there
    are below a cent."""
    if abs(micro) >= MICRO:
        return f"${_decimal(round(Fraction(micro, 10**4)), 2)}"
    if abs(micro) >= MICRO // 100:
        return f"${_decimal(round(Fraction(micro, 100)), 4)}"
    return f"${_decimal(micro, 6).rstrip('0').rstrip('.')}"


def record(groups: Iterable[Group]) -> dict[str, dict[str, Any]]:
    """Return every figure by its stable key, with raw integers."""
    return {figure.key: _plain(figure) for group in groups for figure in group.figures}


def _plain(figure: Figure) -> dict[str, Any]:
    return {
        "label": figure.label,
        "value": figure.value,
        "unit": figure.unit,
        "known": figure.known,
        "by": figure.why,
    }


def rows(groups: Iterable[Group]) -> list[dict[str, Any]]:
    """Return one row a figure for CSV: group, key, label, value, unit, known, by."""
    return [
        {"group": group.title, "key": figure.key, **_plain(figure)}
        for group in groups
        for figure in group.figures
    ]
