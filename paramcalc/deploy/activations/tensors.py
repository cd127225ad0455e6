"""One kept tensor, and what decides which tensors there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol, TypeAlias

from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.quantities.catalogue import Known

Split: TypeAlias = Literal["tp", "sp", "none"]
"""How tensor parallelism divides a kept tensor: by heads, d_ff or vocabulary (``tp``), by tokens
and only under sequence parallelism (``sp``), or not at all."""

Attention: TypeAlias = Literal["eager", "sdpa", "flash"]


class Kept(NamedTuple):
    """A tensor kept for the backward pass: ``elements`` of ``width`` bytes.

    ``known`` is ``derived`` where the layer is one that was measured, else ``assumed``; ``why``
    names the operation that needs it. ``pieces`` is how many ranks a ``tp`` tensor can be divided
    over before it is held twice (the KV heads).
    """

    name: str
    elements: Num
    width: int
    known: Known
    why: str
    split: Split = "none"
    pieces: Num | None = None

    @property
    def bytes(self) -> Num:
        """Bytes on one undivided device."""
        return self.elements * self.width

    def rank_bytes(self, tp: Num = 1, sequence_parallel: bool = False) -> Num:
        """Bytes on the fullest rank of ``tp``; ``sequence_parallel`` divides the tokens of what tp
        leaves whole (Korthikanti et al., arXiv:2205.05198, section 4.2.2)."""
        if self.split == "none" or (self.split == "sp" and not sequence_parallel):
            return self.bytes
        share = ceil_div(self.elements, tp)
        if self.pieces is not None:
            share = maximum(share, ceil_div(self.elements, self.pieces))
        return share * self.width


class At(NamedTuple):
    """What a layer is counted at.

    ``classic`` layers are GPT-2's: LayerNorm, GELU by its tanh formula, dropout after each
    sublayer, softmax in the activations' own type. ``layer_norm`` tells LayerNorm from RMSNorm.
    """

    batch: Num
    seq: Num
    attention: Attention
    dropout: bool
    classic: bool
    layer_norm: bool
    known: Known

    @property
    def tokens(self) -> Num:
        """Tokens of a step: batch x sequence."""
        return self.batch * self.seq

    def row(
        self,
        name: str,
        elements: Num,
        width: int,
        why: str,
        split: Split = "none",
        pieces: Num | None = None,
    ) -> Kept:
        """Return a kept tensor, known as this layer is."""
        return Kept(name, elements, width, self.known, why, split, pieces)


class Core(NamedTuple):
    """The part between positions: heads, the widths of a query and of a value, and ``limit``,
    the window or chunk beyond which a mask is needed (None: plain causal or none at all)."""

    name: str
    heads: Num
    kv_heads: Num
    qk_width: Num
    v_width: Num
    limit: Num | None = None


class Experts(NamedTuple):
    """Routed experts: how many, how many a token, widths, and whether they are gated."""

    name: str
    d_model: Num
    number: Num
    top_k: Num
    d_ff: Num
    gated: bool


class Kernels(Protocol):
    """What each way of running a layer keeps: ``unfused`` and ``fused`` are its two modules."""

    def norm(
        self, at: At, name: str, groups: Num, width: Num, split: Split, pieces: Num | None = None
    ) -> Iterator[Kept]:
        """A norm of ``groups`` vectors of ``width`` a token."""

    def core(self, at: At, core: Core) -> Iterator[Kept]:
        """Attention's own tensors: q, k, v, what lies between, and its output."""

    def gated(self, at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
        """A gated activation of ``rows`` x ``width``, and what its down projection reads."""

    def plain(self, at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
        """An activation without a gate, and what its down projection reads."""

    def mask(self, at: At, name: str, elements: Num, split: Split) -> Iterator[Kept]:
        """A dropout's mask, if there is dropout."""

    def routed(self, at: At, experts: Experts) -> Iterator[Kept]:
        """The router's choice, the tokens sorted by expert, and the experts."""

    def loss(self, at: At, vocab: Num) -> Iterator[Kept]:
        """Cross-entropy over the logits of every token."""


def once(count: Num) -> Num:
    """Return 1 if a count is at least 1, else 0, for ints, arrays and symbols alike."""
    return 1 - maximum(0, 1 - count)


def total(tensors: Iterable[Kept], tp: Num = 1, sequence_parallel: bool = False) -> Num:
    """Return the bytes of tensors on the fullest rank."""
    return sum((t.rank_bytes(tp, sequence_parallel) for t in tensors), 0)
