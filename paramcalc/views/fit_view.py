"""The screen, the record and the rows of ``paramcalc fit``."""

from __future__ import annotations

from itertools import groupby
from textwrap import wrap
from typing import Any, NamedTuple

from paramcalc.deploy.fit import NODE, beyond
from paramcalc.deploy.fitting import Fit, Smallest, groups
from paramcalc.formats.mixed import Mixed
from paramcalc.views import figures_view
from paramcalc.views.tables import Section, Size

FEW_KINDS = 12
"""Up to so many kinds of GPU have a row each; more share the row of their number of GPUs."""
NAMES_WIDTH = 52
"""Letters of a line of names."""


class Answer(NamedTuple):
    """A fit, and the fewest GPUs of each kind; ``unfit`` kinds cannot multiply the format."""

    fit: Fit
    smallest: list[Smallest]
    unfit: int = 0


def headline(fit: Fit) -> str:
    """Return the verdict in a line."""
    d = fit.deployment
    verdict = "fits" if fit.fits else "does not fit"
    room = f"{Size(abs(fit.gap), brief=True)} {'to spare' if fit.fits else 'missing'}"
    many = f"{d.layout.gpus:,} × " if d.layout.gpus > 1 else ""
    return f"{d.model.name}  {verdict} on {many}{fit.gpu.name}: {room}"


def words(fit: Fit) -> list[str]:
    """Return what was asked, in short."""
    d, load = fit.deployment, fit.load
    return [
        d.layout.text(),
        f"weights {figures_view.worked(d.format, fit.gpu.peaks)}",
        f"cache {d.kv_format.name}",
        f"batch {load.batch:,}",
        f"{load.context:,} tokens each",
    ]


def sections(answer: Answer, *, whole: bool = False) -> list[Section]:
    """Return the tables of the screen; ``whole`` gives every kind of GPU a row."""
    found = figures_view.sections(groups(answer.fit))
    changes = answer.fit.changes()
    if not answer.fit.fits:
        title = "Any one of these makes it fit, the smallest change first"
        section = Section(title, [("", "left"), ("", "left"), ("", "left")])
        for number, change in enumerate(changes):
            section.add(change.option, change.value, change.text, strong=number == 0)
        if not changes:
            section.add("nothing", "", "no single change is enough; combine several")
        found.append(section)
    if answer.smallest:
        few = whole or len(answer.smallest) <= FEW_KINDS
        section = _kinds(answer.smallest) if few else _counts(answer.smallest)
        section.notes.append(
            f"1 to {NODE}, then whole nodes of {NODE}; tensor parallelism inside a node"
        )
        if answer.unfit:
            name = answer.fit.deployment.format.name
            section.notes.append(f"{answer.unfit} kinds left out, without arithmetic for {name}")
        found.append(section)
    return found


def _kinds(smallest: list[Smallest]) -> Section:
    columns = [("", "left"), ("GPUs", "right"), ("as", "left"), ("to spare on each", "right")]
    priced = any(kind.price is not None for kind in smallest)
    if priced:
        columns.append(("an hour", "right"))
    section = Section("Fewest GPUs of each kind", columns)
    for kind in smallest:
        spare = None if kind.gap is None else Size(kind.gap, brief=True)
        price = None if kind.price is None else figures_view.dollars(kind.price)
        cells = [kind.gpu.name, kind.gpus or "—", kind.layout, spare]
        section.add(*cells, *([price] if priced else []))
    return section


def _counts(smallest: list[Smallest]) -> Section:
    """The kinds by their number of GPUs, the smallest memory first."""
    section = Section("Fewest GPUs of each kind", [("GPUs", "right"), ("as", "left"), ("", "left")])
    for (gpus, layout), kinds in groupby(smallest, key=lambda kind: (kind.gpus, kind.layout)):
        names = ", ".join(kind.gpu.name for kind in kinds)
        first, *rest = wrap(names, NAMES_WIDTH, break_on_hyphens=False)
        section.add(gpus or "—", layout, first)
        for line in rest:
            section.add(None, "", line)
    return section


def record(answer: Answer) -> dict[str, Any]:
    """Return the answer for a machine: raw integers under stable names."""
    fit = answer.fit
    d = fit.deployment
    return {
        "model": d.model.name,
        "gpu": fit.gpu.name,
        "layout": {n: getattr(d.layout, n) for n in ("tp", "pp", "ep", "dp")},
        "gpus": d.layout.gpus,
        "dtype": d.format.name,
        "kv_dtype": d.kv_format.name,
        "context": fit.load.context,
        "batch": fit.load.batch,
        "cost_per_hour": fit.price,
        "fits": fit.fits,
        "gap_bytes": fit.gap,
        "figures": figures_view.record(groups(fit)),
        "changes": [change._asdict() for change in fit.changes()],
        "smallest": [
            {
                "gpu": kind.gpu.name,
                "gpus": kind.gpus,
                "layout": kind.layout or None,
                "gap_bytes": kind.gap,
                "cost_per_hour": kind.price,
            }
            for kind in answer.smallest
        ],
    }


def rows(answer: Answer) -> list[dict[str, Any]]:
    """Return the figures as CSV rows."""
    return figures_view.rows(groups(answer.fit))


def notes(fit: Fit) -> list[str]:
    """Return what to know beside the answer."""
    found = []
    d = fit.deployment
    if over := beyond(d.model.spec, fit.load.context):
        found.append(f"context = {fit.load.context:,}: {over}")
    if not fit.gpu.peaks:
        found.append(
            f"{fit.gpu.name} has no published rates: whether it multiplies {d.format.name} is not"
            " checked"
        )
    if isinstance(d.format, Mixed) and d.layout.gpus > d.layout.dp:
        found.append(
            f"{d.format.name} on several GPUs: each tensor's bytes pro rata, its blocks not cut"
        )
    return found
