"""Number formats: a rule from a tensor to its bytes.

``fp32``, ``bf16`` and ``fp16`` hold every tensor. The quantized formats do what released
checkpoints of that kind do: the matrices inside the layers are quantized, while embeddings, the
head, routers, norms, biases and towers stay in 16 bits. ``schemes`` has each as data, with scales,
zero points and sources; llama.cpp's file types have rules of their own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from math import prod
from typing import Any, TypeAlias

from paramcalc.errors import InputError, did_you_mean
from paramcalc.formats.mixed import Mixed, is_file_type, mixed
from paramcalc.formats.schemes import DEFAULT_GROUP, GROUPED, SCHEMES, SPELLINGS, Format
from paramcalc.ledger import Ledger, Tensor
from paramcalc.numbers import Num, ceil_div

FORMATS = {name: SCHEMES[name] for name in ("fp32", "bf16", "fp8", "int8", "int4")}
"""The formats that each have a quantity of their own in the catalogue and a line in the report."""
KV_FORMATS = {name: SCHEMES[name] for name in ("fp32", "bf16", "fp16", "fp8", "int8", "int4")}
"""Formats of a cache. Its scales, where an engine keeps any, are not counted."""
NOTES = [
    "* matrices inside layers; embedding, head, routers, norms, biases stay bf16",
    "  scales: fp8 one a matrix, int8 one a row, int4 one per 128 weights",
]
AnyFormat: TypeAlias = Format | Mixed
MOST_GROUP = 65_536
_GROUP = re.compile(r"(.+)-g(\d{1,9})")


def find(name: str, *, also: str = "") -> Format:
    """Return the format of a name or another spelling of it, such as ``bf16``, ``w4a16``,
    ``gptq-g32``. Raises ``InputError``, which names what may be taken ``also``."""
    key = _key(name)
    grouped = _GROUP.fullmatch(key)
    if grouped:
        base = SPELLINGS.get(grouped[1], grouped[1])
        if base in GROUPED:
            return _with_group(name, base, int(grouped[2]))
        key = base
        if base in SCHEMES:
            raise InputError(
                f"dtype = {name}: the group size of {base} is fixed; write {base}, or"
                f" take one of {', '.join(GROUPED)}"
            )
    if key not in SCHEMES:
        near = did_you_mean(key, SCHEMES)
        listed = ", ".join(SCHEMES)
        raise InputError(f"dtype = {name}: unknown format{near}; take one of {listed}{also}")
    return SCHEMES[key]


def kv_format(name: str) -> Format:
    """Return a format that a KV cache can have; ``bits`` are those of one element.

    Raises ``InputError`` for one that only weights have, such as ``nf4``.
    """
    key = _key(name)
    if key in KV_FORMATS:
        return KV_FORMATS[key]
    listed = ", ".join(KV_FORMATS)
    if key in SCHEMES or _GROUP.fullmatch(key):
        raise InputError(f"kv_dtype = {name}: is a format of weights; take one of {listed}")
    near = did_you_mean(key, KV_FORMATS)
    raise InputError(f"kv_dtype = {name}: unknown format{near}; take one of {listed}")


def compute_format(fmt: AnyFormat, has: Collection[str] | None = None) -> str:
    """Return the arithmetic that kernels do with weights of a format, as hardware names its peaks.

    ``has`` are the formats that the hardware multiplies; the best of the format's own is taken
    (MXFP4: ``fp4`` on Blackwell, ``bf16`` on Hopper). None asks for the best there is. Raises
    ``InputError`` if the hardware has none of them.
    """
    for kind in fmt.compute:
        if has is None or kind in has:
            return kind
    raise InputError(
        f"dtype = {fmt.name}: needs {' or '.join(fmt.compute)}, and the hardware has"
        f" {', '.join(has or ()) or 'neither'}; take another format"
    )


def settled(fmt: AnyFormat, ledger: Ledger) -> AnyFormat:
    """Return the format with its tensors fixed for a model: whether ``mxfp4`` means experts.

    Where parts of a model are counted on their own (stages), settle with the whole model's ledger.
    """
    if isinstance(fmt, Mixed) or fmt.covers != "experts or layers":
        return fmt
    experts = any(_is_expert(t) for t in ledger.tensors)
    return fmt._replace(covers="experts" if experts else "layers")


def chosen(
    name: str, ledger: Ledger, model_type: str | None = None, preset: str | None = None
) -> AnyFormat:
    """Return the format of a name for a model: one of ``find``'s, settled, or a file type of
    llama.cpp laid out for it. Raises ``InputError``."""
    if _key(name) not in SCHEMES and is_file_type(str(name)):
        return mixed(name, ledger, model_type, preset)
    return settled(find(name, also=", or a file type of llama.cpp (Q4_K_M)"), ledger)


def is_quantized(tensor: Tensor) -> bool:
    """Whether the quantized formats touch a tensor: a matrix of a mixer or feed-forward part."""
    matrix = tensor.use == "matmul" and len(tensor.shape) > 1
    return matrix and tensor.role in ("attention", "mixer", "ffn")


def quantizes(fmt: Format, tensor: Tensor) -> bool:
    """Whether a settled format stores a tensor in a type of its own; it leaves the rest 16 bits."""
    if fmt.covers == "all":
        return True
    return is_quantized(tensor) and (fmt.covers != "experts" or _is_expert(tensor))


def tensor_bytes(tensor: Tensor, fmt: AnyFormat) -> Num:
    """Return the bytes of all stored copies of a tensor, scales included, each copy whole bytes.

    ``fmt`` is a ``settled`` one; ``ValueError`` tells a caller that forgot.
    """
    if isinstance(fmt, Mixed):
        return fmt.of(tensor)
    if fmt.covers == "experts or layers":
        raise ValueError(f"{fmt.name} depends on the model: call settled(fmt, ledger) first")
    if fmt.covers == "all":
        return tensor.stored * (fmt.bits // 8)
    if not quantizes(fmt, tensor):
        return tensor.stored * 2
    return tensor.copies * _matrix_bytes(tensor.shape, fmt)


def weight_bytes(ledger: Ledger, fmt: AnyFormat) -> Num:
    """Return the bytes of all weights, buffers included, in a format."""
    fixed = settled(fmt, ledger)
    return sum(tensor_bytes(t, fixed) for t in ledger.tensors)


def _is_expert(tensor: Tensor) -> bool:
    return tensor.shard.startswith("expert")


def _matrix_bytes(shape: tuple[Num, ...], fmt: Format) -> Num:
    """Bytes of one matrix: its elements, and what the format keeps beside them."""
    *outer, inputs = shape
    rows, columns = (1, prod(shape)) if fmt.flat else (prod(outer), inputs)
    high, wide = fmt.block
    scales = (ceil_div(rows, high) if high else 1) * (ceil_div(columns, wide) if wide else 1)
    zeros = ceil_div(fmt.zero_bits * scales, 8) if fmt.zero_bits else 0
    outer_scales = ceil_div(scales, fmt.outer_block) if fmt.outer_block else 0
    return (
        ceil_div(fmt.bits * rows * columns, 8)
        + scales * (fmt.scale_bits // 8)
        + zeros
        + outer_scales * 4
        + inputs * (fmt.input_bits // 8)
        + fmt.matrix_bytes
    )


def _key(name: str) -> str:
    """The plain spelling of a name."""
    plain = str(name).strip().lower().removeprefix("torch.").replace("_", "-")
    return SPELLINGS.get(plain, plain)


def _with_group(name: str, base: str, group: int) -> Format:
    if not 1 <= group <= MOST_GROUP:
        raise InputError(
            f"dtype = {name}: a group has 1 to {MOST_GROUP:,} weights;"
            f" write {base}-g{DEFAULT_GROUP}"
        )
    if group == DEFAULT_GROUP:
        return SCHEMES[base]
    return GROUPED[base](group, f"{base}-g{group}")


def of_config(quantization: Mapping[str, Any]) -> str:
    """Return the format that a config.json's ``quantization_config`` names, else ``bf16``."""
    method = str(quantization.get("quant_method", "")).lower()
    group = quantization.get("group_size")
    if method in ("awq", "gptq"):
        return f"{method}-g{group}" if type(group) is int and group > 0 else method
    if method == "fp8":
        return "fp8-block" if quantization.get("weight_block_size") else "fp8"
    if method == "bitsandbytes":
        double = quantization.get("bnb_4bit_use_double_quant")
        return "int8" if quantization.get("load_in_8bit") else "nf4-dq" if double else "nf4"
    return method if method in SCHEMES else "bf16"
