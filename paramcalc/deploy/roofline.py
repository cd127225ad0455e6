"""Prefill and decode on a roofline: what bounds a step, and how long it takes.

A step takes as long as its arithmetic or its memory traffic, whichever is longer (Williams,
Waterman and Patterson 2009, doi:10.1145/1498765.1498785), each at an assumed share of the
datasheet's peak, and what ranks exchange comes on top. Memory traffic is weights and cache: a token
that is written (one position of many read) and activations, which fused kernels keep on the chip,
are left out. Times are whole nanoseconds in plain arithmetic, so that a sweep runs the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy.exchange import Link, exchange, spreads
from paramcalc.deploy.moe_load import experts_share
from paramcalc.deploy.parallel import Layout, shard
from paramcalc.formats import AnyFormat
from paramcalc.formats.mixed import Mixed
from paramcalc.ledger import Cache, Ledger, Operation, Stream, Tensor
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.sight import Both

SHARE = 1 << 20
"""Shares of experts are kept in units of 2^-20."""


class Machine(NamedTuple):
    """One GPU: bytes a microsecond, dense FLOPs a nanosecond, bytes a microsecond to a peer.

    ``peak`` is that of the weights' format; ``plain`` that of what the format leaves in 16 bits and
    of attention (None: the same). The two shares, in percent, are what a good kernel reaches:
    assumed, as is ``hop``, the nanoseconds an exchange waits whatever it carries. ``link`` is None
    where it is not known.
    """

    bandwidth: Num
    peak: Num
    link: Num | None = None
    bandwidth_percent: int = 80
    flops_percent: int = 60
    hop: int = 10_000
    plain: Num | None = None

    def reading(self, size: Num) -> Num:
        """Nanoseconds to read so many bytes."""
        return ceil_div(size * 1000, self.bandwidth * self.bandwidth_percent // 100)

    def computing(self, work: Work) -> Num:
        """Nanoseconds for so many FLOPs."""
        if self.plain is None:
            return ceil_div(work.total, self.peak * self.flops_percent // 100)
        fast = ceil_div(work.fast, self.peak * self.flops_percent // 100)
        return fast + ceil_div(work.plain, self.plain * self.flops_percent // 100)


class Work(NamedTuple):
    """FLOPs of one GPU: ``fast`` in the arithmetic of the weights' format, ``plain`` in 16 bits."""

    fast: Num
    plain: Num

    @property
    def total(self) -> Num:
        """Both."""
        return self.fast + self.plain

    def plus(self, other: Work) -> Work:
        """The sum with another."""
        return Work(self.fast + other.fast, self.plain + other.plain)


class Step(NamedTuple):
    """What one pass over a stage costs one GPU: bytes moved, FLOPs, nanoseconds of each part."""

    weights: Num
    cache: Num
    work: Num
    memory: Num
    compute: Num
    exchange: Num

    @property
    def time(self) -> Num:
        """Nanoseconds of the pass."""
        return maximum(self.memory, self.compute) + self.exchange


def decode(
    ledger: Ledger,
    layout: Layout,
    machine: Machine,
    fmt: AnyFormat,
    kv_bits: int,
    context: Num,
    batch: Num,
    source: Num | None = None,
) -> Step:
    """Return the step that adds a token to ``batch`` sequences of ``context`` tokens.

    ``ledger`` is a stage's, whole; ``batch`` is what one replica holds; cross attention sees
    ``source`` positions of an encoder that has run before (None: ``context``).
    """
    source = context if source is None else source
    weights = weights_read(ledger, layout, fmt, batch)
    cache = batch * cache_read(ledger, layout, context, source) * kv_bits // 8
    work = _writing(ledger, layout, fmt, context, source, batch)
    waited = exchange(ledger, layout, Link(machine.link, machine.hop), batch, batch)
    return _step(machine, weights, cache, work, waited)


def prefill(
    ledger: Ledger,
    layout: Layout,
    machine: Machine,
    fmt: AnyFormat,
    kv_bits: int,
    prompt: Num,
    prompts: Num = 1,
    encoder: bool | None = None,
) -> Step:
    """Return the pass over ``prompts`` of ``prompt`` tokens each: causal, the head at each one's
    last token alone.

    With an ``encoder`` (None: where the ledger has one) a prompt is its input, and the decoder
    writes one token. An engine that cuts long prompts reads weights and cache once a piece, beside
    many FLOPs: not counted.
    """
    if encoder is None:
        encoder = any(layer.stream == "source" for layer in ledger.layers)
    link = Link(machine.link, machine.hop)
    tokens = prompts * prompt
    kept: Num = sum(row.elements(prompt) for row in _caches(ledger, layout))
    if encoder:
        work = _matrices(ledger, layout, fmt, tokens, 0, "source")
        pairs = _between(ledger, layout, lambda o: o.sight.pairs(prompt), "source")
        work = work.plus(_writing(ledger, layout, fmt, 1, prompt, prompts))
        weights = weights_read(ledger, layout, fmt, tokens, "source")
        weights = weights + weights_read(ledger, layout, fmt, prompts)
        waited = exchange(ledger, layout, link, tokens, 0, "source")
        waited = waited + exchange(ledger, layout, link, prompts, prompts)
    else:
        work = _matrices(ledger, layout, fmt, tokens, prompts)
        pairs = _between(ledger, layout, lambda o: o.sight.pairs(prompt))
        weights = weights_read(ledger, layout, fmt, tokens)
        waited = exchange(ledger, layout, link, tokens, prompts)
    work = work.plus(Work(0, prompts * pairs))
    return _step(machine, weights, prompts * kept * kv_bits // 8, work, waited)


def _step(machine: Machine, weights: Num, cache: Num, work: Work, waited: Num) -> Step:
    memory, compute = machine.reading(weights + cache), machine.computing(work)
    return Step(weights, cache, work.total, memory, compute, waited)


def _writing(
    ledger: Ledger, layout: Layout, fmt: AnyFormat, context: Num, source: Num, batch: Num
) -> Work:
    """FLOPs of one more token for each of ``batch`` sequences, on one GPU."""
    absorbed = _absorbed(ledger)

    def sees(operation: Operation) -> Num:
        return operation.sight.positions(source if _crosses(operation) else context)

    pairs = _between(ledger, layout, sees, instead=absorbed)
    return _matrices(ledger, layout, fmt, batch, batch).plus(Work(0, batch * pairs))


def _crosses(row: Operation | Cache) -> bool:
    """Whether a decoder's row sees an encoder's positions."""
    return isinstance(row.sight, Both)


def _matrices(
    ledger: Ledger,
    layout: Layout,
    fmt: AnyFormat,
    tokens: Num,
    sampled: Num,
    stream: Stream = "token",
) -> Work:
    """FLOPs of ``tokens`` in matrices on one GPU, in the head those of ``sampled`` of them.

    What is not divided every rank computes; experts get equal shares of the tokens.
    """
    fast: Num = 0
    plain: Num = 0
    for tensor in ledger.tensors:
        if tensor.stream != stream or tensor.use not in ("matmul", "conv") or _idle(tensor):
            continue
        if tensor.shard.startswith("expert"):
            flops = ceil_div(tensor.flops, layout.tp)
        else:
            flops = _part(tensor, layout).flops
        flops = (sampled if tensor.role == "head" else tokens) * flops
        if isinstance(fmt, Mixed) or formats.quantizes(fmt, tensor):
            fast = fast + flops
        else:
            plain = plain + flops
    return Work(fast, plain)


def _between(
    ledger: Ledger,
    layout: Layout,
    sees: Callable[[Operation], Num],
    stream: Stream = "token",
    instead: dict[str, Num] | None = None,
) -> Num:
    """FLOPs between positions on one GPU: heads are shared out where their matrices are."""
    divided = {_parent(t.name) for t in ledger.tensors if t.shard != "replicated"}
    shared: Num = 0
    whole: Num = 0
    for operation in ledger.operations:
        if operation.stream != stream:
            continue
        pair = (instead or {}).get(operation.name, operation.flops_per_pair)
        flops = operation.copies * pair * sees(operation)
        if _parent(operation.name) in divided:
            shared = shared + flops
        else:
            whole = whole + flops
    return ceil_div(shared, layout.tp) + whole


def _parent(name: str) -> str:
    return name.rpartition(".")[0]


def _absorbed(ledger: Ledger) -> dict[str, Num]:
    """FLOPs a pair of latent attention in decode, by operation: each head reads the cached latent
    itself, its up-projections moved to the query and the output (DeepSeek-V2, arXiv:2405.04434,
    section 2.1.2), which costs a token as much as before."""
    tensors = {tensor.name: tensor for tensor in ledger.tensors}
    found: dict[str, Num] = {}
    for cache in ledger.caches:
        own = _parent(cache.name)
        up = tensors.get(f"{own}.kv_up")
        if cache.kind == "latent" and up is not None and up.units is not None:
            found[f"{own}.scores"] = 2 * up.units * cache.per_position
            found[f"{own}.values"] = 2 * up.units * up.shape[-1]
    return found


def weights_read(
    ledger: Ledger, layout: Layout, fmt: AnyFormat, tokens: Num, stream: Stream = "token"
) -> Num:
    """Return the bytes of weights one GPU reads when ``tokens`` of its replica pass.

    Lookups and buffers cost nothing; a layer that runs again is read again. Of the experts those
    are read that some token goes to, under uniform routing.
    """
    total: Num = 0
    for tensor in ledger.tensors:
        if tensor.use in ("lookup", "buffer") or tensor.stream != stream or _idle(tensor):
            continue
        part = _part(tensor, layout)
        if not tensor.shard.startswith("expert"):
            total = total + formats.tensor_bytes(part._replace(copies=tensor.runs), fmt)
            continue
        experts = maximum(tensor.copies, 1)  # as a size, a kind's layers may be none
        share = experts_share(experts, tensor.active, _meeting(layout, tokens), SHARE)
        total = total + formats.tensor_bytes(part, fmt) * share // SHARE
    return total


def _meeting(layout: Layout, tokens: Num) -> Num:
    """The tokens that meet at one set of experts: those of all replicas it is spread over."""
    if not spreads(layout):
        return tokens
    return ceil_div(tokens * layout.ep * layout.expert_tp, layout.tp)


def _idle(tensor: Tensor) -> bool:
    return type(tensor.runs) is int and tensor.runs == 0


def _part(tensor: Tensor, layout: Layout) -> Tensor:
    own = shard(tensor, layout)
    assert isinstance(own, Tensor)
    return own


def _caches(ledger: Ledger, layout: Layout) -> list[Cache]:
    rows = (shard(row, layout) for row in ledger.caches)
    return [row for row in rows if isinstance(row, Cache)]


def cache_read(ledger: Ledger, layout: Layout, context: Num, source: Num | None = None) -> Num:
    """Return the elements of cache one GPU reads for one sequence's next token."""
    source = context if source is None else source
    return sum(
        row.copies * row.per_position * row.sight.positions(source if _crosses(row) else context)
        for row in _caches(ledger, layout)
    )
