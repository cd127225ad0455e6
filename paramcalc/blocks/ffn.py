"""The feed-forward network: two matrices, or three where it is gated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.linear import linear
from paramcalc.ledger import Shard, Tensor
from paramcalc.numbers import Num


class FeedForward(NamedTuple):
    """Up and down projections; ``gated`` adds the gate of SwiGLU and its kin (Shazeer 2020).

    ``copies`` and ``active`` are those of an expert; both are 1 for a dense network. ``expert``
    says that copies are split over expert-parallel ranks.
    """

    name: str
    d_model: Num
    d_ff: Num
    gated: bool
    bias: bool = False
    copies: Num = 1
    active: Num = 1
    expert: bool = False

    def rows(self) -> Iterator[Tensor]:
        """Yield gate (if gated), up and down, each with its bias if there is one."""
        column: Shard = "expert+column" if self.expert else "column"
        row: Shard = "expert+row" if self.expert else "row"
        d, ff = self.d_model, self.d_ff
        for part in ("gate", "up") if self.gated else ("up",):
            yield from linear(
                f"{self.name}.{part}",
                "ffn",
                ff,
                d,
                bias=self.bias,
                shard=column,
                copies=self.copies,
                active=self.active,
            )
        yield from linear(
            f"{self.name}.down",
            "ffn",
            d,
            ff,
            bias=self.bias,
            shard=row,
            copies=self.copies,
            active=self.active,
        )
