"""Mixers whose memory does not grow: linear attention, and short convolutions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State


class LightningAttention(NamedTuple):
    """Lightning attention (arXiv:2401.04658): each head adds keys times values to a state of
    ``head_dim`` x ``head_dim`` that decays at a fixed rate; a norm over all heads and a gate as
    wide follow.

    A token costs 4 FLOPs an element of the state: 2 to write, 2 to read.
    """

    name: str
    d_model: Num
    n_heads: Num
    head_dim: Num

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, the norm, the recurrence, and its state."""
        own, d, wide = self.name, self.d_model, self.n_heads * self.head_dim
        for part in ("q", "k", "v", "gate"):
            yield from linear(f"{own}.{part}", "mixer", wide, d, shard="column")
        yield from Norm(f"{own}.norm", (wide,), False).rows()
        yield from linear(f"{own}.o", "mixer", d, wide, shard="row")
        yield Operation(f"{own}.recurrence", "mixer", 4 * wide * self.head_dim, State())
        yield Cache(f"{own}.state", wide * self.head_dim, State(), of="state", units=self.n_heads)


class ShortConvolution(NamedTuple):
    """A causal convolution of ``kernel`` places on each channel, gated before and behind (LFM2,
    arXiv:2511.23404).

    The cache holds the last ``kernel`` values a channel, as the framework does (a step needs one
    less).
    """

    name: str
    d_model: Num
    kernel: Num
    bias: bool

    def rows(self) -> Iterator[Row]:
        """Yield the two matrices, the convolution, and its state."""
        own, d = self.name, self.d_model
        yield from linear(f"{own}.in", "mixer", 3 * d, d, bias=self.bias, shard="column")
        yield Tensor(f"{own}.conv", "mixer", (d, 1, self.kernel), "conv", "column")
        if self.bias:
            yield Tensor(f"{own}.conv.bias", "mixer", (d,), "bias", "column")
        yield from linear(f"{own}.out", "mixer", d, d, bias=self.bias, shard="row")
        yield Cache(f"{own}.conv_state", d * self.kernel, State(), of="state", units=d)
