"""Prefill and decode on a roofline: what bounds a step, and how long it takes.

A step takes as long as its arithmetic or its memory traffic, whichever is longer (Williams et al.
2009), each at an assumed share of the datasheet's peak, and what ranks exchange comes on top. Times
are whole nanoseconds in plain arithmetic, so that a sweep runs the same code.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy.moe_load import experts_share
from paramcalc.deploy.parallel import Layout, several, shard
from paramcalc.formats import AnyFormat
from paramcalc.ledger import Cache, Ledger, Tensor
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.quantities import flops

SHARE = 1 << 20
"""Shares of experts are kept in units of 2^-20."""


class Machine(NamedTuple):
    """One GPU: bytes a microsecond, dense FLOPs a nanosecond, bytes a microsecond to a peer.

    The two shares, in percent, are what a good kernel reaches: assumed, as is ``hop``, the
    nanoseconds an all-reduce waits whatever it carries. ``link`` is None where it is not known.
    """

    bandwidth: Num
    peak: Num
    link: Num | None = None
    bandwidth_percent: int = 80
    flops_percent: int = 60
    hop: int = 10_000

    def reading(self, size: Num) -> Num:
        """Nanoseconds to read so many bytes."""
        return ceil_div(size * 100_000, self.bandwidth * self.bandwidth_percent)

    def computing(self, work: Num) -> Num:
        """Nanoseconds for so many FLOPs."""
        return ceil_div(work * 100, self.peak * self.flops_percent)


class Step(NamedTuple):
    """What one pass over a stage costs one GPU: bytes read, FLOPs, nanoseconds of each part."""

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
) -> Step:
    """Return the step that adds a token to ``batch`` sequences of ``context`` tokens.

    ``ledger`` is a stage's, whole; ``batch`` is what one replica holds. Experts are read only if a
    token goes there (uniform routing over the tokens of all data-parallel ranks).
    """
    weights = weights_read(ledger, layout, fmt, batch * layout.dp)
    cache = batch * cache_read(ledger, layout, context) * kv_bits // 8
    work = ceil_div(batch * _decoding(ledger, context), layout.tp)
    return _step(ledger, layout, machine, weights, cache, work, batch)


def prefill(
    ledger: Ledger, layout: Layout, machine: Machine, fmt: AnyFormat, kv_bits: int, prompt: Num
) -> Step:
    """Return the pass over one prompt: causal, the head at its last token alone."""
    head = sum(t.flops for t in ledger.tensors if t.role == "head" and t.stream == "token")
    work = ceil_div(flops.prefill(ledger, prompt) - (prompt - 1) * head, layout.tp)
    weights = weights_read(ledger, layout, fmt, prompt)
    cache = cache_read(ledger, layout, prompt) * kv_bits // 8
    return _step(ledger, layout, machine, weights, cache, work, prompt)


def _step(
    ledger: Ledger,
    layout: Layout,
    machine: Machine,
    weights: Num,
    cache: Num,
    work: Num,
    tokens: Num,
) -> Step:
    memory, compute = machine.reading(weights + cache), machine.computing(work)
    return Step(weights, cache, work, memory, compute, exchange(ledger, layout.tp, machine, tokens))


def exchange(ledger: Ledger, tp: Num, machine: Machine, tokens: Num) -> Num:
    """Nanoseconds of the all-reduces of tensor parallelism: one after each row-split matrix.

    A ring moves 2 (tp - 1) / tp of the vector (16 bits an element) over each link.
    """
    if type(tp) is int and tp == 1:
        return 0
    rows = [t for t in ledger.tensors if t.shard.endswith("row") and t.stream == "token"]
    total: Num = 0
    for name in dict.fromkeys(_group(t) for t in rows):
        own = next(t for t in rows if _group(t) == name)
        layers = own.runs if not own.shard.startswith("expert") else _layers(ledger, own)
        moved: Num = 0
        if machine.link is not None:
            size = 2 * tokens * own.shape[0] * 2 * (tp - 1)
            moved = ceil_div(size * 1000, tp * machine.link)
        total = total + layers * (moved + several(tp) * machine.hop)
    return total


def _group(tensor: Tensor) -> str:
    """Experts and the shared network beside them are summed in one exchange."""
    return tensor.name.replace(".experts.*", "").replace(".shared", "")


def _layers(ledger: Ledger, tensor: Tensor) -> Num:
    """The layers of the kind that a row of experts stands in."""
    return sum(k.n_layers for k in ledger.layers if tensor.name.startswith(k.prefix))


def _decoding(ledger: Ledger, context: Num) -> Num:
    """FLOPs of one more token: an encoder has run before."""
    matmuls = sum(t.flops for t in ledger.tensors if t.stream == "token")
    pairs = sum(
        o.copies * o.flops_per_pair * o.sight.positions(context)
        for o in ledger.operations
        if o.stream == "token"
    )
    return matmuls + pairs


def weights_read(ledger: Ledger, layout: Layout, fmt: AnyFormat, tokens: Num) -> Num:
    """Return the bytes of weights one GPU reads when ``tokens`` pass: lookups cost nothing."""
    total: Num = 0
    for tensor in ledger.tensors:
        if tensor.use == "lookup" or tensor.stream != "token" or _idle(tensor):
            continue
        if not tensor.shard.startswith("expert"):
            run = tensor._replace(copies=tensor.runs)
            total = total + _bytes(run, layout, fmt)
            continue
        share = experts_share(tensor.copies, tensor.active, tokens, SHARE)
        total = total + _bytes(tensor, layout, fmt) * share // SHARE
    return total


def _idle(tensor: Tensor) -> bool:
    return type(tensor.runs) is int and tensor.runs == 0


def _bytes(tensor: Tensor, layout: Layout, fmt: AnyFormat) -> Num:
    own = shard(tensor, layout)
    assert isinstance(own, Tensor)
    return formats.tensor_bytes(own, fmt)


def cache_read(ledger: Ledger, layout: Layout, context: Num) -> Num:
    """Return the elements of cache one GPU reads for one sequence's next token."""
    rows = [shard(row, layout) for row in ledger.caches]
    return sum(
        row.copies * row.per_position * row.sight.positions(context)
        for row in rows
        if isinstance(row, Cache)
    )
