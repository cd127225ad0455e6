"""The gated delta rule: linear attention that corrects its memory, with a decay a head."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State


class GatedDelta(NamedTuple):
    """Gated DeltaNet (arXiv:2412.06464): queries, keys and values pass a short convolution, then
    each value head rewrites a state of ``key_dim`` x ``value_dim``. Several value heads may share
    a key head. Two values a head say how fast it forgets and how much it corrects; a gate as wide
    as the values scales the output behind a norm of ``value_dim`` that the heads share.

    A token costs 6 FLOPs an element of the state: 2 to read what the key finds there, 2 to write
    the correction, 2 to read with the query. The cache holds the state, and of the convolution's
    input the last ``kernel`` values a channel, as the framework does (a step needs one less).
    """

    name: str
    d_model: Num
    n_key_heads: Num
    n_value_heads: Num
    key_dim: Num
    value_dim: Num
    kernel: Num

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, the convolution, decay, norm, the rule, and its state."""
        own, d, heads = self.name, self.d_model, self.n_value_heads
        keys, values = self.n_key_heads * self.key_dim, heads * self.value_dim
        channels = 2 * keys + values
        widths = (("q", keys), ("k", keys), ("v", values), ("gate", values))
        for part, width in (*widths, ("beta", heads), ("decay", heads)):
            yield from linear(f"{own}.{part}", "mixer", width, d, shard="column")
        yield Tensor(f"{own}.conv", "mixer", (channels, 1, self.kernel), "conv", "column")
        yield Tensor(f"{own}.decay_shift", "mixer", (heads,), "bias", "column")
        yield Tensor(f"{own}.rates", "mixer", (heads,), "scale", "column")
        yield from Norm(f"{own}.norm", (self.value_dim,), False).rows()
        yield from linear(f"{own}.o", "mixer", d, values, shard="row")
        yield Operation(f"{own}.delta", "mixer", 6 * values * self.key_dim, State())
        yield Cache(f"{own}.state", values * self.key_dim, State(), of="state", units=heads)
        yield Cache(
            f"{own}.conv_state", channels * self.kernel, State(), of="state", units=channels
        )
