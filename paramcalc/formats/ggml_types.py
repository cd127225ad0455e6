"""GGML's tensor types: how many weights a block holds, and of what its bytes are made.

A row of a tensor (its last axis) is cut into blocks; every row is whole blocks. Source: the block
structures in ``ggml/src/ggml-common.h`` of https://github.com/ggml-org/llama.cpp. Counting needs no
extra; where the ``gguf`` package is installed a test holds this table equal to its own.
"""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.numbers import Num

_HALF = 2
"""Bytes of an FP16 scale."""
_K = 256
"""Weights of a super-block, which k-quants and most i-quants share."""


class GgmlType(NamedTuple):
    """A tensor type: ``n_bytes`` for each ``weights`` of a row."""

    name: str
    weights: int
    n_bytes: int

    def row_bytes(self, columns: Num) -> Num:
        """Return the bytes of a row; ``columns`` must be whole blocks (``fits``)."""
        return columns // self.weights * self.n_bytes

    def fits(self, columns: int) -> bool:
        """Whether a row is whole blocks."""
        return columns % self.weights == 0


def _bits(weights: int, bits: int) -> int:
    """Bytes of packed weights."""
    return weights * bits // 8


TYPES = {
    t.name: t
    for t in (
        GgmlType("F32", 1, 4),
        GgmlType("F16", 1, 2),
        GgmlType("BF16", 1, 2),
        # one FP16 scale a block; _1 adds an FP16 minimum
        GgmlType("Q1_0", 128, _HALF + _bits(128, 1)),
        GgmlType("Q2_0", 64, _HALF + _bits(64, 2)),
        GgmlType("Q4_0", 32, _HALF + _bits(32, 4)),
        GgmlType("Q4_1", 32, 2 * _HALF + _bits(32, 4)),
        GgmlType("Q5_0", 32, _HALF + _bits(32, 5)),
        GgmlType("Q5_1", 32, 2 * _HALF + _bits(32, 5)),
        GgmlType("Q8_0", 32, _HALF + _bits(32, 8)),
        GgmlType("IQ4_NL", 32, _HALF + _bits(32, 4)),
        # one E8M0 scale a block; NVFP4 has an FP8 scale for each 16 weights
        GgmlType("MXFP4", 32, 1 + _bits(32, 4)),
        GgmlType("NVFP4", 64, 64 // 16 + _bits(64, 4)),
        # super-blocks: FP16 scale and minimum, 4-bit scale and minimum for each 16 weights
        GgmlType("Q2_K", _K, 2 * _HALF + _bits(16, 8) + _bits(_K, 2)),
        # FP16 scale, a 6-bit scale for each 16
        GgmlType("Q3_K", _K, _HALF + _bits(16, 6) + _bits(_K, 3)),
        # FP16 scale and minimum, 6-bit scale and minimum for each 32
        GgmlType("Q4_K", _K, 2 * _HALF + _bits(8, 12) + _bits(_K, 4)),
        GgmlType("Q5_K", _K, 2 * _HALF + _bits(8, 12) + _bits(_K, 5)),
        # FP16 scale, an 8-bit scale for each 16
        GgmlType("Q6_K", _K, _HALF + _bits(16, 8) + _bits(_K, 6)),
        # FP32 scale, and the 16-bit sum of each 16: only for activations
        GgmlType("Q8_K", _K, 4 + _bits(_K, 8) + _bits(16, 16)),
        # an FP16 scale, and an 11-bit grid index, sign and 3-bit scale: 12 + 4 bits for each 8
        GgmlType("IQ1_S", _K, _HALF + _bits(32, 8) + _bits(8, 16)),
        # no scale of its own: its bits are spread over the 3-bit scales of each 16
        GgmlType("IQ1_M", _K, _bits(32, 12) + _bits(8, 8)),
        # FP16 scale, 16 bits (index, signs, a share of the scale) for each 8
        GgmlType("IQ2_XXS", _K, _HALF + _bits(32, 16)),
        # the same with 4-bit scales for each 16
        GgmlType("IQ2_XS", _K, _HALF + _bits(32, 16) + _bits(16, 4)),
        # 10-bit index and 8 signs for each 8
        GgmlType("IQ2_S", _K, _HALF + _bits(32, 18) + _bits(16, 4)),
        # 8-bit index for each 4; signs and scale, 32 bits for each 32
        GgmlType("IQ3_XXS", _K, _HALF + _bits(64, 8) + _bits(8, 32)),
        # 9-bit index for each 4, a sign each, a 4-bit scale for each 32
        GgmlType("IQ3_S", _K, _HALF + _bits(64, 9) + _bits(_K, 1) + _bits(8, 4)),
        # FP16 scale, a 6-bit scale for each 32
        GgmlType("IQ4_XS", _K, _HALF + _bits(8, 6) + _bits(_K, 4)),
        # five ternary weights a byte, the last 16 of 256 four a byte; or two bits each
        GgmlType("TQ1_0", _K, _HALF + 240 // 5 + 16 // 4),
        GgmlType("TQ2_0", _K, _HALF + _bits(_K, 2)),
    )
}
"""Every type that a file of ``llama-quantize`` may hold, with NVFP4, which only conversion makes,
and Q8_K, which only computation uses."""
