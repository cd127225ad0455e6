"""The screen, the record and the rows of ``paramcalc serve``."""

from __future__ import annotations

from typing import Any

from paramcalc.deploy import serving_figures
from paramcalc.deploy.exchange import spreads
from paramcalc.deploy.fit import NODE, beyond
from paramcalc.deploy.serving import SECOND, Service
from paramcalc.deploy.serving_figures import Point
from paramcalc.numbers import ceil_div
from paramcalc.views import figures_view
from paramcalc.views.tables import Cell, Section, Size


def headline(service: Service) -> str:
    """Return the answer in a line."""
    gpus = service.layout.gpus
    many = f"{gpus:,} × " if gpus > 1 else ""
    first = figures_view.duration(ceil_div(service.first_token, 1000))
    rate = _rate(SECOND // service.step_time)
    room = "" if service.fits else "does not fit; if it did: "
    return (
        f"{service.deployment.model.name} on {many}{service.gpu.name}: {room}first token {first}, "
        f"{rate} tokens/s a request"
    )


def words(service: Service) -> list[str]:
    """Return what was asked and assumed, in short."""
    d, machine = service.deployment, service.machine
    return [
        d.layout.text(),
        f"weights {figures_view.worked(d.format, service.gpu.peaks)}",
        f"cache {d.kv_format.name}",
        f"assumed: {machine.flops_percent}% of FLOP/s, {machine.bandwidth_percent}% of bandwidth",
    ]


def sections(service: Service) -> list[Section]:
    """Return the tables of the screen."""
    batches = _points("batch", serving_figures.against_batch(service))
    prompts = _points("prompt", serving_figures.against_prompt(service))
    batches.notes.append(f"at {service.context:,} tokens, the mean while a sequence is written")
    return [*figures_view.sections(serving_figures.groups(service)), batches, prompts]


def _points(axis: str, points: list[Point]) -> Section:
    """Decode against batch or prompt, with the first token where that changes."""
    priced = any(p.cost_per_million_tokens_micro is not None for p in points)
    names = [axis, *(["first token"] if axis == "prompt" else []), "a request", "a GPU"]
    names += ["1M tokens"] if priced else []
    columns = [(name, "right") for name in names] + [("bound by", "left"), ("", "left")]
    section = Section(f"Decode against {axis}, tokens a second", columns)
    for p in points:
        cells: list[Cell] = [p.batch if axis == "batch" else p.prompt]
        if axis == "prompt":
            cells.append(figures_view.duration(p.first_token_microseconds))
        cells += [_rate(p.tokens_per_second_request), _rate(p.tokens_per_second_gpu)]
        if p.cost_per_million_tokens_micro is not None:
            cells.append(figures_view.dollars(p.cost_per_million_tokens_micro))
        section.add(*cells, p.bound, _mark(p), strong=p.asked)
    return section


def _mark(point: Point) -> str:
    """What to see in a row: that it was asked for, that it does not fit."""
    return ", ".join(["asked"] * point.asked + ["no room"] * (not point.fits))


def _rate(tokens: int) -> str:
    """Whole tokens a second; what is below one is not none."""
    return f"{tokens:,}" if tokens else "<1"


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
        "figures": figures_view.record(serving_figures.groups(service)),
        "against_batch": [p._asdict() for p in serving_figures.against_batch(service)],
        "against_prompt": [p._asdict() for p in serving_figures.against_prompt(service)],
        "notes": notes(service),
    }


def rows(service: Service) -> list[dict[str, Any]]:
    """Return the figures as CSV rows."""
    return figures_view.rows(serving_figures.groups(service))


def notes(service: Service) -> list[str]:
    """Return what to know beside the answer."""
    d, work, layout = service.deployment, service.work, service.layout
    longest = work.longest.context
    found = []
    if not service.has_encoder and (over := beyond(d.model.spec, longest)):
        found.append(f"prompt + output = {longest:,}: {over}")
    if not service.fits:
        gap = d.need(work.longest) - d.budget(service.gpu.visible_bytes)
        found.append(f"it does not fit: {Size(gap, brief=True)} missing; see paramcalc fit")
    if work.batch > service.sampled:
        found.append(f"batch = {work.batch:,}: the engine samples {service.sampled:,}; --max-seqs")
    if work.batch % layout.dp:
        found.append(
            f"batch = {work.batch:,}: does not divide over dp {layout.dp:,}; times are those of a"
            f" replica with {service.replica_batch:,}"
        )
    if service.replica_batch < layout.pp:
        found.append(f"batch = {work.batch:,}: stages idle, pp {layout.pp:,} wants one each")
    together = layout.gpus if spreads(layout) else layout.tp * layout.pp
    if together > 1 and service.machine.link is None:
        found.append(f"{service.gpu.name} has no known link: exchange is its hops alone")
    elif together > NODE:
        found.append(f"{together:,} GPUs exchange as if all were in one node")
    return found
