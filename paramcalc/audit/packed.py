"""Packed weights: quantized tensors of a checkpoint, read back to the tensors they stand for.

What the released formats store, by the names beside a weight:

* GPTQ: ``qweight`` int32 (in / p, out), ``qzeros`` (groups, out / p), ``scales`` (groups, out),
  ``g_idx``, where p = 32 / bits weights share a word; AWQ: ``qweight`` (in, out / p);
* bitsandbytes: ``weight`` uint8, two 4-bit weights a byte, with ``weight.absmax`` and the shape in
  ``weight.quant_state.*``; or int8 with ``SCB``;
* compressed-tensors: ``weight_packed`` with ``weight_scale`` and ``weight_shape``;
* FP8: ``weight`` with ``weight_scale_inv`` or ``weight_scale``; NVFP4: uint8 (out, in / 2) with an
  FP8 ``weight_scale`` for each 16 and a ``weight_scale_2``;
* MXFP4: ``X_blocks`` uint8 (..., in / 32, 16) with ``X_scales``.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

from paramcalc.sources.contents import Contents, FileTensor

_SCALES = (
    "weight_scale_inv",
    "weight_scale",
    "input_scale",
    "weight_scale_2",
    "weight_global_scale",
    "input_global_scale",
    "weight_zero_point",
    "input_zero_point",
    "activation_scale",
    "SCB",
    "weight_format",
)
_WORD_BITS = 32


class Held(NamedTuple):
    """A tensor as the model has it: its true shape, how it is stored, bytes with its scales."""

    name: str
    shape: tuple[int, ...]
    stored_as: str
    n_bytes: int
    packed: bool = False

    @property
    def elements(self) -> int:
        """True elements."""
        return prod(self.shape)


def unpacked(contents: Contents) -> list[Held]:
    """Return the tensors of the model that the files hold, packed ones at their true size."""
    if contents.ggml:
        return [
            Held(t.name, t.shape, t.dtype, t.n_bytes, t.dtype not in ("F32", "F16", "BF16"))
            for t in contents.tensors
        ]
    return list(_Reader(contents).held())


class _Reader:
    def __init__(self, contents: Contents) -> None:
        self.tensors = {t.name: t for t in contents.tensors}
        self.taken: set[str] = set()

    def held(self) -> Iterator[Held]:
        for name in self.tensors:
            if name not in self.taken and (found := self._packed(name)):
                yield found
        for name, tensor in self.tensors.items():
            if name not in self.taken:
                yield Held(name, tensor.shape, tensor.dtype, tensor.n_bytes)

    def _take(self, names: list[str]) -> int:
        """Mark tensors as read, and return their bytes."""
        own = [name for name in names if name in self.tensors]
        self.taken.update(own)
        return sum(self.tensors[name].n_bytes for name in own)

    def _packed(self, name: str) -> Held | None:
        base, _, last = name.rpartition(".")
        tensor = self.tensors[name]
        if last == "qweight":
            return self._words(base, tensor)
        if last == "weight_packed":
            return self._compressed(base, tensor)
        if last.endswith("_blocks"):
            return self._blocks(name.removesuffix("_blocks"), tensor)
        if last == "weight":
            return self._scaled(base, tensor)
        return None

    def _words(self, base: str, tensor: FileTensor) -> Held | None:
        """GPTQ and AWQ."""
        scales, zeros = (self.tensors.get(f"{base}.{x}") for x in ("scales", "qzeros"))
        if scales is None or zeros is None or len(tensor.shape) != 2 or len(scales.shape) != 2:
            return None
        out = scales.shape[1]
        if not zeros.shape or not zeros.shape[-1] or out % zeros.shape[-1]:
            return None
        pack = out // zeros.shape[-1]
        rows, columns = tensor.shape
        awq = columns * pack == out
        if not awq and columns != out:
            return None
        shape = (out, rows if awq else rows * pack)
        bits = _WORD_BITS // pack if pack else 0
        names = [f"{base}.{x}" for x in ("qweight", "qzeros", "scales", "g_idx")]
        label = f"int{bits} ({'AWQ' if awq else 'GPTQ'})"
        return Held(f"{base}.weight", shape, label, self._take(names), True)

    def _compressed(self, base: str, tensor: FileTensor) -> Held | None:
        given = self.tensors.get(f"{base}.weight_shape")
        if given is not None and len(given.values) == 2:
            shape = given.values
            if prod(shape) > tensor.n_bytes * 8:  # not even a bit for each
                return None
        elif tensor.dtype == "U8" and len(tensor.shape) == 2:
            shape = (tensor.shape[0], tensor.shape[1] * 2)
        else:
            return None
        bits = tensor.n_bytes * 8 // prod(shape) if prod(shape) else 0
        names = [f"{base}.{x}" for x in ("weight_packed", "weight_shape", "weight_g_idx", *_SCALES)]
        label = f"{'fp' if tensor.dtype == 'U8' else 'int'}{bits} (packed)"
        return Held(f"{base}.weight", shape, label, self._take(names), True)

    def _blocks(self, base: str, tensor: FileTensor) -> Held | None:
        if f"{base}_scales" not in self.tensors or len(tensor.shape) < 3:
            return None
        *rows, groups, n_bytes = tensor.shape
        names = [f"{base}_blocks", f"{base}_scales"]
        return Held(base, (*rows, groups * n_bytes * 2), "MXFP4", self._take(names), True)

    def _scaled(self, base: str, tensor: FileTensor) -> Held | None:
        name = f"{base}.weight"
        states = [n for n in self.tensors if n.startswith(f"{name}.")] if self._is_bnb(name) else []
        if states:
            state = next((n for n in states if ".quant_state." in n), "")
            shape = self.tensors[state].values if state else ()
            label = "NF4" if state.endswith("nf4") else "FP4"
            packed = tensor.elements * 2
            true = shape if prod(shape) in (packed, packed - 1) else (packed,)
            return Held(name, true, label, self._take([name, *states]), True)
        scales = [f"{base}.{x}" for x in _SCALES if f"{base}.{x}" in self.tensors]
        if not scales:
            return None
        shape, label = tensor.shape, tensor.dtype
        if tensor.dtype == "U8" and f"{base}.weight_scale_2" in self.tensors:
            shape, label = (*shape[:-1], shape[-1] * 2), "NVFP4"
        return Held(name, shape, label, self._take([name, *scales]), True)

    def _is_bnb(self, name: str) -> bool:
        return f"{name}.absmax" in self.tensors
