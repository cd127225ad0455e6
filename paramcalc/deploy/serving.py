"""Serving a workload on GPUs: time to first token, tokens a second, what bounds them, cost.

One replica is pp stages of tp GPUs; data parallelism repeats it. A step advances every sequence of
the batch by one token; over pp stages the batch travels as pp parts, one a stage.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy import roofline
from paramcalc.deploy.arithmetic import leaves_some, sixteen
from paramcalc.deploy.figures import MICRO
from paramcalc.deploy.fit import MOST_TOKENS, Deployment, Load, last
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.roofline import Machine, Step
from paramcalc.errors import InputError
from paramcalc.formats import AnyFormat
from paramcalc.numbers import Num, ceil_div
from paramcalc.quantities.asked import whole

HOUR = 3_600 * 10**9
"""Nanoseconds."""
SECOND = 10**9


def machine(
    gpu: Accelerator, fmt: AnyFormat, flops_percent: int, bandwidth_percent: int, hop: int
) -> Machine:
    """Return a GPU as the roofline sees it, in the arithmetic of a format of weights.

    ``hop`` is in nanoseconds. What the format leaves in 16 bits is multiplied at the rate of BF16
    or FP16. Raises ``InputError`` where the GPU has no such arithmetic (``lack``), or is too slow
    to be counted, and for shares that are no whole percents from 1 to 100.
    """
    for name, share in (("flops_percent", flops_percent), ("bandwidth_percent", bandwidth_percent)):
        if whole(name, share, 1) > 100:
            raise InputError(f"{name} = {share}: must be at most 100; lower it")
    whole("hop", hop, 0)
    peak = gpu.peak(formats.compute_format(fmt, gpu.peaks) if gpu.peaks else fmt.name)
    plain = None
    if leaves_some(fmt):
        plain = _rate(gpu, "peak", gpu.peak(sixteen(gpu, fmt)), 10**9)
    link = gpu.link_one_way
    return Machine(
        _rate(gpu, "bandwidth", gpu.bandwidth, 10**6),
        _rate(gpu, "peak", peak, 10**9),
        None if link is None else _rate(gpu, "link", link, 10**6),
        bandwidth_percent,
        flops_percent,
        hop,
        plain,
    )


def _rate(gpu: Accelerator, name: str, amount: int, unit: int) -> int:
    """A rate in a unit, of which a percent must be left. Raises ``InputError``."""
    if amount < 100 * unit:
        raise InputError(
            f"gpu = {gpu.name}: its {name} of {amount:,} a second is below {100 * unit:,}; check it"
        )
    return amount // unit


class Workload(NamedTuple):
    """Requests: ``prompt`` tokens in, ``output`` tokens out, ``batch`` of them at once."""

    prompt: int
    output: int
    batch: int

    @property
    def longest(self) -> Load:
        """What the cache must hold at worst."""
        return Load(self.prompt + self.output, self.batch)


class Service:
    """A deployment that serves a workload on one kind of GPU.

    Raises ``InputError`` for a model that does not write, and for sizes beyond all use.
    """

    def __init__(
        self, deployment: Deployment, gpu: Accelerator, machine: Machine, work: Workload
    ) -> None:
        if not deployment.model.spec.writes:
            raise InputError(
                f"model = {deployment.model.name}: every token sees all others, so it writes none;"
                " take a decoder"
            )
        for name, size in work._asdict().items():
            if whole(name, size, 1) > MOST_TOKENS:
                raise InputError(f"{name} = {size:,}: must be from 1 to {MOST_TOKENS:,}; change it")
        self.deployment = deployment
        self.gpu = gpu
        self.machine = machine
        self.work = work

    def at(self, *, batch: int | None = None, prompt: int | None = None) -> Service:
        """The same with another batch or prompt."""
        work = self.work
        if batch is not None:
            work = work._replace(batch=batch)
        if prompt is not None:
            work = work._replace(prompt=prompt)
        return Service(self.deployment, self.gpu, self.machine, work)

    @property
    def layout(self) -> Layout:
        """How the GPUs share the work."""
        return self.deployment.layout

    @property
    def has_encoder(self) -> bool:
        """Whether an encoder reads the prompt, and the decoder sees it by cross attention."""
        return self.deployment.model.spec.encoder is not None

    @property
    def context(self) -> int:
        """Tokens a sequence holds on average while it is written; its own, beside an encoder's."""
        own = self.work.output // 2
        return max(1, own) if self.has_encoder else self.work.prompt + own

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
                self.context,
                part,
                self.work.prompt if self.has_encoder else None,
            )
            for stage in d.stages
        ]

    @cached_property
    def passes(self) -> list[Step]:
        """Prefill of one prompt, stage by stage."""
        return self._passes(1)

    @cached_property
    def full_passes(self) -> list[Step]:
        """Prefill of as many prompts as an engine takes into one step, stage by stage."""
        return self._passes(self.prompts_together)

    @property
    def prompts_together(self) -> int:
        """Prompts that a replica prefills in one step: what it has, up to the engine's tokens."""
        room = self.deployment.engine.max_batched_tokens // self.work.prompt
        return max(1, min(room, self.replica_batch))

    def _passes(self, prompts: int) -> list[Step]:
        d = self.deployment
        bits, n, reads = d.kv_format.bits, self.work.prompt, self.has_encoder
        return [
            roofline.prefill(s.whole, d.layout, self.machine, d.format, bits, n, prompts, reads)
            for s in d.stages
        ]

    @property
    def prefill_flops(self) -> int:
        """FLOPs of a prompt in the whole model: causal, the head at its last token alone."""
        d = self.deployment
        bits, prompt = d.kv_format.bits, self.work.prompt
        ledger = d.model.ledger
        return roofline.prefill(ledger, Layout(), self.machine, d.format, bits, prompt).work

    @property
    def replica_batch(self) -> int:
        """Sequences of one replica, the fullest."""
        return ceil_div(self.work.batch, self.layout.dp)

    @property
    def slowest(self) -> Step:
        """The stage that decode waits for."""
        return max(self.steps, key=lambda step: step.time)

    @property
    def step_time(self) -> int:
        """Nanoseconds from one token of a request to its next: as many turns of the slowest stage
        as there are parts of the batch, and at least once through all stages."""
        parts = min(self.replica_batch, len(self.steps))
        return max(sum(s.time for s in self.steps), parts * self.slowest.time)

    @property
    def first_token(self) -> int:
        """Nanoseconds until a lone prompt has its first token: all stages, one after the other."""
        return sum(s.time for s in self.passes)

    @property
    def prefill_time(self) -> int:
        """Nanoseconds a prompt takes where full steps follow each other: the slowest stage's."""
        return ceil_div(max(s.time for s in self.full_passes), self.prompts_together)

    @property
    def bound(self) -> str:
        """What bounds decode: memory, compute or exchange."""
        return bound(self.slowest)

    @property
    def decode_rate(self) -> int:
        """Tokens a second of all replicas while nothing is prefilled."""
        return self.work.batch * SECOND // self.step_time

    @property
    def request_time(self) -> int:
        """Nanoseconds from a request's start to its last token, where none waits: the first token
        comes from its prefill."""
        return self.first_token + (self.work.output - 1) * self.step_time

    @property
    def cycle_time(self) -> int:
        """Nanoseconds in which a replica serves its batch once, prefill and decode in turn."""
        decode = (self.work.output - 1) * self.step_time
        return self.replica_batch * self.prefill_time + decode

    @property
    def served_rate(self) -> int:
        """Tokens a second that all replicas write when prefill shares the GPUs with decode."""
        return self.work.batch * self.work.output * SECOND // self.cycle_time

    def cost(self, nanoseconds: int, tokens: int) -> int | None:
        """Micro-dollars for a million tokens, ``tokens`` of which take one replica so long.

        None where the GPU has no price.
        """
        return self._cost(self.layout.gpus // self.layout.dp, nanoseconds, tokens)

    def cost_of_all(self, nanoseconds: int, tokens: int) -> int | None:
        """The same where all GPUs together take so long: replicas that idle are paid, too."""
        return self._cost(self.layout.gpus, nanoseconds, tokens)

    def _cost(self, gpus: int, nanoseconds: int, tokens: int) -> int | None:
        price = self.gpu.price_per_hour_micro
        if price is None:
            return None
        return per_million(price, gpus, nanoseconds, tokens)

    @property
    def fits(self) -> bool:
        """Whether the cache of the whole batch fits at its longest."""
        return self.deployment.fits(self.work.longest, self.gpu.visible_bytes)

    @cached_property
    def largest_batch(self) -> int:
        """The most requests at once: what the cache holds at its longest, and the engine samples.

        0 where none fits.
        """
        d = self.deployment
        room = d.largest_batch(self.work.longest.context, self.gpu.visible_bytes)
        return min(room, self.sampled, MOST_TOKENS)

    @property
    def sampled(self) -> int:
        """The most requests that the engines of all replicas sample at once."""
        return self.deployment.engine.max_seqs * self.layout.dp

    @cached_property
    def ridge(self) -> int | None:
        """The smallest batch at which decode is bound by compute; None where memory always bounds
        it, since the cache takes longer to read than its tokens to compute."""

        def by_memory(batch: int) -> bool:
            step = self.at(batch=batch).slowest
            return step.memory >= step.compute

        most = last(by_memory)
        return None if most is None else most + 1


def per_million(price: Num, gpus: Num, nanoseconds: Num, tokens: Num) -> Num:
    """Return the micro-dollars of a million tokens, rounded up, where ``gpus`` GPUs at ``price``
    micro-dollars an hour take ``nanoseconds`` for ``tokens`` tokens."""
    return ceil_div(price * gpus * nanoseconds, HOUR // MICRO * tokens)


def bound(step: Step) -> str:
    """Say what takes most of a step: memory, compute or exchange."""
    if step.exchange > max(step.memory, step.compute):
        return "exchange"
    return "memory" if step.memory >= step.compute else "compute"
