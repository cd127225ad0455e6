"""Choosing for a deployment: a layout for so many GPUs, the fewest GPUs, the changes that help."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from paramcalc import formats
from paramcalc.deploy import parallel
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import MOST_GPUS, NODE, Change, Deployment, Load
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.formats.mixed import Mixed
from paramcalc.ledger import Ledger
from paramcalc.model import Model
from paramcalc.numbers import ceil_div

FEW_SEQS = 256
"""Requests sampled at once that are offered instead of more."""
SHORTEST = 8
"""A context is offered as a change where at least an eighth of what was asked for fits."""
SMALLER = ("fp8", "int4")
SMALLER_FILES = ("Q8_0", "Q6_K", "Q4_K_M")
"""Formats of weights that are offered instead of a larger one, best first."""


def layouts(ledger: Ledger, gpus: int) -> Iterator[Layout]:
    """Yield the layouts of one replica on so many GPUs, the widest tensor parallelism first.

    Tensor parallelism stays inside a node of eight; pipeline stages take the rest.
    """
    for tp in range(min(gpus, NODE), 0, -1):
        if gpus % tp:
            continue
        layout = Layout(tp=tp, pp=gpus // tp)
        try:
            parallel.check(ledger, layout)
        except InputError:
            continue
        yield layout


def sizes(above: int = 0) -> Iterator[int]:
    """Yield the numbers of GPUs that are tried for one replica, those greater than ``above``: any
    number inside a node of eight, then whole nodes."""
    for size in (*range(1, NODE), *range(NODE, MOST_GPUS + 1, NODE)):
        if size > above:
            yield size


def chosen(model: Model, gpus: int) -> Layout:
    """Return the layout of one replica on so many GPUs. Raises ``InputError`` if there is none."""
    for layout in layouts(model.ledger, gpus):
        return layout
    raise InputError(
        f"gpus = {gpus}: no tp up to {NODE} and pp make one replica of so many; add --dp for"
        " replicas, or give --tp and --pp"
    )


def fewest(
    model: Model, load: Load, kinds: Mapping[str, tuple[int, Engine]], dtype: str, kv_dtype: str
) -> dict[str, Deployment | None]:
    """Return for each kind of GPU the smallest replica that fits; None above ``MOST_GPUS``.

    ``kinds`` are bytes and engine settings by name. Every number of ``sizes`` is tried in every
    layout, the widest tensor parallelism first.
    """
    found: dict[str, Deployment | None] = dict.fromkeys(kinds)
    left: dict[Engine, list[str]] = {}
    for name, (_, engine) in kinds.items():
        left.setdefault(engine, []).append(name)
    for size in sizes():
        for layout in layouts(model.ledger, size):
            for engine, names in left.items():
                if not names:
                    continue
                one = Deployment(model, layout, dtype, kv_dtype, engine)
                need = one.need(load)
                held = [name for name in names if need <= one.budget(kinds[name][0])]
                found |= dict.fromkeys(held, one)
                left[engine] = [name for name in names if name not in held]
        if not any(left.values()):
            break
    return found


def changes(
    deployment: Deployment, load: Load, capacity: int, has: Collection[str] | None = None
) -> list[Change]:
    """Return the single changes that make it fit, the least intrusive first.

    The order: the engine's share of memory, requests sampled at once, the cache's format, the
    batch, the context, the weights' format (one that the GPU's arithmetic, ``has``, can serve),
    more GPUs.
    """
    return [
        *_share(deployment, load, capacity),
        *_sampled(deployment, load, capacity),
        *_cache(deployment, load, capacity),
        *_load(deployment, load, capacity),
        *_weights(deployment, load, capacity, has),
        *_gpus(deployment, load, capacity),
    ]


def _share(d: Deployment, load: Load, capacity: int) -> Iterator[Change]:
    high = Fraction(95, 100)
    if d.engine.utilization < high and d.need(load) <= capacity * high:
        yield Change("--utilization", "0.95", "the engine takes 95% of the memory")


def _sampled(d: Deployment, load: Load, capacity: int) -> Iterator[Change]:
    if d.engine.max_seqs > FEW_SEQS >= ceil_div(load.batch, d.layout.dp):
        engine = d.engine._replace(max_seqs=FEW_SEQS)
        other = Deployment(d.model, d.layout, d.format.name, d.kv_format.name, engine)
        if other.fits(load, capacity):
            yield Change("--max-seqs", str(FEW_SEQS), "fewer requests sampled at once")


def _cache(d: Deployment, load: Load, capacity: int) -> Iterator[Change]:
    for name in ("bf16", "fp8"):
        smaller = formats.kv_format(name).bits < d.kv_format.bits
        if smaller and _other(d, d.format.name, name).fits(load, capacity):
            yield Change("--kv-dtype", name, "a smaller cache")
            return


def _load(d: Deployment, load: Load, capacity: int) -> Iterator[Change]:
    batch = d.largest_batch(load.context, capacity)
    if batch and batch < load.batch:
        yield Change("--batch", str(batch), "fewer sequences at once")
    context = d.largest_context(load.batch, capacity)
    if context and context * SHORTEST >= load.context:
        yield Change("--context", str(context), "shorter sequences")


def _weights(
    d: Deployment, load: Load, capacity: int, has: Collection[str] | None
) -> Iterator[Change]:
    ledger = d.model.ledger
    now = formats.weight_bytes(ledger, d.format)
    for name in SMALLER_FILES if isinstance(d.format, Mixed) else SMALLER:
        try:
            other = _other(d, name, d.kv_format.name)
            formats.compute_format(other.format, has)
        except InputError:  # a file type that the shapes do not fit, or arithmetic that is missing
            continue
        smaller = formats.weight_bytes(ledger, other.format) < now
        if smaller and other.fits(load, capacity):
            yield Change("--dtype", name, "smaller weights")
            return


def _gpus(d: Deployment, load: Load, capacity: int) -> Iterator[Change]:
    """The fewest GPUs more for each replica, of ``sizes`` that can be laid out; experts stay spread
    over a whole stage where they were."""
    dp = d.layout.dp
    for size in sizes(d.layout.gpus // dp):
        for layout in layouts(d.model.ledger, size):
            wider = layout._replace(dp=dp)
            if d.layout.ep > 1:
                wider = wider._replace(ep=wider.tp * dp)
            try:
                other = Deployment(d.model, wider, d.format.name, d.kv_format.name, d.engine)
            except InputError:  # experts that so many do not divide
                continue
            if other.fits(load, capacity):
                ways = [(n, getattr(wider, n)) for n in ("tp", "pp", "dp", "ep")]
                words = " ".join(f"--{name} {size}" for name, size in ways if size > 1)
                yield Change("--gpus", f"{wider.gpus} {words}", "more GPUs share the work")
                return


def _other(d: Deployment, dtype: str, kv_dtype: str) -> Deployment:
    """The same deployment in other formats."""
    return Deployment(d.model, d.layout, dtype, kv_dtype, d.engine)
