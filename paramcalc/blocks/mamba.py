"""State-space mixers: Mamba and Mamba 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.blocks.norm import Norm
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State


class Mamba(NamedTuple):
    """Mamba (arXiv:2312.00752): every one of ``d_inner`` channels has a state of ``d_state``, which
    decays and takes in by steps that the token itself decides through a bottleneck of ``rank``.

    ``normed`` puts norms behind step, input and output coefficients (Jamba). With ``n_heads``
    (Zamba) each head has its own small matrices for them.

    A token costs 4 FLOPs an element of the state: 2 to write, 2 to read. The cache holds the state,
    and of the convolution's input the last ``kernel`` values a channel, as the framework does (a
    step needs one less).
    """

    name: str
    d_model: Num
    d_inner: Num
    d_state: Num
    rank: Num
    kernel: Num
    conv_bias: bool
    bias: bool
    normed: bool = False
    n_heads: Num | None = None

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, the convolution, the state's coefficients, the scan, its state."""
        own, d, inner = self.name, self.d_model, self.d_inner
        yield from linear(f"{own}.in", "mixer", 2 * inner, d, bias=self.bias, shard="column")
        yield Tensor(f"{own}.conv", "mixer", (inner, 1, self.kernel), "conv", "column")
        if self.conv_bias:
            yield Tensor(f"{own}.conv.bias", "mixer", (inner,), "bias", "column")
        yield from self._selective()
        yield Tensor(f"{own}.skip", "mixer", self._of_heads(), "scale", "column")
        if self.normed:
            for part, width in (("dt", self.rank), ("b", self.d_state), ("c", self.d_state)):
                yield from Norm(f"{own}.{part}_norm", (width,), False).rows()
        yield from linear(f"{own}.out", "mixer", d, inner, bias=self.bias, shard="row")
        yield Operation(f"{own}.scan", "mixer", 4 * inner * self.d_state, State())
        yield Cache(f"{own}.state", inner * self.d_state, State(), of="state", units=inner)
        yield Cache(f"{own}.conv_state", inner * self.kernel, State(), of="state", units=inner)

    def _of_heads(self, *more: Num) -> tuple[Num, ...]:
        if self.n_heads is None:
            return (self.d_inner, *more)
        return (self.n_heads, self.d_inner // self.n_heads, *more)

    def _selective(self) -> Iterator[Row]:
        """What makes step, input and output depend on the token, and the rates of decay."""
        own, inner, out = self.name, self.d_inner, self.rank + 2 * self.d_state
        if self.n_heads is None:
            yield from linear(f"{own}.x", "mixer", out, inner, shard="row")
            yield from linear(f"{own}.dt", "mixer", inner, self.rank, bias=True, shard="column")
        else:
            heads, width = self.n_heads, inner // self.n_heads
            yield Tensor(f"{own}.x", "mixer", (heads, out, width), "matmul", "column")
            yield Tensor(f"{own}.dt", "mixer", (heads, width, self.rank), "matmul", "column")
            yield Tensor(f"{own}.dt.bias", "mixer", (heads, width), "bias", "column")
        yield Tensor(f"{own}.rates", "mixer", self._of_heads(self.d_state), "scale", "column")


class Mamba2(NamedTuple):
    """Mamba 2 (arXiv:2405.21060): ``n_heads`` heads, each with a state of ``head_dim`` x
    ``d_state`` and one rate of decay; heads of a group share input and output coefficients.

    A gate as wide as the output scales it, and unless ``normed`` is false a norm stands before the
    last matrix. A token costs 4 FLOPs an element of the state: 2 to write, 2 to read. The cache
    holds the state, and of the convolution's input the last ``kernel`` values a channel, as the
    framework does (a step needs one less).
    """

    name: str
    d_model: Num
    n_heads: Num
    head_dim: Num
    n_groups: Num
    d_state: Num
    kernel: Num
    conv_bias: bool
    bias: bool
    out_bias: bool
    normed: bool = True

    def rows(self) -> Iterator[Row]:
        """Yield the matrices, the convolution, the heads' coefficients, the scan, its state."""
        own, d, heads = self.name, self.d_model, self.n_heads
        inner = heads * self.head_dim
        channels = inner + 2 * self.n_groups * self.d_state
        wide = inner + channels + heads
        yield from linear(f"{own}.in", "mixer", wide, d, bias=self.bias, shard="column")
        yield Tensor(f"{own}.conv", "mixer", (channels, 1, self.kernel), "conv", "column")
        if self.conv_bias:
            yield Tensor(f"{own}.conv.bias", "mixer", (channels,), "bias", "column")
        yield Tensor(f"{own}.dt_shift", "mixer", (heads,), "bias", "column")
        for part in ("rates", "skip"):
            yield Tensor(f"{own}.{part}", "mixer", (heads,), "scale", "column")
        if self.normed:
            yield from Norm(f"{own}.norm", (inner,), False).rows()
        yield from linear(f"{own}.out", "mixer", d, inner, bias=self.out_bias, shard="row")
        yield Operation(f"{own}.scan", "mixer", 4 * inner * self.d_state, State())
        yield Cache(f"{own}.state", inner * self.d_state, State(), of="state", units=heads)
        yield Cache(
            f"{own}.conv_state", channels * self.kernel, State(), of="state", units=channels
        )
