"""Where a figure of an accelerator stands, in the few words beside an answer."""

from __future__ import annotations

from textwrap import shorten

from paramcalc.deploy import hardware
from paramcalc.deploy.hardware import Accelerator

DATASHEET = "datasheet"
WIDTH = 40
"""Letters of a source's title beside a figure."""


def seen(gpu: Accelerator) -> str:
    """Say what a GPU's memory rests on."""
    by = stated(gpu, "visible" if "visible" in gpu.sources else "memory")
    measured = by == DATASHEET and gpu.visible_bytes != gpu.memory_bytes
    return "as software sees it" if measured else by


def stated(gpu: Accelerator, cell: str) -> str:
    """Say where a figure of ``gpu.sources`` stands: the catalogue's datasheets, the source that a
    person's file names for it, or that file."""
    source = gpu.sources.get(cell)
    if source is None or not source.date:
        return "your file"
    shipped = any(source in unit.sources.values() for unit in hardware.all())
    return DATASHEET if shipped else shorten(source.title, WIDTH, placeholder="...")
