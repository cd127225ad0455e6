"""Calls: what the commands answer, asked from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from paramcalc.errors import InputError, did_you_mean
from paramcalc.model import Model
from paramcalc.spelling import shown as _shown
from paramcalc.views import arguments as args
from paramcalc.views.arguments import Size, Texts, Value
from paramcalc.views.result import Result

if TYPE_CHECKING:
    from paramcalc.deploy.parallel import Layout

SHOWN = 20
"""Rows of a grid that are shown; a frame has all."""
MOST_CELLS = 500_000_000
_OPTIONS = {"layers": "n_layers"}
"""Axes that the command line calls otherwise than a specification."""


def report(
    model: str | Model, *, context: Size | None = None, batch: Size = 1, kv_dtype: str = "bf16"
) -> Result:
    """Return what ``paramcalc MODEL`` shows. Raises ``InputError``."""
    from paramcalc.views import record
    from paramcalc.views.report import Report
    from paramcalc.views.summary import headline, words

    shown = args.model(model)
    if context is not None:
        shown = shown.with_(context=args.size("context", context))
    found = Report(shown, None, args.size("batch", batch), kv_dtype)
    return Result(
        found.sections(),
        _columns(record.rows(found)),
        title=headline(shown, None),
        words=words(shown),
    )


def compare(
    *models: str | Model, context: Size | None = None, batch: Size = 1, kv_dtype: str = "bf16"
) -> Result:
    """Return what ``paramcalc compare`` shows, all models in one table. Raises ``InputError``."""
    from paramcalc import formats
    from paramcalc.views import comparison

    if len(models) < 2:
        raise InputError(f"models = {len(models)}: a comparison needs two or more; name another")
    loaded = [args.model(model) for model in models]
    n = args.optional("context", context)
    bits = formats.kv_format(kv_dtype).bits
    found = comparison.records(loaded, n, args.size("batch", batch), bits)
    width = 20 * (len(models) + 2)
    return Result(comparison.sections(loaded, found, context=n, width=width), _columns(found))


def grid(
    models: str | Model | Iterable[str | Model] = "llama3-8b",
    *,
    columns: Texts = (),
    where: Texts = (),
    by: str | None = None,
    top: Size | None = None,
    descending: bool = False,
    pareto: Texts = (),
    hardware: Texts = (),
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

    given = args.models(models)
    if (top is None) != (by is None):
        raise InputError("top and by: one needs the other; as top=20, by='params'")
    if by is not None and not isinstance(by, str):
        raise InputError(f"by = {_shown(by)}: must be the name of one column")
    request = Request(
        models=tuple(model.name if isinstance(model, Model) else model for model in given),
        axes=tuple(
            (_OPTIONS.get(name, name), args.axis(name, value)) for name, value in axes.items()
        ),
        columns=args.texts("columns", columns),
        where=args.texts("where", where),
        top=args.optional("top", top),
        by=by,
        descending=descending,
        pareto=args.texts("pareto", pareto),
        hardware=args.texts("hardware", hardware),
        price=None if price is None else str(price),
    )
    plan = Plan(request)
    plan.models = [args.model(model) for model in given]
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
    gpus: Size | None = None,
    tp: Size | None = None,
    pp: Size | None = None,
    ep: Size = 1,
    dp: Size = 1,
    context: Size | None = None,
    batch: Size = 1,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    kinds: Texts = (),
    price: str | float | None = None,
    hardware: Texts = (),
) -> Result:
    """Return what ``paramcalc fit`` shows; ``kinds`` are GPUs whose fewest are listed.

    Raises ``InputError``.
    """
    from paramcalc import formats
    from paramcalc.deploy import fitting
    from paramcalc.deploy.engine import for_gpu
    from paramcalc.deploy.fit import Deployment, Load
    from paramcalc.views import fit_view

    files = args.texts("hardware", hardware)
    shown, kind = args.model(model), args.gpu(gpu, files, price)
    layout = _layout(shown, gpus, tp, pp, ep, dp)
    deployment = Deployment(shown, layout, dtype or shown.released_format, kv_dtype, for_gpu(kind))
    formats.compute_format(deployment.format, kind.peaks or None)  # refuses a GPU without it
    n = args.optional("context", context) or shown.context
    found = fitting.Fit(deployment, kind, Load(n, args.size("batch", batch)))
    listed = [args.gpu(name, files, None) for name in args.texts("kinds", kinds)]
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
    gpus: Size | None = None,
    tp: Size | None = None,
    pp: Size | None = None,
    ep: Size = 1,
    dp: Size = 1,
    prompt: Size = 1024,
    output: Size = 256,
    batch: Size = 16,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    flops_percent: int = 60,
    bandwidth_percent: int = 80,
    hop_nanoseconds: int = 10_000,
    price: str | float | None = None,
    hardware: Texts = (),
) -> Result:
    """Return what ``paramcalc serve`` shows. Raises ``InputError``."""
    from paramcalc.deploy.engine import for_gpu
    from paramcalc.deploy.fit import Deployment
    from paramcalc.deploy.serving import Service, Workload, machine
    from paramcalc.views import serve_view

    files = args.texts("hardware", hardware)
    shown, kind = args.model(model), args.gpu(gpu, files, price)
    layout = _layout(shown, gpus, tp, pp, ep, dp)
    deployment = Deployment(shown, layout, dtype or shown.released_format, kv_dtype, for_gpu(kind))
    speed = machine(
        kind,
        deployment.format,
        flops_percent,
        bandwidth_percent,
        args.size("hop_nanoseconds", hop_nanoseconds, 0),
    )
    work = Workload(
        args.size("prompt", prompt), args.size("output", output), args.size("batch", batch)
    )
    service = Service(deployment, kind, speed, work)
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
    tokens: Size | None = None,
    gpus: Size | None = None,
    tp: Size | None = None,
    pp: Size | None = None,
    dp: Size | None = None,
    mfu: Fraction | float | None = None,
    price: str | float | None = None,
    hardware: Texts = (),
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

    files = args.texts("hardware", hardware)
    shown, kind = args.model(model), args.gpu(gpu, files, price)
    for name in recipe:
        if name not in Recipe._fields:
            near = did_you_mean(name, Recipe._fields) or f"; there are {', '.join(Recipe._fields)}"
            raise InputError(f"{name}: no setting of a recipe{near}")
    if isinstance(recipe.get("optimizer"), str):
        recipe["optimizer"] = optimizers.find(recipe["optimizer"])
    for name in ("seq", "micro_batch", "global_batch"):
        if isinstance(recipe.get(name), str):
            recipe[name] = args.size(name, recipe[name], tokens=name == "seq")
    how = Recipe(**recipe)
    stated = {"tp": tp, "pp": pp, "dp": dp}
    if gpus is not None and tp is pp is dp is None:
        plan = chosen(shown, args.size("gpus", gpus), Layout(), how, kind.visible_bytes)
    else:
        plan = Plan(shown, _stated(gpus, stated), how)
    answer = train_view.Answer(Run(plan, kind, args.optional("tokens", tokens), mfu))
    return Result(
        train_view.sections(answer),
        _columns(train_view.rows(answer)),
        title=train_view.headline(answer),
        words=train_view.words(answer),
        notes=train_view.notes(answer),
    )


def _layout(
    model: Model, gpus: Size | None, tp: Size | None, pp: Size | None, ep: Size, dp: Size
) -> Layout:
    """Stated sizes, or what ``fit`` chooses for so many GPUs in ``dp`` replicas."""
    from paramcalc.deploy.choices import chosen

    replicas, experts = args.size("dp", dp), args.size("ep", ep)
    if gpus is not None and tp is None and pp is None:
        total = args.size("gpus", gpus)
        if total % replicas:
            raise InputError(f"gpus = {total}: dp {replicas} must divide it; change one of them")
        return chosen(model, total // replicas)._replace(dp=replicas, ep=experts)
    stated = {"tp": tp, "pp": pp, "dp": replicas if replicas > 1 else None}
    return _stated(gpus, stated)._replace(ep=experts)


def _stated(gpus: Size | None, sizes: Mapping[str, Size | None]) -> Layout:
    """The sizes stated; replicas fill up the GPUs."""
    from paramcalc.deploy.parallel import Layout

    given = {name: args.size(name, size) for name, size in sizes.items() if size is not None}
    layout, total = Layout(**given), args.optional("gpus", gpus)
    if total is None or total == layout.gpus:
        return layout
    if total % layout.gpus or "dp" in given:
        words = " x ".join(f"{name} {size}" for name, size in given.items())
        raise InputError(f"gpus = {total}: {words} is {layout.gpus}; change one of them")
    return layout._replace(dp=total // layout.gpus)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}
