"""What fits: weights, cache, workspace and reserve on each GPU, and the inverse of them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from paramcalc import formats
from paramcalc.deploy import parallel
from paramcalc.deploy.engine import (
    Engine,
    check_settings,
    padded_for_kernels,
    paged_elements,
    workspace,
)
from paramcalc.deploy.parallel import Layout
from paramcalc.formats import AnyFormat
from paramcalc.layout import longest
from paramcalc.ledger import Ledger, Row
from paramcalc.model import Model
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.quantities import memory
from paramcalc.quantities.asked import whole

if TYPE_CHECKING:
    from paramcalc.spec import ModelSpec

MOST_TOKENS = 1 << 40
"""Where the search for a context stops: nothing in the cache grows any more."""
MOST_GPUS = 1024
NODE = 8
"""GPUs that tensor parallelism spans at most when a layout is chosen."""


class Load(NamedTuple):
    """What requests ask of a deployment: ``batch`` sequences of ``context`` tokens each."""

    context: int
    batch: int = 1


def beyond(spec: ModelSpec, tokens: int) -> str | None:
    """Say which length of a model's own so many tokens exceed; None where they do not."""
    table, own = longest(spec), spec.context
    if table is not None and tokens > table:
        return f"beyond its table of {table:,} positions"
    if own is not None and tokens > own:
        return f"beyond the model's own {own:,}"
    return None


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
    plain = formats.weight_bytes(part, fmt)
    padded = padded_for_kernels(part, fmt.name)
    weights = plain if padded is part else formats.weight_bytes(padded, fmt)
    reserve = engine.reserve_bytes(layout.tp * layout.pp)
    return Stage(whole, part, plain, weights, forward, sampling, reserve)


def paged_bytes(ledger: Ledger, n: Num, batch: Num, bits: int, page: int) -> Num:
    """Return the cache bytes of ``batch`` sequences of n tokens in whole pages."""
    return batch * _paged(ledger, n, page) * bits // 8


def _paged(ledger: Ledger, n: Num, page: int) -> Num:
    return sum(paged_elements(cache, n, page) for cache in ledger.caches)


class Deployment:
    """A model in a format on GPUs in a layout.

    Raises ``InputError`` where they do not match, and for settings, loads and capacities that are
    no sizes.
    """

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
        check_settings(self.engine)

    @cached_property
    def stages(self) -> list[Stage]:
        """One GPU of each pipeline stage; stages that hold the same are one object."""
        vocab = self.model.spec.vocab_size
        known: dict[tuple[Row, ...], Stage] = {}
        found = []
        for part in parallel.stages(self.model.ledger, self.layout):
            if part.rows not in known:
                known[part.rows] = stage_of(part, self.layout, self.format, self.engine, vocab)
            found.append(known[part.rows])
        return found

    @cached_property
    def _distinct(self) -> list[tuple[int, Stage]]:
        """The stages that differ, each with the number of the first of its kind."""
        first: dict[int, tuple[int, Stage]] = {}
        for number, stage in enumerate(self.stages):
            first.setdefault(id(stage), (number, stage))
        return list(first.values())

    def cache(self, stage: Stage, load: Load) -> int:
        """Bytes of cache on one GPU of a stage, each sequence as long as it is."""
        return memory.kv_bytes(stage.ledger, load.context, self._share(load), self.kv_format.bits)

    def cache_paged(self, stage: Stage, load: Load) -> int:
        """The same as an engine allocates it: whole pages."""
        bits, page = self.kv_format.bits, self.engine.page
        return paged_bytes(stage.ledger, load.context, self._share(load), bits, page)

    def _share(self, load: Load) -> int:
        """Sequences of one replica: data parallelism shares out the batch."""
        whole("context", load.context, 1)
        return ceil_div(whole("batch", load.batch, 1), self.layout.dp)

    def need(self, load: Load) -> int:
        """Bytes on the most loaded GPU."""
        return max(stage.fixed + self.cache_paged(stage, load) for _, stage in self._distinct)

    def busiest(self, load: Load) -> tuple[int, Stage]:
        """The stage whose GPUs hold most: its number from 0 and what one of them holds."""
        return max(self._distinct, key=lambda item: item[1].fixed + self.cache_paged(item[1], load))

    def fits(self, load: Load, capacity: int) -> bool:
        """Whether every GPU holds its part in ``budget`` of its capacity."""
        return self.need(load) <= self.budget(capacity)

    def budget(self, capacity: int) -> int:
        """Bytes of a GPU's memory that the engine takes."""
        return self.engine.budget(whole("capacity", capacity, 0))

    def largest_batch(self, context: int, capacity: int) -> int:
        """The most sequences of so many tokens that fit at once; 0 if none does.

        Every one costs the same, so this is a division; ``MOST_TOKENS`` a replica or more say that
        there is no limit.
        """
        return int(self.concurrency(context, capacity)) * self.layout.dp

    def concurrency(self, context: int, capacity: int) -> Fraction:
        """How often one replica's room holds a sequence of so many tokens, not rounded.

        At most ``MOST_TOKENS``: a model may keep no cache.
        """
        found = Fraction(MOST_TOKENS)
        whole("context", context, 1)
        bits, page = self.kv_format.bits, self.engine.page
        for _, stage in self._distinct:
            room = self.budget(capacity) - stage.fixed
            # bits, not bytes: two sequences of an odd number of 4-bit elements share a byte
            one = bits * _paged(stage.ledger, context, page)
            if room < 0:
                return Fraction(0)
            if one:
                found = min(found, Fraction(8 * room + 7, one))
        return found

    def largest_context(self, batch: int, capacity: int) -> int | None:
        """The longest sequences of which ``batch`` fit; 0 if none, None for no limit.

        The true inverse of the cache's curve: windows fill up, states do not grow. A learned table
        of positions ends it.
        """
        found, table = last(lambda n: self.fits(Load(n, batch), capacity)), self.table
        return found if table is None else table if found is None else min(found, table)

    @property
    def table(self) -> int | None:
        """Tokens that the model's learned positions are for; None where it has none."""
        return longest(self.model.spec)


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


class Change(NamedTuple):
    """A single change after which a deployment fits: what to type, and why it helps.

    Layout options in ``value`` stand in place of those that were typed.
    """

    option: str
    value: str
    text: str
