"""Normalization: a scale and, for a LayerNorm with a bias, a shift."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.ledger import Tensor
from paramcalc.numbers import Num


class Norm(NamedTuple):
    """RMSNorm (one weight a channel), or LayerNorm with ``bias`` (two).

    ``shape`` is usually ``(d_model,)``; a norm of each head's own is ``(n_heads, head_dim)``.
    """

    name: str
    shape: tuple[Num, ...]
    bias: bool

    def rows(self) -> Iterator[Tensor]:
        """Yield the scale, then the shift."""
        yield Tensor(self.name, "norm", self.shape, "scale")
        if self.bias:
            yield Tensor(f"{self.name}.bias", "norm", self.shape, "bias")
