"""A workbook of every preset, as written and as edited, both computed by LibreOffice."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl

from paramcalc.deploy import hardware
from paramcalc.deploy.hardware import Accelerator
from paramcalc.model import Model
from paramcalc.sources import presets
from paramcalc.spec import ModelSpec
from paramcalc.views import workbook
from paramcalc.views.workbook.inputs import Placed, swapped
from tests import office
from tests.conftest import preset
from tests.views.book_cells import Edit

BATCH, KV = 3, "fp8"
PRICE = 2_490_000
EDIT = Edit(3_001, 37, "nf4-dq", "fp8", "mi300x-192gb", 6, 2, 3_750_000)


class Books(NamedTuple):
    """The models; the values that Python wrote; the cells as computed, plain and edited."""

    models: list[Model]
    written: dict[str, dict[str, Any]]
    plain: office.Cells
    edited: office.Cells


def fields(model: Model, number: int) -> dict[str, int]:
    """A wider model with all heads for keys and values, twice the experts, another vocabulary."""
    own = Placed(model, number).inputs
    found = {"d_model": own["d_model"].value * 2, "vocab_size": own["vocab_size"].value + 65}
    if "n_kv_heads" in own and "n_heads" in own:
        found["n_kv_heads"] = own["n_heads"].value
    if "n_experts" in own:
        found["n_experts"] = own["n_experts"].value * 2
    if "layers.0.repeat" not in own:
        found["n_layers"] = own["n_layers"].value + 3
    return found


def edited(model: Model, number: int) -> ModelSpec:
    """The spec that the edits make, on plain ints; defaults follow by themselves."""
    change = fields(model, number)
    spec: ModelSpec = swapped(model.spec, lambda path, value: change.get(path, value), "")
    if "n_kv_heads" in Placed(model, number).defaults:
        spec = spec.model_copy(update={"n_kv_heads": change["n_kv_heads"]})
    return spec


def written(
    path: Path, models: list[Model], units: list[Accelerator] | None = None
) -> office.Package:
    """A workbook of models for an H100, a batch of ``BATCH`` and a cache in ``KV``; it lists every
    accelerator, or those of ``units``."""
    wish = workbook.wish(hardware.find("h100"), price=PRICE, batch=BATCH, kv_dtype=KV)
    gc.disable()  # as the command does: hundreds of thousands of formulas live until the end
    try:
        workbook.write(path, models, units or hardware.all(), wish)
    finally:
        gc.enable()
    return office.Package(path)


def of_presets(folder: Path) -> Books:
    """Write, edit and compute the workbook of every preset."""
    models = [preset(name) for name in presets.names()]
    package = written(folder / "plain.xlsx", models)
    book = openpyxl.load_workbook(folder / "plain.xlsx", data_only=True, read_only=True)
    values = {
        sheet.title: {c.coordinate: c.value for row in sheet for c in row if c.value is not None}
        for sheet in book
    }
    book.close()
    package.save(folder / "bare.xlsx")
    for number, model in enumerate(models, start=1):
        for path, value in fields(model, number).items():
            package.type(f"m{number}_{path}", value)
    EDIT.type(package)
    package.save(folder / "edited.xlsx")
    plain, changed = office.recalculated([folder / "bare.xlsx", folder / "edited.xlsx"], folder)
    return Books(models, values, plain, changed)
