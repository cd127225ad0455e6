"""Calls: what the commands answer, asked from Python."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from paramcalc.errors import InputError, did_you_mean
from paramcalc.model import Model
from paramcalc.spelling import shown as _shown
from paramcalc.views import arguments as args
from paramcalc.views import settings as st
from paramcalc.views import summary
from paramcalc.views.arguments import Size, Texts, Value
from paramcalc.views.result import Result
from paramcalc.views.settings import Number

if TYPE_CHECKING:
    from paramcalc.deploy.recipe import Recipe

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

    shown = args.model(model)
    if context is not None:
        shown = shown.with_(context=args.size("context", context))
    found = Report(shown, None, args.size("batch", batch), kv_dtype)
    return Result(
        found.sections(),
        _columns(record.rows(found)),
        title=summary.headline(shown, None),
        words=summary.words(shown),
        notes=summary.notes(shown),
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
    return Result(
        comparison.sections(loaded, found, context=n, width=width),
        _columns(found),
        notes=[f"{model.name}: {line}" for model in loaded for line in summary.notes(model)],
    )


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
    ep: Size | None = None,
    dp: Size | None = None,
    context: Size | None = None,
    batch: Size = 1,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    utilization: Number = st.UTILIZATION,
    page: Size = st.PAGE,
    reserve: Size | None = None,
    max_seqs: Size | None = None,
    max_batched_tokens: Size | None = None,
    kinds: Texts = "all",
    price: str | float | None = None,
    hardware: Texts = (),
) -> Result:
    """Return what ``paramcalc fit`` shows, by the same options and defaults; ``kinds`` are GPUs
    whose fewest are listed (``"none"``: no list). Raises ``InputError``."""
    from paramcalc.views import fit_view

    asked = st.Asked(
        args.model(model),
        gpu,
        st.Sharing(gpus, tp, pp, ep, dp),
        st.Tuning(utilization, page, reserve, max_seqs, max_batched_tokens),
        dtype,
        kv_dtype,
        price,
        args.texts("hardware", hardware),
    )
    answer = st.fit(asked, context, batch, kinds)
    return Result(
        fit_view.sections(answer),
        _columns(fit_view.rows(answer)),
        title=fit_view.headline(answer.fit),
        words=fit_view.words(answer.fit),
        notes=[*summary.notes(asked.model), *fit_view.notes(answer.fit)],
    )


def serve(
    model: str | Model,
    gpu: str,
    *,
    gpus: Size | None = None,
    tp: Size | None = None,
    pp: Size | None = None,
    ep: Size | None = None,
    dp: Size | None = None,
    prompt: Size = 1024,
    output: Size = 256,
    batch: Size = 16,
    dtype: str | None = None,
    kv_dtype: str = "bf16",
    flops_efficiency: Number = st.FLOPS,
    bandwidth_efficiency: Number = st.BANDWIDTH,
    hop: Number = st.HOP,
    utilization: Number = st.UTILIZATION,
    page: Size = st.PAGE,
    reserve: Size | None = None,
    max_seqs: Size | None = None,
    max_batched_tokens: Size | None = None,
    price: str | float | None = None,
    hardware: Texts = (),
) -> Result:
    """Return what ``paramcalc serve`` shows, by the same options and defaults. Raises
    ``InputError``."""
    from paramcalc.views import serve_view

    asked = st.Asked(
        args.model(model),
        gpu,
        st.Sharing(gpus, tp, pp, ep, dp),
        st.Tuning(utilization, page, reserve, max_seqs, max_batched_tokens),
        dtype,
        kv_dtype,
        price,
        args.texts("hardware", hardware),
    )
    work = (prompt, output, batch)
    service = st.serve(asked, work, flops_efficiency, bandwidth_efficiency, hop)
    return Result(
        serve_view.sections(service),
        _columns(serve_view.rows(service)),
        title=serve_view.headline(service),
        words=serve_view.words(service),
        notes=[*summary.notes(asked.model), *serve_view.notes(service)],
    )


def train(
    model: str | Model,
    gpu: str,
    *,
    tokens: Size | None = None,
    gpus: Size | None = None,
    tp: Size | None = None,
    pp: Size | None = None,
    ep: Size | None = None,
    dp: Size | None = None,
    cp: Size = 1,
    etp: Size | None = None,
    mfu: Number | None = None,
    tokens_per_second: Size | None = None,
    compute: str | None = None,
    pue: Number = 1,
    chinchilla: bool = False,
    price: str | float | None = None,
    hardware: Texts = (),
    **recipe: Any,
) -> Result:
    """Return what ``paramcalc train`` shows, by the same options and defaults; ``recipe`` are
    fields of ``deploy.recipe.Recipe``, the optimizer by its name too. Raises ``InputError``."""
    from paramcalc.deploy.parallel import Layout
    from paramcalc.views import train_view

    shown, kind = args.model(model), args.gpu(gpu, args.texts("hardware", hardware), price)
    base = Layout(cp=args.size("cp", cp), etp=args.optional("etp", etp))
    if compute is not None and not isinstance(compute, str):
        raise InputError(f"compute = {_shown(compute)}: must be the name of a format; as bf16")
    plan = st.plan(shown, kind, st.Sharing(gpus, tp, pp, ep, dp), base, _recipe(recipe))
    run = st.run(plan, kind, tokens, mfu, tokens_per_second, compute, pue)
    answer = train_view.Answer(run, bool(chinchilla))
    return Result(
        train_view.sections(answer),
        _columns(train_view.rows(answer)),
        title=train_view.headline(answer),
        words=train_view.words(answer),
        notes=[*summary.notes(shown), *train_view.notes(answer)],
    )


def _recipe(fields: dict[str, Any]) -> Recipe:
    """The settings of a run, sizes as they may be typed. Raises ``InputError``."""
    from paramcalc.deploy import optimizers
    from paramcalc.deploy.recipe import Recipe

    for name in fields:
        if name not in Recipe._fields:
            near = did_you_mean(name, Recipe._fields) or f"; there are {', '.join(Recipe._fields)}"
            raise InputError(f"{name}: no setting of a recipe{near}")
    if isinstance(fields.get("optimizer"), str):
        fields["optimizer"] = optimizers.find(fields["optimizer"])
    for name in ("seq", "micro_batch", "global_batch", "reserve"):
        if isinstance(fields.get(name), str):
            least = 0 if name == "reserve" else 1
            fields[name] = args.size(name, fields[name], least, tokens=name == "seq")
    return Recipe(**fields)


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]}
