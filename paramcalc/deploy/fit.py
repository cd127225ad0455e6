"""What fits: weights, cache, workspace and reserve on each GPU, and the inverse of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy import parallel
from paramcalc.deploy.engine import Engine, padded_for_kernels, paged_elements, workspace
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.formats import AnyFormat
from paramcalc.ledger import Ledger
from paramcalc.model import Model
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.quantities import memory

MOST_TOKENS = 1 << 40
"""Where the search for a context stops: nothing in the cache grows any more."""
MOST_GPUS = 1024
NODE = 8
"""GPUs that tensor parallelism spans at most when a layout is chosen."""


class Load(NamedTuple):
    """What requests ask of a deployment: ``batch`` sequences of ``context`` tokens each."""

    context: int
    batch: int = 1


class Stage(NamedTuple):
    """What one GPU of a pipeline stage holds, in bytes, before any request.

    ``whole`` is the stage's ledger and ``ledger`` the part of it that one GPU holds.
    ``plain`` are the weights by the format alone; ``weights`` with what kernels pad.
    """

    whole: Ledger
    ledger: Ledger
    plain: Num
    weights: Num
    forward: Num
    sampling: Num
    reserve: Num

    @property
    def workspace(self) -> Num:
        """Bytes of activations: forward and sampling are not alive at once."""
        return maximum(self.forward, self.sampling)

    @property
    def fixed(self) -> Num:
        """All bytes that do not depend on requests."""
        return self.weights + self.workspace + self.reserve


def stage_of(whole: Ledger, layout: Layout, fmt: AnyFormat, engine: Engine, vocab: Num) -> Stage:
    """Return what one GPU of a stage holds; sizes may be arrays or symbols."""
    part = parallel.sharded(whole, layout)
    heads = [t for t in part.tensors if t.role == "head" and t.shard == "vocab"]
    forward, sampling = workspace(part, vocab if heads else 0, engine)
    weights = formats.weight_bytes(padded_for_kernels(part, fmt.name), fmt)
    plain = formats.weight_bytes(part, fmt)
    reserve = engine.reserve_bytes(layout.tp * layout.pp)
    return Stage(whole, part, plain, weights, forward, sampling, reserve)


def paged_bytes(ledger: Ledger, n: Num, batch: Num, bits: int, page: int) -> Num:
    """Return the cache bytes of ``batch`` sequences of n tokens in whole pages."""
    elements = sum(paged_elements(cache, n, page) for cache in ledger.caches)
    return batch * elements * bits // 8


class Deployment:
    """A model in a format on GPUs in a layout. Raises ``InputError`` where they do not match."""

    def __init__(
        self,
        model: Model,
        layout: Layout,
        dtype: str = "bf16",
        kv_dtype: str = "bf16",
        engine: Engine | None = None,
    ) -> None:
        parallel.check(model.ledger, layout)
        self.model = model
        self.layout = layout
        self.format = model.format(dtype)
        self.kv_format = formats.kv_format(kv_dtype)
        self.engine = engine or Engine()

    @cached_property
    def stages(self) -> list[Stage]:
        """One GPU of each pipeline stage."""
        vocab = self.model.spec.vocab_size
        return [
            stage_of(whole, self.layout, self.format, self.engine, vocab)
            for whole in parallel.stages(self.model.ledger, self.layout)
        ]

    def cache(self, stage: Stage, load: Load) -> int:
        """Bytes of cache on one GPU of a stage, each sequence as long as it is."""
        return memory.kv_bytes(stage.ledger, load.context, self._share(load), self.kv_format.bits)

    def cache_paged(self, stage: Stage, load: Load) -> int:
        """The same as an engine allocates it: whole pages."""
        bits, page = self.kv_format.bits, self.engine.page
        return paged_bytes(stage.ledger, load.context, self._share(load), bits, page)

    def _share(self, load: Load) -> int:
        """Sequences of one replica: data parallelism shares out the batch."""
        return ceil_div(load.batch, self.layout.dp)

    def need(self, load: Load) -> int:
        """Bytes on the most loaded GPU."""
        return max(stage.fixed + self.cache_paged(stage, load) for stage in self.stages)

    def busiest(self, load: Load) -> tuple[int, Stage]:
        """The stage whose GPUs hold most: its number and what one of them holds."""
        found = enumerate(self.stages)
        return max(found, key=lambda item: item[1].fixed + self.cache_paged(item[1], load))

    def fits(self, load: Load, capacity: int) -> bool:
        """Whether every GPU holds its part in ``budget`` of its capacity."""
        return self.need(load) <= self.budget(capacity)

    def budget(self, capacity: int) -> int:
        """Bytes of a GPU's memory that the engine takes."""
        return self.engine.budget(capacity)

    def largest_batch(self, context: int, capacity: int) -> int:
        """The most sequences of so many tokens that fit at once; 0 if none does.

        Every one costs the same, so this is a division; over ``MOST_TOKENS`` there is no limit.
        """
        room = min(
            (self.budget(capacity) - stage.fixed) // (self.cache_paged(stage, one) or 1)
            for one in [Load(context, self.layout.dp)]
            for stage in self.stages
        )
        return max(0, min(room, MOST_TOKENS)) * self.layout.dp

    def largest_context(self, batch: int, capacity: int) -> int | None:
        """The longest sequences of which ``batch`` fit; 0 if none, None for no limit.

        The true inverse of the cache's curve: windows fill up, states do not grow.
        """
        return last(lambda n: self.fits(Load(n, batch), capacity))


def last(holds: Callable[[int], bool]) -> int | None:
    """Return the largest n from 1 at which a condition holds that once broken stays broken.

    0 where it never holds, None where it holds at ``MOST_TOKENS`` still.
    """
    if not holds(1):
        return 0
    if holds(MOST_TOKENS):
        return None
    low, high = 1, 2
    while holds(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


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


def chosen(model: Model, gpus: int) -> Layout:
    """Return the layout of one replica on so many GPUs. Raises ``InputError`` if there is none."""
    for layout in layouts(model.ledger, gpus):
        return layout
    raise InputError(
        f"gpus = {gpus}: no tensor and pipeline sizes divide this model so; give --tp, --pp, --dp"
    )


def fewest(
    model: Model, load: Load, capacities: dict[str, int], dtype: str, kv_dtype: str, engine: Engine
) -> dict[str, Deployment | None]:
    """Return for each kind of GPU the smallest replica that fits; None above ``MOST_GPUS``.

    Sizes tried are powers of two. What a layout needs does not depend on the kind of GPU.
    """
    found: dict[str, Deployment | None] = dict.fromkeys(capacities)
    size = 1
    while size <= MOST_GPUS and None in found.values():
        for layout in layouts(model.ledger, size):
            deployment = Deployment(model, layout, dtype, kv_dtype, engine)
            for name, capacity in capacities.items():
                if found[name] is None and deployment.fits(load, capacity):
                    found[name] = deployment
        size *= 2
    return found


class Change(NamedTuple):
    """A single change after which a deployment fits: what to type, and why it helps."""

    option: str
    value: str
    text: str


def changes(deployment: Deployment, load: Load, capacity: int) -> list[Change]:
    """Return the single changes that make it fit, the least intrusive first.

    The order: the engine's share of memory, the cache's format, the batch, the context, the
    weights' format, more GPUs.
    """
    d = deployment

    def other(**fields: str) -> Deployment:
        dtype = fields.get("dtype", d.format.name)
        kv = fields.get("kv_dtype", d.kv_format.name)
        return Deployment(d.model, d.layout, dtype, kv, d.engine)

    found = []
    high = Fraction(95, 100)
    if d.engine.utilization < high and d.need(load) <= capacity * high:
        found.append(Change("--utilization", "0.95", "the engine takes 95% of the memory"))
    if d.kv_format.bits > 8 and other(kv_dtype="fp8").fits(load, capacity):
        found.append(Change("--kv-dtype", "fp8", "a cache of one byte an element"))
    batch = d.largest_batch(load.context, capacity)
    if 0 < batch < load.batch:
        found.append(Change("--batch", str(batch), "fewer sequences at once"))
    context = d.largest_context(load.batch, capacity)
    if context:
        found.append(Change("--context", str(context), "shorter sequences"))
    for dtype in ("fp8", "int4"):
        if formats.FORMATS[dtype].bits < d.format.bits and other(dtype=dtype).fits(load, capacity):
            found.append(Change("--dtype", dtype, "smaller weights"))
            break
    size = d.layout.gpus // d.layout.dp * 2
    while size <= MOST_GPUS:
        for layout in layouts(d.model.ledger, size):
            if Deployment(d.model, layout, d.format.name, d.kv_format.name, d.engine).fits(
                load, capacity
            ):
                found.append(Change("--gpus", str(size), f"as {layout.text()}"))
                return found
        size *= 2
    return found
