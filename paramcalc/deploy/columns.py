"""Figures of a deployment as columns of a sweep: the same folds as ``fit`` and ``serve``, named.

One replica is ``tp`` GPUs (no pipeline); ``gpus`` are shared out over replicas, and ``batch`` over
them. Sizes may be arrays or symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

from paramcalc import formats
from paramcalc.deploy import fit, roofline
from paramcalc.deploy.engine import for_gpu
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout, unit_rules
from paramcalc.deploy.roofline import Machine, Step
from paramcalc.deploy.serving import machine, per_million
from paramcalc.errors import InputError
from paramcalc.formats import AnyFormat
from paramcalc.layout import is_literal
from paramcalc.ledger import Ledger
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.quantities.catalogue import Known
from paramcalc.rules import Fit

FLOPS_PERCENT, BANDWIDTH_PERCENT, HOP = 60, 80, 10_000
"""What a sweep assumes, as ``paramcalc serve`` does by default."""


class Placed:
    """A model's ledger on GPUs of one kind, with what is asked of it.

    ``batch`` sequences of ``context`` tokens are on all ``gpus`` together. Raises ``InputError``
    where the GPU has no arithmetic for the format; unless times are wanted (``timed``), one without
    published rates is not judged, as in ``fit``.
    """

    def __init__(
        self,
        ledger: Ledger,
        gpu: Accelerator,
        fmt: AnyFormat,
        kv_bits: int,
        sizes: dict[str, Num],
        vocab: Num,
        *,
        timed: bool = True,
    ) -> None:
        self.ledger = ledger
        self.gpu = gpu
        self.format = fmt
        self.kv_bits = kv_bits
        self.gpus, self.context = sizes["gpus"], sizes["context"]
        self.replicas = sizes["gpus"] // sizes["tp"]
        self.layout = Layout(tp=sizes["tp"], dp=self.replicas)
        self.all_batch = sizes["batch"]
        self.batch = ceil_div(sizes["batch"], self.replicas)
        self.engine = for_gpu(gpu)
        self.vocab = vocab
        if timed:
            self.machine: Machine = machine(gpu, fmt, FLOPS_PERCENT, BANDWIDTH_PERCENT, HOP)
        else:
            formats.compute_format(fmt, gpu.peaks or None)

    @cached_property
    def stage(self) -> fit.Stage:
        """What one GPU holds before any request."""
        return fit.stage_of(self.ledger, self.layout, self.format, self.engine, self.vocab)

    @cached_property
    def cache(self) -> Num:
        """Bytes of cache on one GPU, in pages."""
        return self._cache(self.batch)

    def _cache(self, batch: Num) -> Num:
        return fit.paged_bytes(
            self.stage.ledger, self.context, batch, self.kv_bits, self.engine.page
        )

    @property
    def free(self) -> Num:
        """Bytes to spare on one GPU; negative where it does not fit."""
        return self.engine.budget(self.gpu.visible_bytes) - self.stage.fixed - self.cache

    @property
    def largest_batch(self) -> Num:
        """Sequences that fit on all GPUs; 0 where none does. Raises ``InputError`` for a
        model without a cache, of which any number does."""
        one = self._cache(1)
        if is_literal(one, 0):
            raise InputError("largest_batch: no cache is kept, so there is no limit; leave it out")
        room = self.engine.budget(self.gpu.visible_bytes) - self.stage.fixed
        return maximum(0, room // one) * self.replicas

    @cached_property
    def step(self) -> Step:
        """One decode step."""
        return roofline.decode(
            self.ledger,
            self.layout,
            self.machine,
            self.format,
            self.kv_bits,
            self.context,
            self.batch,
        )

    @cached_property
    def first(self) -> Step:
        """Prefill of one prompt of ``context`` tokens."""
        return roofline.prefill(
            self.ledger, self.layout, self.machine, self.format, self.kv_bits, self.context
        )

    @property
    def price(self) -> int:
        """Micro-dollars of a GPU-hour. Raises ``InputError`` where nobody gave one."""
        price = self.gpu.price_per_hour_micro
        if price is None:
            raise InputError(f"price: {self.gpu.name} has none; add --price 2.49")
        return price

    @property
    def prompt_cost(self) -> Num:
        """Micro-dollars of a million prompt tokens, ``context`` of them in each prompt."""
        return per_million(self.price, self.layout.tp, self.first.time, self.context)

    @property
    def cost(self) -> Num:
        """Micro-dollars of a million tokens while nothing is prefilled, idle replicas paid too."""
        return per_million(self.price, self.gpus, self.step.time, self.all_batch)


class Deployed(NamedTuple):
    """A column: its unit, how it is known, and its fold.

    What rests on the engine's settings or on shares of a peak is assumed.
    """

    key: str
    unit: str
    known: Known
    of: Callable[[Placed], Num]

    @property
    def timed(self) -> bool:
        """Whether it is a time of tokens, or money for them: not of a model that writes none."""
        return self.key.startswith(("step_", "first_", "tokens_", "cost_per_million"))


_ALL = (
    Deployed("gpu_bytes", "bytes", "measured", lambda p: p.gpu.visible_bytes),
    Deployed("gpu_weight_bytes", "bytes", "derived", lambda p: p.stage.weights),
    Deployed("gpu_kv_bytes", "bytes", "derived", lambda p: p.cache),
    Deployed("gpu_bytes_needed", "bytes", "assumed", lambda p: p.stage.fixed + p.cache),
    Deployed("gpu_free_bytes", "bytes", "assumed", lambda p: p.free),
    Deployed("largest_batch", "sequences", "assumed", lambda p: p.largest_batch),
    Deployed("step_nanoseconds", "nanoseconds", "assumed", lambda p: p.step.time),
    Deployed("first_token_nanoseconds", "nanoseconds", "assumed", lambda p: p.first.time),
    Deployed(
        "tokens_per_second", "tokens/s", "assumed", lambda p: p.all_batch * 10**9 // p.step.time
    ),
    Deployed("tokens_per_second_request", "tokens/s", "assumed", lambda p: 10**9 // p.step.time),
    Deployed(
        "tokens_per_second_gpu",
        "tokens/s",
        "assumed",
        lambda p: p.all_batch * 10**9 // (p.step.time * p.gpus),
    ),
    Deployed("cost_per_hour", "microdollars", "derived", lambda p: p.price * p.gpus),
    Deployed("cost_per_million_tokens", "microdollars", "assumed", lambda p: p.cost),
    Deployed("cost_per_million_prompt_tokens", "microdollars", "assumed", lambda p: p.prompt_cost),
)
COLUMNS = {column.key: column for column in _ALL}


def fits(ledger: Ledger, gpus: Any, tp: Any) -> Iterator[Fit]:
    """Yield the rules of a layout, in arithmetic that ints and arrays share."""
    yield Fit(
        "gpus",
        gpus,
        gpus % tp != 0,
        "gpus must be a multiple of tp",
        lambda: ("must be a multiple of tp", "change one of them"),
    )
    for rule, units, broken in unit_rules(ledger, tp):
        yield Fit("tp", tp, broken, rule, partial(_explained, units))


def _explained(units: Any) -> tuple[str, str]:
    return f"must divide {units}", "lower it"
