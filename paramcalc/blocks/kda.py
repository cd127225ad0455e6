"""Kimi Delta Attention: a gated delta rule whose decay differs from channel to channel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State


class KimiDelta(NamedTuple):
    """KDA (Kimi Linear, arXiv:2510.26692): queries, keys and values of ``n_heads`` heads pass a
    short convolution, then each head rewrites a state of ``head_dim`` x ``head_dim``.

    Decay and output gate come through a bottleneck of ``head_dim`` if ``low_rank``, else from one
    matrix each (Ling 3). ``rates`` is the shape that the heads' rates of decay are stored in.

    A token costs 6 FLOPs an element of the state: 2 to read what the key finds there, 2 to write
    the correction, 2 to read with the query. The cache holds the state, and of the convolution's
    input the last ``kernel`` values a channel, as the framework does (a step needs one less).
    """

    name: str
    d_model: Num
    n_heads: Num
    head_dim: Num
    kernel: Num
    low_rank: bool
    rates: tuple[Num, ...]

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, the convolution, decay, gate and norm, the rule, and its state."""
        own, d, heads, width = self.name, self.d_model, self.n_heads, self.head_dim
        wide = heads * width
        for part in ("q", "k", "v"):
            yield from linear(f"{own}.{part}", "mixer", wide, d, shard="column")
        yield Tensor(f"{own}.conv", "mixer", (3 * wide, 1, self.kernel), "conv", "column")
        yield from self._through("decay")
        yield Tensor(f"{own}.decay_shift", "mixer", (wide,), "bias", "column")
        yield Tensor(f"{own}.rates", "mixer", self.rates, "scale")
        yield from linear(f"{own}.beta", "mixer", heads, d, shard="column")
        yield from self._through("gate")
        yield from Norm(f"{own}.norm", (width,), False).rows()
        yield from linear(f"{own}.o", "mixer", d, wide, shard="row")
        yield Operation(f"{own}.delta", "mixer", 6 * wide * width, State())
        yield Cache(f"{own}.state", wide * width, State(), of="state", units=heads)
        yield Cache(f"{own}.conv_state", 3 * wide * self.kernel, State(), of="state", units=heads)

    def _through(self, part: str) -> Iterator[Tensor]:
        """One value a channel from the stream."""
        own, wide = f"{self.name}.{part}", self.n_heads * self.head_dim
        if self.low_rank:
            yield from linear(f"{own}_down", "mixer", self.head_dim, self.d_model)
            yield from linear(f"{own}_up", "mixer", wide, self.head_dim, shard="column")
        else:
            yield from linear(own, "mixer", wide, self.d_model, shard="column")
