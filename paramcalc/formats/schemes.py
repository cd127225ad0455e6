"""The formats as data: which tensors one covers, bits of an element, and what is stored beside it.

Bits are those of the files that the named tools write:

* FP8 with one FP32 scale a matrix, and one BF16 scale an output channel (LLM Compressor's
  FP8-dynamic); blocks of 128 x 128 with one FP32 scale (DeepSeek-V3, arXiv:2412.19437 section 3.3,
  README_WEIGHTS.md of its release);
* INT8 with one BF16 scale an output channel (W8A8 of LLM Compressor);
* 4-bit integers: ``int4`` symmetric (compressed-tensors), ``awq`` (AutoAWQ, arXiv:2306.00978) and
  ``gptq`` (arXiv:2210.17323) with zero points, GPTQ with an int32 group number for each input;
* NF4 (QLoRA, arXiv:2305.14314 section 3, as bitsandbytes keeps it): 64 weights in storage order
  share an FP32 maximum; double quantization keeps that in 8 bits, with an FP32 one for each 256;
* MXFP4 and MXFP8 (OCP Microscaling Formats v1.0, section 5): 32 weights share one E8M0 byte;
* NVFP4 (ModelOpt, compressed-tensors): 16 weights share one E4M3 byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

Covers: TypeAlias = Literal["all", "layers", "experts", "experts or layers"]
"""The tensors in the format; the others stay in 16 bits. ``layers`` are the matrices of attention,
mixers and feed-forward parts: no embedding, head, router, norm, bias or tower. ``experts or
layers`` are the experts of a model that has any, else ``layers``: ``settled`` makes it one of
both."""


class Format(NamedTuple):
    """A number format of weights.

    ``bits`` are those of an element. One scale of ``scale_bits`` (and a zero point of
    ``zero_bits``) covers a block of (rows, columns) weights; 0 stands for all rows or columns.
    ``flat`` blocks run over the matrix in storage order. Each ``outer_block`` scales share an FP32
    scale of their own. ``input_bits`` are kept for each input channel, ``matrix_bytes`` for each
    matrix. ``compute`` names the arithmetic of the kernels, best first. ``note`` says all this to a
    reader; ``mark`` ties a format to the notes of the report.
    """

    name: str
    bits: int
    compute: tuple[str, ...]
    note: str
    covers: Covers = "layers"
    block: tuple[int, int] = (0, 0)
    scale_bits: int = 0
    zero_bits: int = 0
    flat: bool = False
    outer_block: int = 0
    input_bits: int = 0
    matrix_bytes: int = 0
    mark: str = " *"


# What kernels multiply. Weight-only formats (AWQ, GPTQ, NF4) are unpacked to the 16 bits of the
# activations. FP8 and FP4 weights run on tensor cores of their own where the hardware has them, and
# are else unpacked too (vLLM's page "FP8 W8A8": W8A16 by Marlin below compute capability 8.9; its
# MXFP4 and NVFP4 kernels below Blackwell likewise).
_UNPACKED = ("bf16", "fp16")
_FP8 = ("fp8", *_UNPACKED)
_FP4 = ("fp4", *_UNPACKED)


def _int4(group: int, name: str) -> Format:
    note = f"4-bit, an FP16 scale for each {group:,} of a row, symmetric"
    return Format(name, 4, _UNPACKED, note, block=(1, group), scale_bits=16)


def _awq(group: int, name: str) -> Format:
    note = f"4-bit, an FP16 scale and a 4-bit zero point for each {group:,} of a row"
    return Format(name, 4, _UNPACKED, note, block=(1, group), scale_bits=16, zero_bits=4)


def _gptq(group: int, name: str) -> Format:
    plain = _awq(group, name)
    return plain._replace(note=f"{plain.note}, int32 group numbers of inputs", input_bits=32)


GROUPED: dict[str, Callable[[int, str], Format]] = {"int4": _int4, "awq": _awq, "gptq": _gptq}
"""Formats whose group size can be set in the name, as ``gptq-g32``: (group, name) -> format."""
DEFAULT_GROUP = 128

_MXFP4 = Format(
    "mxfp4",
    4,
    _FP4,
    "E2M1, an E8M0 scale for each 32 of a row; experts where there are any, as gpt-oss ships",
    "experts or layers",
    (1, 32),
    8,
)

SCHEMES = {
    f.name: f
    for f in (
        Format("fp32", 32, ("fp32",), "32-bit, every tensor", "all", mark=""),
        Format("bf16", 16, ("bf16",), "16-bit, every tensor", "all", mark=""),
        Format("fp16", 16, ("fp16",), "16-bit, every tensor", "all", mark=""),
        Format("fp8", 8, _FP8, "8-bit, an FP32 scale a matrix", scale_bits=32),
        Format("fp8-channel", 8, _FP8, "8-bit, a BF16 scale a row", block=(1, 0), scale_bits=16),
        Format(
            "fp8-block",
            8,
            _FP8,
            "8-bit, an FP32 scale for each 128 x 128, as DeepSeek-V3 ships",
            block=(128, 128),
            scale_bits=32,
        ),
        Format("int8", 8, ("int8",), "8-bit, a BF16 scale a row", block=(1, 0), scale_bits=16),
        *(make(DEFAULT_GROUP, name) for name, make in GROUPED.items()),
        # beside the weights: the 16 values of the code, in FP32
        Format(
            "nf4",
            4,
            _UNPACKED,
            "4-bit, an FP32 scale for each 64",
            block=(1, 64),
            scale_bits=32,
            flat=True,
            matrix_bytes=16 * 4,
        ),
        # beside the weights: both codes (16 and 256 values) and the scales' offset, in FP32
        Format(
            "nf4-dq",
            4,
            _UNPACKED,
            "4-bit, an 8-bit scale for each 64, an FP32 one for each 256 of those",
            block=(1, 64),
            scale_bits=8,
            flat=True,
            outer_block=256,
            matrix_bytes=(16 + 256 + 1) * 4,
        ),
        _MXFP4,
        _MXFP4._replace(
            name="mxfp4-all", covers="layers", note="E2M1, an E8M0 scale for each 32 of a row"
        ),
        Format(
            "mxfp8",
            8,
            _FP8,
            "8-bit, an E8M0 scale for each 32 of a row",
            block=(1, 32),
            scale_bits=8,
        ),
        # beside the weights: FP32 scales of the weights' scales and of the input
        Format(
            "nvfp4",
            4,
            _FP4,
            "E2M1, an E4M3 scale for each 16 of a row, two FP32 scales a matrix",
            block=(1, 16),
            scale_bits=8,
            matrix_bytes=2 * 4,
        ),
    )
}
"""Every format by its name."""

SPELLINGS = {
    "f32": "fp32",
    "float": "fp32",
    "float32": "fp32",
    "bfloat16": "bf16",
    "f16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "e4m3": "fp8",
    "e5m2": "fp8",
    "f8": "fp8",
    "float8": "fp8",
    "fp8-e4m3": "fp8",
    "fp8-e5m2": "fp8",
    "fp8-tensor": "fp8",
    "fp8-dynamic": "fp8-channel",
    "w8a8": "int8",
    "w4a16": "int4",
    "int4-awq": "awq",
    "awq-int4": "awq",
    "int4-gptq": "gptq",
    "gptq-int4": "gptq",
    "bnb-nf4": "nf4",
    "nf4-double": "nf4-dq",
    "nf4-double-quant": "nf4-dq",
}
"""Other spellings; case, ``_`` and a leading ``torch.`` do not matter either."""
