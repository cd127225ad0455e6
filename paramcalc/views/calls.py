"""Calls: what the commands answer, asked from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from paramcalc.errors import InputError, did_you_mean
from paramcalc.model import Model
from paramcalc.quantities.asked import whole
from paramcalc.sources.loading import load
from paramcalc.views.result import Result

if TYPE_CHECKING:
    from paramcalc.deploy.hardware import Accelerator
    from paramcalc.deploy.parallel import Layout

SHOWN = 20
"""Rows of a grid that are shown; a frame has all."""
MOST_CELLS = 500_000_000
_OPTIONS = {"layers": "n_layers"}
"""Axes that the command line calls otherwise than a specification."""
Value = str | int | bool | Iterable[str | int | bool]


def report(
    model: str | Model, *, context: int | None = None, batch: int = 1, kv_dtype: str = "bf16"
) -> Result:
    """Return what ``paramcalc MODEL`` shows. Raises ``InputError``."""
    from paramcalc.views import record
    from paramcalc.views.report import Report
    from paramcalc.views.summary import headline, words

    shown = _model(model)
    if context is not None:
        shown = shown.with_(context=whole("context", context, 1))
    found = Report(shown, None, whole("batch", batch, 1), kv_dtype)
    return Result(
        found.sections(),
        _columns(record.rows(found)),
        title=headline(shown, None),
        words=words(shown),
    )


def compare(
    *models: str | Model, context: int | None = None, batch: int = 1, kv_dtype: str = "bf16"
) -> Result:
    """Return what ``paramcalc compare`` shows, all models in one table. Raises ``InputError``."""
    from paramcalc import formats
    from paramcalc.views import comparison

    if len(models) < 2:
        raise InputError(f"models = {len(models)}: a comparison needs two or more; name another")
    loaded = [_model(model) for model in models]
    n = None if context is None else whole("context", context, 1)
    bits = formats.kv_format(kv_dtype).bits
    found = comparison.records(loaded, n, whole("batch", batch, 1), bits)
    width = 20 * (len(models) + 2)
    return Result(comparison.sections(loaded, found, context=n, width=width), _columns(found))


def grid(
    models: str | Model | Iterable[str | Model] = "llama3-8b",
    *,
    columns: Iterable[str] = (),
    where: str | Iterable[str] = (),
    by: str | None = None,
    top: int | None = None,
    descending: bool = False,
    pareto: Iterable[str] = (),
    hardware: Iterable[str] = (),
    price: str | float | None = None,
    **axes: Value,
) -> Result:
    """Return the rows of ``paramcalc sweep``: every combination of the axes that exists.

    An axis is a field by its full or short name, ``batch``, ``dtype``, ``kv_dtype``, ``gpu``,
    ``gpus`` or ``tp``; its values are a list, or a text as on the command line (``"16:96:8"``).
    Raises ``InputError``, also for an answer too large to be held: ``paramcalc sweep --out`` writes
    those.
    """
    from paramcalc.sweep.request import Plan, Request
    from paramcalc.views import sweep_view

    given = [models] if isinstance(models, str | Model) else list(models)
    if (top is None) != (by is None):
        raise InputError("top and by: one needs the other; as top=20, by='params'")
    request = Request(
        models=tuple(model.name if isinstance(model, Model) else model for model in given),
        axes=tuple((_OPTIONS.get(name, name), _typed(value)) for name, value in axes.items()),
        columns=tuple(columns),
        where=(where,) if isinstance(where, str) else tuple(where),
        top=None if top is None else whole("top", top, 1),
        by=by,
        descending=descending,
        pareto=tuple(pareto),
        hardware=tuple(hardware),
        price=None if price is None else str(price),
    )
    plan = Plan(request)
    plan.models = [_model(model) for model in given]
    if not plan.rows:
        reasons = "; ".join(f"{why}: {n:,}" for why, n in plan.dropped().items())
        raise InputError(f"grid: no possible shape ({reasons or 'an axis is empty'}); change it")
    found = sweep_view.whole_columns(plan, MOST_CELLS)
    size = len(next(iter(found.values())))
    table = Result([], found)
    first = Result([], {name: column[:SHOWN] for name, column in found.items()}).rows
    rows = [tuple(row.values()) for row in first]
    table.sections = [sweep_view.section(plan, rows, size, more="to_pandas() has them")]
    return table


def fit(
    model: str | Model,
    gpu: str,
    *,
    gpus: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int = 1,
    dp: int = 1,
    context: int | None = None,
    batch: int = 1,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    kinds: Iterable[str] = (),
    price: str | float | None = None,
    hardware: Sequence[str] = (),
) -> Result:
    """Return what ``paramcalc fit`` shows; ``kinds`` are GPUs whose fewest are listed.

    Raises ``InputError``.
    """
    from paramcalc import formats
    from paramcalc.deploy import fitting
    from paramcalc.deploy.engine import for_gpu
    from paramcalc.deploy.fit import Deployment, Load
    from paramcalc.views import fit_view

    shown, kind = _model(model), _gpu(gpu, hardware, price)
    layout = _layout(shown, gpus, tp, pp, ep, dp)
    deployment = Deployment(shown, layout, dtype or shown.released_format, kv_dtype, for_gpu(kind))
    formats.compute_format(deployment.format, kind.peaks or None)  # refuses a GPU without it
    n = shown.context if context is None else whole("context", context, 1)
    found = fitting.Fit(deployment, kind, Load(n, whole("batch", batch, 1)))
    listed = [_gpu(name, hardware, None) for name in kinds]
    smallest = fitting.smallest(found, listed)
    answer = fit_view.Answer(found, smallest, len(listed) - len(smallest))
    return Result(
        fit_view.sections(answer),
        _columns(fit_view.rows(answer)),
        title=fit_view.headline(found),
        words=fit_view.words(found),
        notes=fit_view.notes(found),
    )


def serve(
    model: str | Model,
    gpu: str,
    *,
    gpus: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    ep: int = 1,
    dp: int = 1,
    prompt: int = 1024,
    output: int = 256,
    batch: int = 16,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    flops_percent: int = 60,
    bandwidth_percent: int = 80,
    hop_nanoseconds: int = 10_000,
    price: str | float | None = None,
    hardware: Sequence[str] = (),
) -> Result:
    """Return what ``paramcalc serve`` shows. Raises ``InputError``."""
    from paramcalc.deploy.engine import for_gpu
    from paramcalc.deploy.fit import Deployment
    from paramcalc.deploy.serving import Service, Workload, machine
    from paramcalc.views import serve_view

    shown, kind = _model(model), _gpu(gpu, hardware, price)
    layout = _layout(shown, gpus, tp, pp, ep, dp)
    deployment = Deployment(shown, layout, dtype or shown.released_format, kv_dtype, for_gpu(kind))
    for name, share in (("flops", flops_percent), ("bandwidth", bandwidth_percent)):
        if whole(f"{name}_percent", share, 1) > 100:
            raise InputError(f"{name}_percent = {share}: must be at most 100; lower it")
    speed = machine(
        kind,
        deployment.format,
        flops_percent,
        bandwidth_percent,
        whole("hop_nanoseconds", hop_nanoseconds, 0),
    )
    service = Service(deployment, kind, speed, Workload(prompt, output, batch))
    return Result(
        serve_view.sections(service),
        _columns(serve_view.rows(service)),
        title=serve_view.headline(service),
        words=serve_view.words(service),
        notes=serve_view.notes(service),
    )


def train(
    model: str | Model,
    gpu: str,
    *,
    tokens: int | None = None,
    gpus: int | None = None,
    tp: int | None = None,
    pp: int | None = None,
    dp: int | None = None,
    mfu: Fraction | None = None,
    price: str | float | None = None,
    hardware: Sequence[str] = (),
    **recipe: Any,
) -> Result:
    """Return what ``paramcalc train`` shows; ``recipe`` are fields of ``deploy.recipe.Recipe``, the
    optimizer by its name too. Raises ``InputError``."""
    from paramcalc.deploy import optimizers
    from paramcalc.deploy.parallel import Layout
    from paramcalc.deploy.recipe import Recipe
    from paramcalc.deploy.training import Plan
    from paramcalc.deploy.training_fit import chosen
    from paramcalc.deploy.training_run import Run
    from paramcalc.views import train_view

    shown, kind = _model(model), _gpu(gpu, hardware, price)
    for name in recipe:
        if name not in Recipe._fields:
            near = did_you_mean(name, Recipe._fields) or f"; there are {', '.join(Recipe._fields)}"
            raise InputError(f"{name}: no setting of a recipe{near}")
    if isinstance(recipe.get("optimizer"), str):
        recipe["optimizer"] = optimizers.find(recipe["optimizer"])
    how = Recipe(**recipe)
    stated = {"tp": tp, "pp": pp, "dp": dp}
    if gpus is not None and not any(stated.values()):
        plan = chosen(shown, whole("gpus", gpus, 1), Layout(), how, kind.visible_bytes)
    else:
        plan = Plan(shown, _stated(gpus, stated), how)
    answer = train_view.Answer(Run(plan, kind, tokens, mfu))
    return Result(
        train_view.sections(answer),
        _columns(train_view.rows(answer)),
        title=train_view.headline(answer),
        words=train_view.words(answer),
        notes=train_view.notes(answer),
    )


def _model(model: str | Model) -> Model:
    return model if isinstance(model, Model) else load(model)


def _gpu(name: str, files: Sequence[str], price: str | float | None) -> Accelerator:
    from paramcalc.deploy import hardware
    from paramcalc.deploy.hardware_file import priced

    found = hardware.find(name, files)
    return found if price is None else priced(found, str(price))


def _layout(
    model: Model, gpus: int | None, tp: int | None, pp: int | None, ep: int, dp: int
) -> Layout:
    """Stated sizes, or what ``fit`` chooses for so many GPUs in ``dp`` replicas."""
    from paramcalc.deploy.choices import chosen

    stated = {"tp": tp, "pp": pp, "dp": dp if dp > 1 else None}
    if gpus is not None and tp is None and pp is None:
        if gpus % whole("dp", dp, 1):
            raise InputError(f"gpus = {gpus}: dp {dp} must divide it; change one of them")
        return chosen(model, whole("gpus", gpus, 1) // dp)._replace(dp=dp, ep=ep)
    return _stated(gpus, stated)._replace(ep=ep)


def _stated(gpus: int | None, sizes: Mapping[str, int | None]) -> Layout:
    """The sizes stated; replicas fill up the GPUs."""
    from paramcalc.deploy.parallel import Layout

    given = {name: whole(name, size, 1) for name, size in sizes.items() if size is not None}
    layout = Layout(**given)
    if gpus is None or gpus == layout.gpus:
        return layout
    if whole("gpus", gpus, 1) % layout.gpus or "dp" in given:
        words = " x ".join(f"{name} {size}" for name, size in given.items())
        raise InputError(f"gpus = {gpus}: {words} is {layout.gpus}; change one of them")
    return layout._replace(dp=gpus // layout.gpus)


def _typed(value: Value) -> str:
    """An axis as it would be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int):
        return str(value)
    return ",".join(map(_typed, value))


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}
