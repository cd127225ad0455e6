"""What would make a training plan fit, and the layout chosen where nobody states one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from math import isqrt

from paramcalc.deploy import optimizers
from paramcalc.deploy.fit import MOST_GPUS, NODE, Change
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training import Plan
from paramcalc.errors import InputError
from paramcalc.model import Model


def layouts(model: Model, gpus: int, base: Layout, how: Recipe) -> Iterator[Plan]:
    """Yield plans on so many GPUs, the smallest tp x pp first, tp within a node, dp the rest.

    ``base`` gives cp, ep and etp; sizes that do not match the model are passed over.
    """
    sizes = [2**i for i in range(gpus.bit_length())]
    first: Plan | None = None
    pairs = [(tp, pp) for tp in sizes for pp in sizes if tp <= NODE]
    for tp, pp in sorted(pairs, key=lambda pair: (pair[0] * pair[1], pair[1])):
        one = tp * pp * base.cp
        if one > gpus or gpus % one:
            continue
        try:
            plan = Plan(model, base._replace(tp=tp, pp=pp, dp=gpus // one), how)
        except InputError:
            continue
        plan.undivided = first.undivided if first else plan.undivided
        first = first or plan
        yield plan


def chosen(model: Model, gpus: int, base: Layout, how: Recipe, capacity: int) -> Plan:
    """Return the plan of the smallest tp x pp that fits, else the one that needs least.

    Raises ``InputError`` if no layout matches the model and the batch.
    """
    found: Plan | None = None
    for plan in layouts(model, gpus, base, how):
        if plan.fits(capacity):
            return plan
        if found is None or (plan.least < found.need and plan.need < found.need):
            found = plan
    if found is None:
        Plan(model, base._replace(tp=1, pp=1, dp=max(1, gpus // base.cp)), how)  # says why
        raise InputError(f"gpus = {gpus}: cp = {base.cp} must divide it; change one of them")
    return found


def changes(plan: Plan, capacity: int) -> list[Change]:
    """Return the single changes that make it fit, the cheapest in time first.

    The order: what costs nothing, smaller states, recomputation, a smaller microbatch, another
    layout of the same GPUs, more of them.
    """
    r, layout = plan.recipe, plan.layout

    def fits(how: Recipe) -> bool:
        return _fits(lambda: Plan(plan.model, layout, how), capacity)

    found = []
    if layout.tp > 1 and not r.sequence_parallel and fits(r._replace(sequence_parallel=True)):
        found.append(Change("--sequence-parallel", "", "tokens shared out between matrices"))
    if layout.dp * layout.cp > 1:
        for zero in range(r.zero + 1, 4):
            if fits(r._replace(zero=zero)):
                found.append(Change("--zero", str(zero), _ZERO[zero]))
                break
    if r.lora is None and r.gradient_dtype == "fp32" and fits(r._replace(grad_dtype="bf16")):
        found.append(Change("--grad-dtype", "bf16", "gradients of two bytes"))
    small = optimizers.OPTIMIZERS["adamw-8bit"]
    if r.optimizer.name == "adamw" and fits(r._replace(optimizer=small)):
        found.append(Change("--optimizer", small.name, "moments of one byte"))
    if r.lora is not None and r.base_dtype != "nf4-dq" and fits(r._replace(base_dtype="nf4-dq")):
        found.append(Change("--base-dtype", "nf4-dq", "frozen weights of four bits (QLoRA)"))
    if r.recompute == "none" and fits(r._replace(recompute="selective")):
        found.append(Change("--recompute", "selective", "attention is computed again"))
    elif r.recompute != "full" and fits(r._replace(recompute="full")):
        found.append(Change("--recompute", "full", "every layer is computed again"))
    if (size := _microbatch(plan, fits)) is not None:
        found.append(Change("--micro-batch", str(size), "fewer sequences at once"))
    for other in layouts(plan.model, layout.gpus, layout, r):
        if other.fits(capacity):
            tp, pp = other.layout.tp, other.layout.pp
            found.append(Change("--tp", f"{tp} --pp {pp} --dp {other.layout.dp}", "same GPUs"))
            break
    if (more := _more(plan, capacity)) is not None:
        found.append(Change("--gpus", str(more.layout.gpus), f"as {more.layout.text()}"))
    return found


_ZERO = {
    1: "optimizer states divided over the replicas",
    2: "gradients divided too",
    3: "weights divided too (FSDP)",
}


def _microbatch(plan: Plan, fits: Callable[[Recipe], bool]) -> int | None:
    """The largest smaller microbatch that fits and divides the one there is, so that a stated
    global batch stays; memory grows with it."""
    r = plan.recipe
    small = [size for size in range(1, isqrt(r.micro_batch) + 1) if r.micro_batch % size == 0]
    sizes = sorted({*small, *(r.micro_batch // size for size in small)} - {r.micro_batch})
    count = bisect_left(sizes, True, key=lambda size: not fits(r._replace(micro_batch=size)))
    return sizes[count - 1] if count else None


def _more(plan: Plan, capacity: int) -> Plan | None:
    """The smallest doubling of the GPUs on which some layout fits."""
    size = plan.layout.gpus * 2
    while size <= max(MOST_GPUS, plan.layout.gpus * NODE):
        for other in layouts(plan.model, size, plan.layout, plan.recipe):
            if other.fits(capacity):
                return other
        size *= 2
    return None


def _fits(make: Callable[[], Plan], capacity: int) -> bool:
    try:
        return make().fits(capacity)
    except InputError:
        return False
