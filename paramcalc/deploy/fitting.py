"""The answer of ``paramcalc fit``: figures, verdict, limits, and what would make it fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcalc.deploy.arithmetic import lack
from paramcalc.deploy.choices import changes, fewest
from paramcalc.deploy.engine import LOGIT_BYTES, MEASURED, Engine, for_gpu
from paramcalc.deploy.figures import Figure, Group, exact_dollars
from paramcalc.deploy.fit import MOST_TOKENS, Change, Deployment, Load, Stage
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.stated import seen
from paramcalc.formats import AnyFormat
from paramcalc.quantities import params

FREE = "gpu_free_bytes"
"""The figure of what is to spare, below 0 where that much is missing."""


class Fit(NamedTuple):
    """What a deployment needs on one kind of GPU."""

    deployment: Deployment
    gpu: Accelerator
    load: Load

    @property
    def capacity(self) -> int:
        """Bytes of one GPU that software sees."""
        return self.gpu.visible_bytes

    @property
    def fits(self) -> bool:
        """Whether every GPU holds its part."""
        return self.deployment.fits(self.load, self.capacity)

    @property
    def gap(self) -> int:
        """Bytes to spare on the busiest GPU; negative where it does not fit."""
        return self.deployment.budget(self.capacity) - self.deployment.need(self.load)

    def changes(self) -> list[Change]:
        """What would make it fit, the least intrusive first; nothing where it fits."""
        if self.fits:
            return []
        return changes(self.deployment, self.load, self.capacity, self.gpu.peaks or None)

    @property
    def price(self) -> int | None:
        """Micro-dollars an hour of all GPUs; None where nobody gave a price."""
        one = self.gpu.price_per_hour_micro
        return None if one is None else one * self.deployment.layout.gpus


def serves(gpu: Accelerator, fmt: AnyFormat) -> bool:
    """Whether a GPU has arithmetic for a format; one without published rates is not judged."""
    return lack(gpu, fmt, timed=False) is None


def groups(fit: Fit) -> list[Group]:
    """Return the tables of the answer."""
    d = fit.deployment
    number, stage = d.busiest(fit.load)
    where = "each GPU" if d.layout.pp == 1 else f"a GPU of stage {number + 1} of {d.layout.pp}"
    return [_weights(d, stage, where), _memory(fit, stage, where), _limits(fit)]


def _weights(d: Deployment, stage: Stage, where: str) -> Group:
    layout, fmt = d.layout, d.format.name
    figures = [
        Figure(
            "weight_bytes",
            f"the model in {fmt}",
            d.model.memory.weight_bytes(fmt),
            "bytes",
            "derived",
            "ledger × format",
        ),
        Figure(
            "params_per_gpu",
            "its parameters",
            params.total(stage.ledger),
            "",
            "exact",
            layout.text(),
        ),
        Figure(
            "gpu_weight_bytes_plain",
            "its weights",
            stage.plain,
            "bytes",
            "derived",
            "shard rules × format",
        ),
    ]
    if stage.weights != stage.plain:
        figures.append(
            Figure(
                "gpu_weight_bytes_padding",
                "padding by kernels",
                stage.weights - stage.plain,
                "bytes",
                "measured",
                MEASURED,
            )
        )
    figures.append(
        Figure("gpu_weight_bytes", "weights in all", stage.weights, "bytes", "derived", "the sum")
    )
    return Group(f"Weights on {where}", tuple(figures), ("gpu_weight_bytes",))


def _memory(fit: Fit, stage: Stage, where: str) -> Group:
    d, engine = fit.deployment, fit.deployment.engine
    budget = d.budget(fit.capacity)
    sampling = stage.sampling >= stage.forward
    work = (
        f"{engine.max_seqs:,} requests × vocab × {LOGIT_BYTES} B"
        if sampling
        else f"{engine.max_batched_tokens:,} tokens a step"
    )
    cache, paged = d.cache(stage, fit.load), d.cache_paged(stage, fit.load)
    told = fit.gpu.known("visible")
    figures = (
        Figure("gpu_bytes", fit.gpu.name, fit.capacity, "bytes", told, seen(fit.gpu)),
        Figure(
            "budget_bytes",
            "the engine's share",
            budget,
            "bytes",
            "assumed",
            f"--utilization {float(engine.utilization):g}",
        ),
        Figure("gpu_weight_bytes_used", "weights", stage.weights, "bytes", "derived", "above"),
        Figure(
            "workspace_bytes",
            "activations",
            stage.workspace,
            "bytes",
            "assumed",
            work,
        ),
        Figure(
            "reserve_bytes",
            "runtime reserve",
            stage.reserve,
            "bytes",
            "measured" if engine.reserve is None and _is_h100(fit.gpu) else "assumed",
            MEASURED if engine.reserve is None else "--reserve",
        ),
        Figure(
            "kv_room_bytes",
            "left for the cache",
            budget - stage.fixed,
            "bytes",
            "assumed",
            "the share less these",
        ),
        Figure("gpu_kv_bytes_ideal", "cache, ideal", cache, "bytes", "derived", _asked(fit)),
        Figure(
            "gpu_kv_bytes",
            "cache, in pages",
            paged,
            "bytes",
            "derived",
            f"pages of {engine.page} tokens",
        ),
        Figure(
            FREE,
            "to spare" if fit.fits else "missing",
            fit.gap,
            "bytes",
            "assumed",
            "share and reserve",
        ),
    )
    return Group(f"Memory of {where}", figures, ("kv_room_bytes", FREE))


def _is_h100(gpu: Accelerator) -> bool:
    """Whether it is the catalogue's, on which the engine's constants were measured."""
    return gpu.name.startswith("h100") and gpu.known("memory") == "measured"


def _asked(fit: Fit) -> str:
    batch, n = fit.load.batch, fit.load.context
    return f"{batch:,} × {n:,} tokens"


def _limits(fit: Fit) -> Group:
    """The inverse of the memory: it rests on the engine's share and reserve, as the room does."""
    d, load = fit.deployment, fit.load
    longest = d.largest_context(load.batch, fit.capacity)
    at_once = d.concurrency(load.context, fit.capacity)
    limited = at_once < MOST_TOKENS
    own = d.model.spec.context
    more = own is not None and (longest is None or longest > own)
    notes = [f"the model's own context is {own:,} tokens"] if more and own else []
    replicas = d.layout.dp
    figures = [
        Figure(
            "largest_context",
            f"longest context, batch {load.batch:,}",
            longest,
            "tokens",
            "assumed",
            _by(d, longest),
        ),
        Figure(
            "largest_batch",
            f"largest batch, {load.context:,} tokens",
            replicas * int(at_once) if limited else None,
            "sequences",
            "assumed",
            "room / one sequence" if limited else "no limit: no cache",
        ),
        Figure(
            "concurrency",
            "sequences at once",
            int(100 * replicas * at_once) if limited else None,
            "hundredths",
            "assumed",
            "not rounded",
        ),
        Figure(
            "cached_tokens",
            "tokens in the cache",
            int(replicas * at_once * load.context) if limited else None,
            "tokens",
            "assumed",
            "the same × context",
        ),
    ]
    one = fit.gpu.price_per_hour_micro
    if one is not None:
        figures.append(
            Figure(
                "cost_per_hour",
                "an hour",
                fit.price,
                "microdollars",
                "derived",
                f"${exact_dollars(one)} a GPU-hour",
            )
        )
    return Group("What fits", tuple(figures), (), tuple(notes))


def _by(deployment: Deployment, longest: int | None) -> str:
    """What ends the longest context."""
    if longest is None:
        return "nothing grows"
    return "table of positions" if longest == deployment.table else "the cache's curve"


class Smallest(NamedTuple):
    """The smallest replica of one kind of GPU; ``layout`` is empty where none was found.

    ``gap`` are the bytes to spare on the busiest GPU, ``price`` micro-dollars an hour of all.
    """

    gpu: Accelerator
    gpus: int | None
    layout: str
    gap: int | None
    price: int | None


def smallest(
    fit: Fit, kinds: list[Accelerator], engine_of: Callable[[Accelerator], Engine] = for_gpu
) -> list[Smallest]:
    """Return for each kind of GPU the fewest that hold the model and its load.

    Fewest first; of as many, the smallest memory first. Kinds without arithmetic for the weights'
    format are left out. ``engine_of`` gives the engine's settings on a kind.
    """
    d = fit.deployment
    kinds = [gpu for gpu in kinds if serves(gpu, d.format)]
    sizes = {gpu.name: (gpu.visible_bytes, engine_of(gpu)) for gpu in kinds}
    found = fewest(d.model, fit.load, sizes, d.format.name, d.kv_format.name)
    answers = []
    for gpu in kinds:
        own = found[gpu.name]
        if own is None:
            answers.append(Smallest(gpu, None, "", None, None))
            continue
        gap = own.budget(gpu.visible_bytes) - own.need(fit.load)
        one, gpus = gpu.price_per_hour_micro, own.layout.gpus
        price = None if one is None else one * gpus
        answers.append(Smallest(gpu, gpus, own.layout.text(), gap, price))
    return sorted(
        answers, key=lambda a: (a.gpus is None, a.gpus or 0, a.layout, a.gpu.visible_bytes)
    )
