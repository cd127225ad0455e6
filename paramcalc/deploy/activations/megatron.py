"""The published estimate of a GPT layer: Korthikanti et al. 2022, arXiv:2205.05198, table 2."""

from __future__ import annotations

from typing import Literal, TypeAlias

from paramcalc.errors import InputError
from paramcalc.numbers import Num, ceil_div

Recompute: TypeAlias = Literal["none", "selective", "full"]
RECOMPUTE: tuple[Recompute, ...] = ("none", "selective", "full")


def megatron_bytes(
    s: Num,
    b: Num,
    h: Num,
    a: Num,
    t: Num = 1,
    sequence_parallel: bool = False,
    recompute: Recompute = "none",
) -> Num:
    """Return the bytes that one layer keeps on each of ``t`` tensor-parallel ranks, at 16 bits.

    ``s`` tokens a sequence, ``b`` sequences, ``h`` the stream's width, ``a`` heads. Without
    parallelism s b h (34 + 5 a s / h): 2 norms and 2 inputs of matrices (8 s b h) and 2 masks
    (2 s b h) stay whole under tensor parallelism alone, 24 s b h and the scores (5 a s^2 b) are
    divided. Selective recomputation drops the scores, full keeps 2 s b h, which the paper's table
    does not divide. Counts a network of width 4 h, dropout, and neither norms' statistics nor the
    router. Rounded up. Raises ``InputError`` for another kind of recomputation.
    """
    check(recompute)
    size = s * b * h
    if recompute == "full":
        return 2 * size
    scores = 5 * a * s * s * b if recompute == "none" else 0
    if sequence_parallel:
        return ceil_div(34 * size + scores, t)
    return 10 * size + ceil_div(24 * size + scores, t)


def check(recompute: str) -> None:
    """Raise ``InputError`` for a kind of recomputation that does not exist."""
    if recompute not in RECOMPUTE:
        raise InputError(f"recompute = {recompute}: must be none, selective or full; use one")
