"""Number formats: a rule from a tensor to its bytes.

``fp32`` and ``bf16`` hold every tensor. The quantized formats do what released checkpoints of that
kind do: the matrices inside the layers are quantized, while embeddings, the head, routers, norms
and biases stay in BF16. Scales:

* ``fp8``: one FP32 scale a matrix (per-tensor scaling, as FP8 checkpoints of vLLM's tools);
* ``int8``: one BF16 scale an output channel (W8A8 of LLM Compressor);
* ``int4``: one FP16 scale for each 128 weights of a row, symmetric (GPTQ and AWQ group size 128).
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from paramcalc.errors import InputError, did_you_mean
from paramcalc.ledger import Ledger, Tensor
from paramcalc.numbers import Num, ceil_div


class Format(NamedTuple):
    """``bits`` a quantized weight and ``scale_bits`` a scale; a scale covers ``group`` weights of a
    row, the whole row (``group`` 0) or the whole matrix (``per_matrix``). ``whole`` formats apply
    to every tensor and need no scale. ``mark`` ties a format to ``NOTES``."""

    name: str
    bits: int
    whole: bool = False
    scale_bits: int = 0
    group: int = 0
    per_matrix: bool = False
    mark: str = " *"


FORMATS = {
    f.name: f
    for f in (
        Format("fp32", 32, True, mark=""),
        Format("bf16", 16, True, mark=""),
        Format("fp8", 8, scale_bits=32, per_matrix=True),
        Format("int8", 8, scale_bits=16),
        Format("int4", 4, scale_bits=16, group=128),
    )
}
NOTES = [
    "* matrices inside layers; embedding, head, routers, norms, biases stay bf16",
    "  scales: fp8 one a matrix, int8 one a row, int4 one per 128 weights",
]
_SAME = {
    "fp16": "bf16",
    "f16": "bf16",
    "float16": "bf16",
    "bfloat16": "bf16",
    "f32": "fp32",
    "float32": "fp32",
}


def find(name: str) -> Format:
    """Return the format of that name (``fp16`` is ``bf16`` in size). Raises ``InputError``."""
    plain = str(name).lower()
    key = _SAME.get(plain, plain)
    if key not in FORMATS:
        near = did_you_mean(key, FORMATS)
        raise InputError(f"dtype = {name}: unknown format{near}; take one of {', '.join(FORMATS)}")
    return FORMATS[key]


def is_quantized(tensor: Tensor) -> bool:
    """Whether the quantized formats touch a tensor: a matrix of a mixer or feed-forward part."""
    matrix = tensor.use == "matmul" and len(tensor.shape) > 1
    return matrix and tensor.role in ("attention", "mixer", "ffn")


def tensor_bytes(tensor: Tensor, fmt: Format) -> Num:
    """Return the bytes of all stored copies of a tensor, scales included, each copy whole bytes."""
    if fmt.whole:
        return tensor.stored * (fmt.bits // 8)
    if not is_quantized(tensor):
        return tensor.stored * 2
    *outer, columns = tensor.shape
    rows = prod(outer)
    if fmt.per_matrix:
        scales: Num = 1
    else:
        scales = rows * ceil_div(columns, fmt.group) if fmt.group else rows
    return tensor.copies * (
        ceil_div(fmt.bits * tensor.elements, 8) + scales * (fmt.scale_bits // 8)
    )


def weight_bytes(ledger: Ledger, fmt: Format) -> Num:
    """Return the bytes of all weights, buffers included, in a format."""
    return sum(tensor_bytes(t, fmt) for t in ledger.tensors)
