"""Figures: what a planner is told, each with its unit and how it is known."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.quantities.catalogue import Known

GIB = 2**30
MICRO = 10**6
"""Micro-dollars in a dollar: money is an integer."""


def exact_dollars(micro: int) -> str:
    """Return a price as dollars with every digit there is, two or more: 2.50, 0.000001."""
    whole, rest = divmod(micro, MICRO)
    return f"{whole:,}.{f'{rest:06d}'.rstrip('0'):0<2}"


class Figure(NamedTuple):
    """One line of an answer.

    ``value`` is an integer in ``unit`` (bytes, tokens, requests, GPUs, FLOPs, microseconds,
    microdollars, watt-hours, ppm for a share), or None where it is not known (a price that nobody
    gave). ``why`` is the rule or the source in a few words.
    """

    key: str
    label: str
    value: int | None
    unit: str
    known: Known
    why: str = ""


class Group(NamedTuple):
    """Figures under a title; ``total`` names the figures that are sums."""

    title: str
    figures: tuple[Figure, ...]
    total: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
