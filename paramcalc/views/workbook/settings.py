"""What drives a deployment: what was wished for, and the cells of it with their limits."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.deploy.hardware import Accelerator
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.inputs import MOST_BATCH, MOST_GPUS, MOST_TOKENS, Placed
from paramcalc.views.workbook.lists import FormatList, HardwareList

UTILIZATION = 90
"""Percent of a GPU's memory that an engine takes, as ``Engine`` has it."""
MOST_TP = 1024
MOST_DOLLARS = 10**6


class Wish(NamedTuple):
    """What the deployment is at first; None leaves it to each model (its own context, the format
    it is released in) or open (no price)."""

    gpu: Accelerator
    context: int | None = None
    batch: int = 1
    dtype: str | None = None
    kv_dtype: str = "bf16"
    gpus: int = 1
    tp: int = 1
    price: int | None = None
    assumed: bool = False
    """That nobody named the GPU."""


class Setting(NamedTuple):
    """A cell that drives a model's column: its name, value and limits, or the list it is of, with
    its sheet; ``own`` is the model's where the cell for all models is empty."""

    key: str
    label: str
    value: int | str
    low: int = 1
    high: int = 1
    source: str = ""
    sheet: str = ""
    own: str = ""
    tenths: bool = False
    """That it may have a decimal; its value in use is in tenths."""

    @property
    def style(self) -> str:
        """How its cell looks."""
        return "word" if self.source else "tenths" if self.tenths else "input"


def settings(
    placed: Placed, wish: Wish, formats_: FormatList, hardware: HardwareList
) -> tuple[Setting, ...]:
    """The cells that drive a model's column, with their first values."""
    model = placed.model
    names = [fmt.name for fmt in formats_.plain]
    released = model.released_format if model.released_format in names else "bf16"
    context = placed.inputs.get("context")
    length = str(model.context) if context is None else context.name
    names_, kv = formats_.names, formats_.kv_names
    return (
        Setting(
            "at_context", "context", wish.context or model.context, 1, MOST_TOKENS, own=length
        ),
        Setting("batch", "sequences", wish.batch, 1, MOST_BATCH),
        Setting(
            "format", "format", wish.dtype or released, source=names_, sheet="Formats",
            own=checks.words(released),
        ),
        Setting("kv_format", "cache", wish.kv_dtype, source=kv, sheet="Formats"),
        Setting(
            "gpu", "accelerator", wish.gpu.name, source=hardware.names, sheet="Hardware"
        ),
        Setting("gpus", "GPUs", wish.gpus, 1, MOST_GPUS),
        Setting("tp", "tensor-parallel ranks", wish.tp, 1, MOST_TP),
        Setting("percent", "percent", UTILIZATION, 1, 100, tenths=True),
    )  # fmt: skip
