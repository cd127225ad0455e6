"""Blocks: each owns its fields and yields its rows for one layer (or, outside the layers, once).

Fields may be ints, integer arrays or symbols; a block never looks at the size of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from paramcalc.blocks.attention import Attention
from paramcalc.blocks.embedding import Embedding, Positions, RelativePositions
from paramcalc.blocks.ffn import FeedForward
from paramcalc.blocks.head import Head, MaskedHead, Pooler
from paramcalc.blocks.mla import LatentAttention
from paramcalc.blocks.moe import MixtureOfExperts
from paramcalc.blocks.norm import Norm
from paramcalc.blocks.rows import Rows
from paramcalc.ledger import Row


class Block(Protocol):
    """Anything that owns sizes and yields its rows."""

    def rows(self) -> Iterator[Row]:
        """Yield the tensors, operations and caches of one such block."""
        ...


__all__ = [
    "Attention",
    "Block",
    "Embedding",
    "FeedForward",
    "Head",
    "LatentAttention",
    "MaskedHead",
    "MixtureOfExperts",
    "Norm",
    "Pooler",
    "Positions",
    "RelativePositions",
    "Rows",
]
