"""Hyper-connections: several residual streams, joined before each sublayer and spread after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.numbers import Num
from paramcalc.sight import State


class HyperConnection(NamedTuple):
    """One sublayer's connection to ``streams`` residual streams (Zhu et al. 2024,
    arXiv:2409.19606; manifold-constrained in Xie et al. 2025, arXiv:2512.24880).

    A matrix over all streams gives one weight a stream to join them, one to spread the sublayer's
    output and, if ``mixing``, streams x streams to mix them: a product of 2 x streams^2 x d_model
    FLOPs a token. Each of the two or three parts has a scale, each weight a shift.
    """

    name: str
    d_model: Num
    streams: Num
    mixing: bool

    def rows(self) -> Iterator[Row]:
        """Yield the matrix, its shifts and scales, and the product that mixes the streams."""
        own, n = self.name, self.streams
        weights = n * (n + 2) if self.mixing else 2 * n
        yield from linear(own, "residual", weights, n * self.d_model)
        yield Tensor(f"{own}.base", "residual", (weights,), "bias")
        yield Tensor(f"{own}.scale", "residual", (3 if self.mixing else 2,), "scale")
        if self.mixing:
            yield Operation(f"{own}.mixing", "residual", 2 * n * n * self.d_model, State())


class HyperHead(NamedTuple):
    """What joins the streams after the last layer."""

    name: str
    d_model: Num
    streams: Num

    def rows(self) -> Iterator[Row]:
        """Yield the matrix, one weight a stream, with its shifts and scale."""
        own, n = self.name, self.streams
        yield from linear(own, "residual", n, n * self.d_model)
        yield Tensor(f"{own}.base", "residual", (n,), "bias")
        yield Tensor(f"{own}.scale", "residual", (1,), "scale")
