"""The arithmetic of a GPU for weights in a format: what it lacks, what it has for 16 bits."""

from __future__ import annotations

from paramcalc.deploy.hardware import Accelerator
from paramcalc.errors import InputError
from paramcalc.formats import AnyFormat
from paramcalc.formats.mixed import Mixed

SIXTEEN = ("bf16", "fp16")
"""16-bit arithmetic, the better first."""


def lack(gpu: Accelerator, fmt: AnyFormat, *, timed: bool = True) -> str | None:
    """Say what a GPU is without for weights in a format; None where it multiplies them.

    Without published rates it is not judged, unless times are asked for (``timed``).
    """
    if not gpu.peaks:
        return f"{gpu.name} has no published rates" if timed else None
    if not any(kind in gpu.peaks for kind in fmt.compute):
        use = "" if fmt.name in fmt.compute else f" for {fmt.name}"
        return f"{gpu.name} has no {' or '.join(fmt.compute)}{use}"
    if timed and leaves_some(fmt) and not any(gpu.has(name) for name in SIXTEEN):
        return f"{gpu.name} has no {' or '.join(SIXTEEN)} for what {fmt.name} leaves in 16 bits"
    return None


def leaves_some(fmt: AnyFormat) -> bool:
    """Whether a format leaves tensors in 16 bits."""
    return not isinstance(fmt, Mixed) and fmt.covers != "all"


def sixteen(gpu: Accelerator, fmt: AnyFormat) -> str:
    """The 16-bit arithmetic of a GPU. Raises ``InputError``."""
    for name in SIXTEEN:
        if gpu.has(name):
            return name
    raise InputError(
        f"dtype = {fmt.name}: leaves tensors in 16 bits, and no such peak is known for {gpu.name};"
        " state one in a file of your own (--hardware)"
    )
