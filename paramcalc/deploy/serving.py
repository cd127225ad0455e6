"""The answer of ``paramcalc serve``: time to first token, tokens a second, what bounds them, cost.

One replica is pp stages of tp GPUs; data parallelism repeats it. A step advances every sequence of
the batch by one token; over pp stages the batch travels as pp parts, one a stage.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy import roofline
from paramcalc.deploy.figures import MICRO, Figure, Group
from paramcalc.deploy.fit import Deployment, Load
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.roofline import Machine, Step
from paramcalc.formats import AnyFormat
from paramcalc.numbers import ceil_div

HOUR = 3_600 * 10**9
"""Nanoseconds."""


def machine(
    gpu: Accelerator, fmt: AnyFormat, flops_percent: int, bandwidth_percent: int, hop: int
) -> Machine:
    """Return a GPU as the roofline sees it, in the arithmetic of a format of weights.

    Raises ``InputError`` where the GPU has no such arithmetic.
    """
    compute = formats.compute_format(fmt, gpu.peaks)
    link = gpu.link_one_way
    return Machine(
        gpu.bandwidth // 10**6,
        gpu.peak(compute) // 10**9,
        None if link is None else link // 10**6,
        bandwidth_percent,
        flops_percent,
        hop,
    )


class Workload(NamedTuple):
    """Requests: ``prompt`` tokens in, ``output`` tokens out, ``batch`` of them at once."""

    prompt: int
    output: int
    batch: int

    @property
    def context(self) -> int:
        """Tokens a sequence holds on average while it is written."""
        return self.prompt + self.output // 2

    @property
    def longest(self) -> Load:
        """What the cache must hold at worst."""
        return Load(self.prompt + self.output, self.batch)


class Service:
    """A deployment that serves a workload on one kind of GPU."""

    def __init__(
        self, deployment: Deployment, gpu: Accelerator, machine: Machine, work: Workload
    ) -> None:
        self.deployment = deployment
        self.gpu = gpu
        self.machine = machine
        self.work = work

    def at(self, *, batch: int | None = None, context: int | None = None) -> Service:
        """The same with another batch or prompt."""
        work = self.work
        if batch is not None:
            work = work._replace(batch=batch)
        if context is not None:
            work = work._replace(prompt=context)
        return Service(self.deployment, self.gpu, self.machine, work)

    @cached_property
    def steps(self) -> list[Step]:
        """Decode, stage by stage, each with its part of one replica's batch."""
        d = self.deployment
        part = ceil_div(self.replica_batch, d.layout.pp)
        return [
            roofline.decode(
                stage.whole,
                d.layout,
                self.machine,
                d.format,
                d.kv_format.bits,
                self.work.context,
                part,
            )
            for stage in d.stages
        ]

    @cached_property
    def passes(self) -> list[Step]:
        """Prefill of one prompt, stage by stage."""
        d = self.deployment
        return [
            roofline.prefill(
                stage.whole, d.layout, self.machine, d.format, d.kv_format.bits, self.work.prompt
            )
            for stage in d.stages
        ]

    @property
    def replica_batch(self) -> int:
        """Sequences of one replica."""
        return ceil_div(self.work.batch, self.deployment.layout.dp)

    @property
    def step_time(self) -> int:
        """Nanoseconds from one token of a request to its next: as many turns of the slowest stage
        as there are parts of the batch."""
        parts = min(self.replica_batch, len(self.steps))
        return max(sum(s.time for s in self.steps), parts * max(s.time for s in self.steps))

    @property
    def first_token(self) -> int:
        """Nanoseconds until a lone prompt has its first token: all stages, one after the other."""
        return sum(s.time for s in self.passes)

    @property
    def prefill_time(self) -> int:
        """Nanoseconds between prompts where they follow each other: the slowest stage."""
        return max(s.time for s in self.passes)

    @property
    def bound(self) -> str:
        """What bounds decode: memory, compute or exchange."""
        slowest = max(self.steps, key=lambda step: step.time)
        return bound(slowest)

    @property
    def decode_rate(self) -> int:
        """Tokens a second of all replicas while nothing is prefilled."""
        return self.work.batch * 10**9 // self.step_time

    @property
    def request_time(self) -> int:
        """Nanoseconds of one replica that a request costs: its prefill, and its share of steps."""
        return self.prefill_time + self.work.output * self.step_time // self.replica_batch

    @property
    def served_rate(self) -> int:
        """Tokens a second that all replicas write when prefill shares the GPUs with decode."""
        return self.deployment.layout.dp * self.work.output * 10**9 // self.request_time

    def cost(self, nanoseconds: int, tokens: int) -> int | None:
        """Micro-dollars for a million tokens, ``tokens`` of which take one replica so long.

        None where the GPU has no price.
        """
        price = self.gpu.price_per_hour_micro
        if price is None:
            return None
        layout = self.deployment.layout
        gpus = layout.gpus // layout.dp
        return ceil_div(price * gpus * nanoseconds * MICRO, HOUR * tokens)

    @property
    def fits(self) -> bool:
        """Whether the cache of the whole batch fits at its longest."""
        return self.deployment.fits(self.work.longest, self.gpu.visible_bytes)


def bound(step: Step) -> str:
    """Say what takes most of a step: memory, compute or exchange."""
    if step.exchange > max(step.memory, step.compute):
        return "exchange"
    return "memory" if step.memory >= step.compute else "compute"


def groups(s: Service) -> list[Group]:
    """Return the tables of the answer."""
    return [_prefill(s), _decode(s), _served(s)]


def _us(nanoseconds: int) -> int:
    return ceil_div(nanoseconds, 1000)


def _prefill(s: Service) -> Group:
    slowest = max(s.passes, key=lambda step: step.time)
    n = s.work.prompt
    figures = (
        Figure(
            "prefill_flops",
            "FLOPs, all GPUs",
            sum(step.work for step in s.passes) * s.deployment.layout.tp,
            "FLOPs",
            "derived",
            "causal, head at the last token",
        ),
        Figure(
            "time_to_first_token",
            "time to first token",
            _us(s.first_token),
            "microseconds",
            "assumed",
            "roofline, no queue",
        ),
        Figure(
            "prefill_tokens_per_second",
            "prompt tokens a second",
            s.deployment.layout.dp * n * 10**9 // s.prefill_time,
            "tokens/s",
            "assumed",
            f"bound by {bound(slowest)}",
        ),
        Figure(
            "cost_per_million_prompt_tokens",
            "cost of a million",
            s.cost(s.prefill_time, n),
            "microdollars",
            "derived",
            _priced(s),
        ),
    )
    return Group(f"Prefill of {n:,} tokens", figures)


def _priced(s: Service) -> str:
    price = s.gpu.price_per_hour_micro
    return "no price: --price" if price is None else f"${price / MICRO:,.2f} a GPU-hour"


def _decode(s: Service) -> Group:
    slowest = max(s.steps, key=lambda step: step.time)
    gpus = s.deployment.layout.gpus
    figures = (
        Figure(
            "decode_weight_bytes",
            "weights read, a GPU",
            slowest.weights,
            "bytes",
            "derived",
            "once a step",
        ),
        Figure(
            "decode_cache_bytes",
            "cache read, a GPU",
            slowest.cache,
            "bytes",
            "derived",
            f"at {s.work.context:,} tokens",
        ),
        Figure("decode_flops", "FLOPs, a GPU", slowest.work, "FLOPs", "derived", "exact / ranks"),
        Figure(
            "step_time",
            "one step",
            _us(s.step_time),
            "microseconds",
            "assumed",
            f"bound by {s.bound}",
        ),
        Figure(
            "exchange_time",
            "of which exchange",
            _us(slowest.exchange),
            "microseconds",
            "assumed",
            f"{s.machine.hop / 1000:g} µs a hop + link",
        ),
        Figure(
            "tokens_per_second_request",
            "a request",
            10**9 // s.step_time,
            "tokens/s",
            "assumed",
            "1 / step",
        ),
        Figure(
            "tokens_per_second",
            "all requests",
            s.decode_rate,
            "tokens/s",
            "assumed",
            "batch / step",
        ),
        Figure(
            "tokens_per_second_gpu",
            "a GPU",
            s.decode_rate // gpus,
            "tokens/s",
            "assumed",
            f"{gpus} GPUs",
        ),
        Figure(
            "cost_per_million_tokens",
            "cost of a million",
            s.cost(s.step_time, s.replica_batch),
            "microdollars",
            "derived",
            _priced(s),
        ),
    )
    return Group(f"Decode, batch {s.work.batch:,}", figures, ("step_time",))


def _served(s: Service) -> Group:
    w = s.work
    figures = (
        Figure(
            "request_seconds",
            "a request, start to end",
            _us(s.first_token + w.output * s.step_time),
            "microseconds",
            "assumed",
            "no queue, prefill apart",
        ),
        Figure(
            "served_tokens_per_second",
            "tokens written a second",
            s.served_rate,
            "tokens/s",
            "assumed",
            "prefill shares the GPUs",
        ),
        Figure(
            "served_tokens_per_second_gpu",
            "a GPU",
            s.served_rate // s.deployment.layout.gpus,
            "tokens/s",
            "assumed",
        ),
        Figure(
            "cost_per_million_served",
            "cost of a million written",
            s.cost(s.request_time, w.output),
            "microdollars",
            "derived",
            _priced(s),
        ),
    )
    return Group(f"Requests of {w.prompt:,} in, {w.output:,} out", figures)


BATCHES = tuple(2**i for i in range(11))


class Point(NamedTuple):
    """One line of the table against batch or context."""

    batch: int
    context: int
    step_microseconds: int
    tokens_per_second_request: int
    tokens_per_second_gpu: int
    bound: str
    fits: bool


def point(s: Service) -> Point:
    """Return a service's decode in short."""
    return Point(
        s.work.batch,
        s.work.context,
        _us(s.step_time),
        10**9 // s.step_time,
        s.decode_rate // s.deployment.layout.gpus,
        s.bound,
        s.fits,
    )


def against_batch(s: Service) -> list[Point]:
    """Return decode for batches of powers of two and the one asked for, up to 1,024."""
    sizes = sorted({*BATCHES, s.work.batch})
    return [point(s.at(batch=size)) for size in sizes if size >= s.deployment.layout.dp]


def against_context(s: Service) -> list[Point]:
    """Return decode for prompts of powers of four from 1,024 to the model's context."""
    top = max(s.deployment.model.context, s.work.prompt)
    sizes, size = {s.work.prompt}, 1024
    while size <= top:
        sizes.add(size)
        size *= 4
    return [point(s.at(context=size)) for size in sorted(sizes)]
