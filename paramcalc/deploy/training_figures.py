"""The answer of ``paramcalc train`` as groups of figures."""

from __future__ import annotations

from paramcalc.deploy import chinchilla
from paramcalc.deploy.figures import Figure, Group, exact_dollars
from paramcalc.deploy.fitting import FREE
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.stated import seen, stated
from paramcalc.deploy.training import Plan, Stage
from paramcalc.deploy.training_run import SECOND, Run
from paramcalc.quantities import params
from paramcalc.quantities.catalogue import Known

PPM = 10**6


def groups(run: Run, *, optimal: bool = False) -> list[Group]:
    """Return the tables; ``optimal`` adds the compute-optimal sizes."""
    found = [_memory(run), _work(run), _time(run), _checkpoint(run)]
    if run.plan.layout.pp > 1:
        found.insert(1, _pipeline(run.plan))
    return [*found, _optimal(run)] if optimal else found


def stage_figures(plan: Plan, stage: Stage) -> tuple[Figure, ...]:
    """Return the bytes that one GPU of a stage holds, line by line; zeros are left out."""
    r, s = plan.recipe, stage.states
    over = plan.ranks.dense
    lines: list[tuple[str, str, int, Known, str]] = [
        ("frozen_bytes", "frozen weights", s.frozen, "derived", _by(r.base_dtype, r, over, 3)),
        (
            "gpu_weight_bytes",
            "weights" if r.lora is None else "adapters",
            s.weights,
            "derived",
            _by(r.weight_dtype, r, over, 3),
        ),
        ("gradient_bytes", "gradients", s.gradients, "derived", _by(r.gradient_dtype, r, over, 2)),
        ("master_bytes", "master weights", s.master, "derived", _by("fp32", r, over, 1)),
        (
            "optimizer_bytes",
            f"{r.optimizer.name} state",
            s.optimizer,
            "derived",
            _by(r.optimizer.keeps, r, over, 1),
        ),
        ("gathered_bytes", "whole for a moment", stage.gathered, "assumed", _gathered(r)),
        (
            "activation_bytes",
            "activations",
            stage.activations,
            _activations_known(plan),
            _activations(plan, stage),
        ),
        (
            "reserve_bytes",
            "runtime reserve",
            stage.reserve,
            "assumed",
            "as vLLM's on an H100" if r.reserve is None else "--reserve",
        ),
    ]
    return tuple(
        Figure(key, label, value, "bytes", known, why)
        for key, label, value, known, why in lines
        if value
    )


def where(plan: Plan, stage: Stage) -> str:
    """Return which GPUs a stage's figures are of."""
    pp = plan.layout.pp
    return "each GPU" if pp == 1 else f"a GPU of stage {stage.number + 1:,} of {pp:,}"


def _by(text: str, how: Recipe, over: int, zero: int) -> str:
    """A format, and the ranks that share it out."""
    return f"{text} / {over:,}" if how.zero >= zero and over > 1 else text


def _gathered(how: Recipe) -> str:
    return "2 units, and gradients" if how.zero == 3 else "a unit's gradients"


def _activations_known(plan: Plan) -> Known:
    """As the kept tensors are; under LoRA fewer may be kept, which is not counted."""
    tensors = [t for kind in plan.kept.layers for t in kind.tensors] + list(plan.kept.outside)
    exact = plan.recipe.lora is None and all(t.known == "derived" for t in tensors)
    return "derived" if exact else "assumed"


def _activations(plan: Plan, stage: Stage) -> str:
    r, chunks = plan.recipe, plan.recipe.schedule.chunks
    many = f"{stage.in_flight} × " if stage.in_flight > 1 else ""
    part = f" / {chunks}" if chunks > 1 else ""
    return f"{many}{r.micro_batch} × {plan.seq:,} tokens{part}"


def _memory(run: Run) -> Group:
    plan, capacity = run.plan, run.gpu.visible_bytes
    stage = plan.busiest
    gap = capacity - stage.total
    told = run.gpu.known("visible")
    figures = (
        *stage_figures(plan, stage),
        Figure("need_bytes", "in all", stage.total, "bytes", "assumed", "the sum"),
        Figure("gpu_bytes", run.gpu.name, capacity, "bytes", told, seen(run.gpu)),
        Figure(FREE, "to spare" if gap >= 0 else "missing", gap, "bytes", "assumed"),
    )
    notes = ["not counted: temporary tensors, fragmentation, communication buffers"]
    return Group(f"Memory of {where(plan, stage)}", figures, ("need_bytes", FREE), tuple(notes))


def _pipeline(plan: Plan) -> Group:
    pp, m, order = plan.layout.pp, plan.microbatches, plan.recipe.schedule
    chunks = f", {order.chunks} chunks a GPU" if order.chunks > 1 else ""
    bubble = int(order.bubble(pp, m) * PPM)
    share = f"({pp} - 1) / {order.chunks * m}"
    known: Known = "assumed" if plan.recipe.global_batch is None else "derived"
    figures = (
        Figure("microbatches", "microbatches a step", m, "", known, "batch / dp / micro batch"),
        Figure("bubble", "bubble, over the work", bubble, "ppm", known, share),
    )
    return Group(f"Pipeline of {pp} stages, {order.kind}{chunks}", figures)


def _work(run: Run) -> Group:
    plan, model = run.plan, run.plan.model
    total = params.total(model.ledger)
    trained = params.total(plan.trained)
    ratio = int(run.tokens_per_parameter * 100)
    why = "3 × forward, causal" if plan.recipe.lora is None else "no gradients of frozen weights"
    steps = f"{run.steps:,} step{'s' if run.steps > 1 else ''}"
    known: Known = "exact" if plan.recipe.lora is None else "derived"
    figures = [
        Figure("params", "parameters", total, "", "exact"),
        Figure("trained_params", "trained", trained, "", "exact", _targets(plan.recipe)),
        Figure("tokens", "tokens", run.tokens, "", "derived", steps),
        *_rounded(run),
        Figure(
            "tokens_per_parameter",
            "tokens a parameter",
            ratio,
            "hundredths",
            "derived",
            "tokens / N",
        ),
        Figure("model_flops", "training FLOPs", run.model_flops, "FLOPs", known, why),
    ]
    if run.again_flops:
        figures.append(
            Figure(
                "recomputed_flops",
                "computed again",
                run.again_flops,
                "FLOPs",
                known,
                f"{plan.recipe.recompute} recompute",
            )
        )
    for name, work in run.by_convention().items():
        figures.append(
            Figure(f"flops_{name}", f"as {name}", work, "FLOPs", "derived", "another tool's rule")
        )
    return Group("Work", tuple(figures), ("model_flops",))


def _rounded(run: Run) -> tuple[Figure, ...]:
    """The tokens that are processed where those stated are no whole steps."""
    if run.processed == run.tokens:
        return ()
    why = f"steps of {run.plan.step_tokens:,}"
    return (Figure("processed_tokens", "in whole steps", run.processed, "", "derived", why),)


def _targets(how: Recipe) -> str:
    if how.lora is None:
        return "all"
    return f"adapters of rank {how.lora.rank}"


def _time(run: Run) -> Group:
    plan, gpus = run.plan, run.plan.layout.gpus
    price = run.gpu.price_per_hour_micro
    peak = f"peak, {gpus:,} GPU{'s' if gpus > 1 else ''}"
    # a stated speed is arithmetic on what the user knows, an MFU is hoped for
    told: Known = "assumed" if run.speed is None else "derived"
    every = (
        Figure("mfu", "MFU", int(run.mfu * PPM), "ppm", told, _by_speed(run)),
        Figure("hfu", "HFU", int(run.hfu * PPM), "ppm", told, "with what is computed again"),
        Figure(
            "tokens_per_second",
            "tokens a second",
            run.tokens_per_second,
            "",
            told,
            "all GPUs" if run.speed is None else "--tokens-per-second",
        ),
        Figure(
            "step_time",
            "one step",
            int(run.seconds / run.steps * SECOND),
            "microseconds",
            told,
            f"{plan.step_tokens:,} tokens",
        ),
        Figure("time", "the run", int(run.seconds * SECOND), "microseconds", told, "no stops"),
        Figure("gpu_hours", "GPU-hours", int(run.gpu_hours * 100), "hundredths", told),
        Figure("energy", "energy", run.watt_hours, "watt-hours", told, _watts(run)),
        Figure(
            "cost",
            "cost",
            run.cost,
            "microdollars",
            told,
            "no price: --price" if price is None else f"${exact_dollars(price)} a GPU-hour",
        ),
    )
    return Group("Time and cost", (_peak(run, peak), *every), ("time",))


def _peak(run: Run, label: str) -> Figure:
    """The peak FLOP/s of all GPUs, as their maker states them."""
    by = f"{stated(run.gpu, run.gpu.peak_cell(run.compute))}, {run.compute}"
    return Figure("peak_flops", label, run.peak, "FLOP/s", run.gpu.known_peak(run.compute), by)


def _by_speed(run: Run) -> str:
    return "--mfu" if run.speed is None else "FLOPs / (time × peak)"


def _watts(run: Run) -> str:
    if run.gpu.watts is None:
        return "watts not published"
    return f"{run.gpu.watts:,} W a GPU, PUE {float(run.pue):g}"


def _checkpoint(run: Run) -> Group:
    what = "weights alone" if run.plan.recipe.lora is None else "adapters alone"
    figures = (
        Figure(
            "checkpoint_weight_bytes",
            what,
            run.checkpoint_weights,
            "bytes",
            "derived",
            run.plan.recipe.weight_dtype,
        ),
        Figure(
            "checkpoint_bytes",
            "to resume from",
            run.checkpoint,
            "bytes",
            "derived",
            "with master, optimizer",
        ),
    )
    return Group("Checkpoint", figures)


def _optimal(run: Run) -> Group:
    """Compute-optimal tokens for this model, and the optimum of this run's budget."""
    n = params.total(run.plan.model.ledger)
    budget, fitting = 6 * n * run.processed, chinchilla.tokens_for(n)
    figures = [
        Figure(
            "optimal_tokens",
            "tokens for its size",
            fitting,
            "",
            "measured",
            f"20 a parameter, {chinchilla.PAPER}",
        ),
        Figure("budget_flops", "budget", budget, "FLOPs", "derived", "6 N D"),
    ]
    found = {
        "ratio": (chinchilla.by_ratio(budget), f"20 tokens a parameter, {chinchilla.PAPER}"),
        **{
            name: (chinchilla.by_fit(budget, fit), fit.source)
            for name, fit in chinchilla.FITS.items()
        },
    }
    for name, (best, source) in found.items():
        for size, label, value in (("params", "N", best.parameters), ("tokens", "D", best.tokens)):
            key = f"optimal_{size}_{name}"
            figures.append(Figure(key, f"best {label}, {name}", value, "", "measured", source))
    return Group(f"Compute-optimal (Chinchilla, {chinchilla.PAPER})", tuple(figures))
