"""The screen, the record and the rows of ``paramcalc train``."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.deploy.fit import Change
from paramcalc.deploy.training_figures import groups, stage_figures
from paramcalc.deploy.training_fit import changes
from paramcalc.deploy.training_run import Run
from paramcalc.views import figures_view
from paramcalc.views.tables import Section, Size


class Answer(NamedTuple):
    """A run; ``optimal`` asks for the compute-optimal sizes beside it."""

    run: Run
    optimal: bool = False

    @property
    def gap(self) -> int:
        """Bytes to spare on the busiest GPU; negative where it does not fit."""
        return self.run.gpu.visible_bytes - self.run.plan.need

    def changes(self) -> list[Change]:
        """What would make it fit; nothing where it fits."""
        return [] if self.gap >= 0 else changes(self.run.plan, self.run.gpu.visible_bytes)


def headline(answer: Answer) -> str:
    """Return the verdict in a line."""
    plan, gpu = answer.run.plan, answer.run.gpu
    verdict, end = ("fits", "to spare") if answer.gap >= 0 else ("does not fit", "missing")
    many = f"{plan.layout.gpus:,} × " if plan.layout.gpus > 1 else ""
    room = Size(abs(answer.gap), brief=True)
    return f"{plan.model.name}  training {verdict} on {many}{gpu.name}: {room} {end}"


def words(answer: Answer) -> list[str]:
    """Return what was asked, in short."""
    plan = answer.run.plan
    r = plan.recipe
    what = f"weights {r.dtype}"
    if r.lora:
        what = f"LoRA rank {r.lora.rank} on {', '.join(r.lora.targets)} of {r.base_dtype}"
    tokens = plan.step_tokens
    return [
        plan.layout.text(),
        what,
        r.optimizer.name,
        f"ZeRO {r.zero}",
        f"{tokens // plan.seq:,} × {plan.seq:,} tokens a step",
        f"{r.attention} attention",
        f"recompute {r.recompute}",
    ]


def sections(answer: Answer) -> list[Section]:
    """Return the tables of the screen."""
    found = figures_view.sections(groups(answer.run, optimal=answer.optimal))
    if answer.gap >= 0:
        return found
    section = Section("Any one of these makes it fit", [("", "left"), ("", "left"), ("", "left")])
    changes = answer.changes()
    for change in changes:
        section.add(change.option, change.value, change.text)
    if not section.rows:
        section.add("nothing", "", "no single change is enough; combine several")
    elif any(change.option == "--gpus" for change in changes):
        section.notes.append("--gpus: two, four, ... times the GPUs tried")
    return [found[0], section, *found[1:]]


def record(answer: Answer) -> dict[str, Any]:
    """Return the answer for a machine: raw integers under stable names, every stage."""
    run, plan = answer.run, answer.run.plan
    r = plan.recipe
    return {
        "model": plan.model.name,
        "gpu": run.gpu.name,
        "gpus": plan.layout.gpus,
        "layout": {n: getattr(plan.layout, n) for n in ("tp", "pp", "ep", "dp", "cp")},
        "recipe": {
            "optimizer": r.optimizer.name,
            "dtype": r.weight_dtype,
            "grad_dtype": r.gradient_dtype,
            "master": r.has_master,
            "zero": r.zero,
            "shard_over": r.shard_over,
            "seq": plan.seq,
            "micro_batch": r.micro_batch,
            "microbatches": plan.microbatches,
            "global_batch": r.step_sequences(plan.layout),
            "recompute": r.recompute,
            "attention": r.attention,
            "sequence_parallel": plan.sequence_parallel,
            "schedule": r.schedule.kind,
            "virtual": r.schedule.chunks,
            "lora_rank": r.lora.rank if r.lora else None,
            "lora_targets": list(r.lora.targets) if r.lora else None,
            "base_dtype": r.base_dtype if r.lora else None,
        },
        "tokens": run.tokens,
        "energy_joules": run.joules,
        "fits": answer.gap >= 0,
        "gap_bytes": answer.gap,
        "figures": figures_view.record(groups(run, optimal=answer.optimal)),
        "stages": [
            {
                "stage": stage.number + 1,
                "layers": stage.layers,
                "params": stage.parameters,
                "trained_params": stage.trained,
                "in_flight": stage.in_flight,
                "need_bytes": stage.total,
                **{f.key: f.value for f in stage_figures(plan, stage)},
            }
            for stage in plan.stages
        ],
        "changes": [change._asdict() for change in answer.changes()],
    }


def rows(answer: Answer) -> list[dict[str, Any]]:
    """Return the figures as CSV rows."""
    return figures_view.rows(groups(answer.run, optimal=answer.optimal))


def notes(answer: Answer) -> list[str]:
    """Return what to know beside the answer."""
    plan = answer.run.plan
    found = []
    own = plan.model.spec.context
    if own is not None and plan.seq > own:
        found.append(f"seq = {plan.seq:,}: beyond the model's own {own:,}")
    most = answer.run.most_mfu
    if answer.run.mfu > most:
        found.append(
            f"MFU {float(answer.run.mfu):.0%} is above the {float(most):.0%} that recomputation and"
            " the pipeline's bubble leave: state a lower --mfu"
        )
    if plan.layout.pp > 1 and plan.recipe.zero > 1:
        found.append(
            f"zero = {plan.recipe.zero}: with pipeline stages, gradients or weights are exchanged"
            " for each microbatch"
        )
    return found
