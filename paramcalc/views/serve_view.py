"""The screen, the record and the rows of ``paramcalc serve``."""

from __future__ import annotations

from typing import Any

from paramcalc.deploy import serving
from paramcalc.deploy.serving import Point, Service
from paramcalc.views import figures_view
from paramcalc.views.tables import Section, Size


def headline(service: Service) -> str:
    """Return the answer in a line."""
    layout = service.deployment.layout
    many = f"{layout.gpus} × " if layout.gpus > 1 else ""
    first = figures_view.duration(service.first_token // 1000)
    return (
        f"{service.deployment.model.name} on {many}{service.gpu.name}: first token {first}, "
        f"{10**9 // service.step_time:,} tokens/s a request"
    )


def words(service: Service) -> list[str]:
    """Return what was asked and assumed, in short."""
    d, machine = service.deployment, service.machine
    return [
        d.layout.text(),
        f"weights {d.format.name}",
        f"cache {d.kv_format.name}",
        f"assumed: {machine.flops_percent}% of FLOP/s, {machine.bandwidth_percent}% of bandwidth",
    ]


def sections(service: Service) -> list[Section]:
    """Return the tables of the screen."""
    return [
        *figures_view.sections(serving.groups(service)),
        _points("Decode against batch", serving.against_batch(service), service),
        _points("Decode against context", serving.against_context(service), service),
    ]


def _points(title: str, points: list[Point], service: Service) -> Section:
    columns = [
        ("batch", "right"),
        ("context", "right"),
        ("step", "right"),
        ("tok/s a request", "right"),
        ("tok/s a GPU", "right"),
        ("bound by", "left"),
        ("", "left"),
    ]
    section = Section(title, columns)
    asked = (service.work.batch, service.work.context)
    for p in points:
        section.add(
            p.batch,
            p.context,
            figures_view.duration(p.step_microseconds),
            p.tokens_per_second_request,
            p.tokens_per_second_gpu,
            p.bound,
            "" if p.fits else "does not fit",
            strong=(p.batch, p.context) == asked,
        )
    section.notes.append("context: the mean of a sequence while it is written")
    return section


def record(service: Service) -> dict[str, Any]:
    """Return the answer for a machine: raw integers under stable names."""
    d, machine = service.deployment, service.machine
    return {
        "model": d.model.name,
        "gpu": service.gpu.name,
        "layout": {n: getattr(d.layout, n) for n in ("tp", "pp", "ep", "dp")},
        "gpus": d.layout.gpus,
        "dtype": d.format.name,
        "kv_dtype": d.kv_format.name,
        "prompt": service.work.prompt,
        "output": service.work.output,
        "batch": service.work.batch,
        "flops_efficiency_percent": machine.flops_percent,
        "bandwidth_efficiency_percent": machine.bandwidth_percent,
        "hop_nanoseconds": machine.hop,
        "price_per_hour_micro": service.gpu.price_per_hour_micro,
        "fits": service.fits,
        "bound": service.bound,
        "figures": figures_view.record(serving.groups(service)),
        "against_batch": [p._asdict() for p in serving.against_batch(service)],
        "against_context": [p._asdict() for p in serving.against_context(service)],
    }


def rows(service: Service) -> list[dict[str, Any]]:
    """Return the figures as CSV rows."""
    return figures_view.rows(serving.groups(service))


def notes(service: Service) -> list[str]:
    """Return what to know beside the answer."""
    found = []
    d, work = service.deployment, service.work
    own = d.model.spec.context
    if own is not None and work.longest.context > own:
        found.append(f"prompt + output = {work.longest.context:,}: beyond the model's own {own:,}")
    if not service.fits:
        gap = d.need(work.longest) - d.budget(service.gpu.visible_bytes)
        found.append(f"it does not fit: {Size(gap, brief=True)} missing; see paramcalc fit")
    if service.machine.link is None and d.layout.tp > 1:
        found.append(f"{service.gpu.name} has no known link: exchange is its hops alone")
    return found
