"""The screen, the record and the rows of ``paramcalc fit``."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.deploy.fitting import Fit, Smallest, groups
from paramcalc.views import figures_view
from paramcalc.views.tables import Section, Size


class Answer(NamedTuple):
    """A fit, and the fewest GPUs of each kind."""

    fit: Fit
    smallest: list[Smallest]


def headline(fit: Fit) -> str:
    """Return the verdict in a line."""
    d = fit.deployment
    verdict = "fits" if fit.fits else "does not fit"
    room = f"{Size(abs(fit.gap), brief=True)} {'to spare' if fit.fits else 'missing'}"
    many = f"{d.layout.gpus} × " if d.layout.gpus > 1 else ""
    return f"{d.model.name}  {verdict} on {many}{fit.gpu.name}: {room}"


def words(fit: Fit) -> list[str]:
    """Return what was asked, in short."""
    d, load = fit.deployment, fit.load
    return [
        d.layout.text(),
        f"weights {d.format.name}",
        f"cache {d.kv_format.name}",
        f"batch {load.batch:,}",
        f"{load.context:,} tokens each",
    ]


def sections(answer: Answer) -> list[Section]:
    """Return the tables of the screen."""
    found = figures_view.sections(groups(answer.fit))
    changes = answer.fit.changes()
    if not answer.fit.fits:
        section = Section(
            "Any one of these makes it fit", [("", "left"), ("", "left"), ("", "left")]
        )
        for change in changes:
            section.add(change.option, change.value, change.text)
        if not changes:
            section.add("nothing", "", "no single change is enough; combine several")
        found.append(section)
    if answer.smallest:
        found.append(_kinds(answer.smallest))
    return found


def _kinds(smallest: list[Smallest]) -> Section:
    columns = [("", "left"), ("GPUs", "right"), ("as", "left"), ("to spare on each", "right")]
    section = Section("Fewest GPUs of each kind", columns)
    for kind in smallest:
        spare = None if kind.gap is None else Size(kind.gap, brief=True)
        section.add(kind.gpu.name, kind.gpus or "—", kind.layout, spare)
    section.notes.append("powers of two; tensor parallelism within 8, then pipeline stages")
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
            }
            for kind in answer.smallest
        ],
    }


def rows(answer: Answer) -> list[dict[str, Any]]:
    """Return the figures as CSV rows."""
    return figures_view.rows(groups(answer.fit))


def notes(fit: Fit) -> list[str]:
    """Return what to know beside the answer."""
    own = fit.deployment.model.spec.context
    if own is not None and fit.load.context > own:
        return [f"context = {fit.load.context:,}: beyond the model's own {own:,}"]
    return []
