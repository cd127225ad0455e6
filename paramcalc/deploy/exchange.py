"""What GPUs of one replica exchange in a step, and how long it takes.

* Tensor parallelism (Megatron-LM, arXiv:1909.08053, section 3): an all-reduce of the hidden vectors
  after each matrix that is split by rows and after a split embedding; the logits are gathered.
  A ring all-reduce moves 2 (p - 1) / p of the vector over each link, a gather half of that.
* Experts spread over data-parallel ranks (GShard, arXiv:2006.16668, section 3.2): each token's
  vector goes to its k experts and comes back, but for the share of them on its own rank. Engines
  that send a vector once a rank, or in 8 bits, send less. Where experts are spread over the
  tensor-parallel ranks alone, every rank has the tokens already and the all-reduce combines them.
* Pipeline stages hand on the hidden vectors.

Elements have 16 bits. Each exchange waits a hop, whatever it carries; nothing overlaps with work.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.deploy.parallel import Layout, several
from paramcalc.ledger import Ledger, Stream, Tensor
from paramcalc.numbers import Num, ceil_div

ELEMENT = 2
"""Bytes of an element on a link."""


class Link(NamedTuple):
    """A link between GPUs: bytes a microsecond one way (None: not known), nanoseconds of a hop."""

    rate: Num | None
    hop: int

    def sending(self, size: Num, ranks: Num = 1) -> Num:
        """Nanoseconds to send ``size / ranks`` bytes."""
        return 0 if self.rate is None else ceil_div(size * 1000, ranks * self.rate)

    def reducing(self, size: Num, ranks: Num) -> Num:
        """Nanoseconds of a ring all-reduce of so many bytes."""
        return self.sending(2 * (ranks - 1) * size, ranks) + several(ranks) * self.hop

    def gathering(self, size: Num, ranks: Num) -> Num:
        """Nanoseconds of a ring all-gather to so many bytes."""
        return self.sending((ranks - 1) * size, ranks) + several(ranks) * self.hop


def exchange(
    ledger: Ledger,
    layout: Layout,
    link: Link,
    tokens: Num,
    sampled: Num,
    stream: Stream = "token",
) -> Num:
    """Return the nanoseconds that one GPU of a stage spends on exchange in a step.

    ``tokens`` of a replica pass, and the head runs for ``sampled`` of them. ``ledger`` is the
    stage's, whole.
    """
    total: Num = 0
    spread = spreads(layout)
    if not _one(layout.tp):
        total = _reduced(ledger, layout.tp, link, tokens, stream, spread)
        total = total + _vocabulary(ledger, layout.tp, link, tokens, sampled, stream)
    if spread:
        total = total + _routed(ledger, layout, link, tokens, stream)
    if layout.pp > 1:
        total = total + _handed(ledger, link, tokens, stream)
    return total


def spreads(layout: Layout) -> bool:
    """Whether one set of experts lies on ranks of several replicas."""
    return not _one(layout.ep) and layout.ep * layout.expert_tp > layout.tp


def _one(ranks: Num) -> bool:
    return type(ranks) is int and ranks == 1


def _rows(ledger: Ledger, stream: Stream) -> list[Tensor]:
    return [t for t in ledger.tensors if t.shard.endswith("row") and t.stream == stream]


def _is_expert(tensor: Tensor) -> bool:
    return tensor.shard.startswith("expert")


def _reduced(ledger: Ledger, tp: Num, link: Link, tokens: Num, stream: Stream, spread: bool) -> Num:
    """The all-reduces after matrices that tensor parallelism splits by rows."""
    rows = [t for t in _rows(ledger, stream) if not (spread and _is_expert(t))]
    total: Num = 0
    for name in dict.fromkeys(map(_group, rows)):
        own = next(t for t in rows if _group(t) == name)
        times = _layers(ledger, own) if _is_expert(own) else own.runs
        total = total + times * link.reducing(tokens * own.shape[0] * ELEMENT, tp)
    return total


def _group(tensor: Tensor) -> str:
    """Experts and the shared network beside them are summed in one exchange."""
    return tensor.name.replace(".experts.*", "").replace(".shared", "")


def _layers(ledger: Ledger, tensor: Tensor) -> Num:
    """The layers of the kind that a row of experts stands in."""
    return sum(k.n_layers for k in ledger.layers if tensor.name.startswith(k.prefix))


def _vocabulary(
    ledger: Ledger, tp: Num, link: Link, tokens: Num, sampled: Num, stream: Stream
) -> Num:
    """The split embedding's all-reduce, and the gather of the logits."""
    total: Num = 0
    for tensor in ledger.outer:
        if not isinstance(tensor, Tensor) or tensor.shard != "vocab" or tensor.stream != stream:
            continue
        if tensor.use == "lookup":
            total = total + link.reducing(tokens * tensor.shape[-1] * ELEMENT, tp)
        elif tensor.use == "matmul":
            total = total + link.gathering(sampled * tensor.shape[0] * ELEMENT, tp)
    return total


def _routed(ledger: Ledger, layout: Layout, link: Link, tokens: Num, stream: Stream) -> Num:
    """Dispatch and combine: each tensor-parallel rank sends its share of the tokens, and gathers
    the others' afterwards."""
    total: Num = 0
    own = ceil_div(tokens, layout.tp)
    for row in filter(_is_expert, _rows(ledger, stream)):
        layers = _layers(ledger, row)
        vectors = own * (row.active // layers) * row.shape[0] * ELEMENT
        one = link.sending(vectors * (layout.ep - 1), layout.ep) + link.hop
        after = link.gathering(tokens * row.shape[0] * ELEMENT, layout.tp)
        total = total + layers * (2 * one + after)
    return total


def _handed(ledger: Ledger, link: Link, tokens: Num, stream: Stream) -> Num:
    """The hidden vectors that a stage hands on (the last one's tokens are counted so, too)."""
    rows = _rows(ledger, stream)
    return link.sending(tokens * rows[0].shape[0] * ELEMENT) + link.hop if rows else 0
