"""A workbook of every preset, computed by LibreOffice: each cell is Python's integer, as written
and after edits of shapes, formats, GPUs and price."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import openpyxl
import pytest

from paramcalc.deploy import hardware
from paramcalc.formats import KV_FORMATS
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.sources import presets
from paramcalc.spec import ModelSpec
from paramcalc.views import workbook
from paramcalc.views.workbook.inputs import Placed, swapped
from tests import office
from tests.conftest import preset
from tests.views.book_cells import Edit, Held, errors, same

pytestmark = office.needs_office
PRICE = 2_490_000
EDIT = Edit(3_001, 37, "nf4-dq", "fp8", "mi300x-192gb", 6, 2, 3_750_000)
SOME = ["llama3-8b", "gpt-oss-20b", "deepseek-v3.2", "t5-small", "gemma3-27b", "bert-base"]
"""Windows, experts, latent attention, an encoder-decoder, an encoder."""
GPUS = ["h100-sxm-80gb", "t4-16gb", "b200-180gb", "m2-ultra-64gb", "rtx-4090-24gb", "tpu-v5e"]
"""With FP8, without BF16, with FP4, without any peak, without links, without FP16."""


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


class Books(NamedTuple):
    models: list[Model]
    written: dict[str, dict[str, Any]]
    plain: office.Cells
    edited: office.Cells


def written(path: Path, models: list[Model]) -> office.Package:
    wish = workbook.wish(hardware.find("h100"), price=PRICE)
    workbook.write(path, models, hardware.all(), wish)
    return office.Package(path)


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Books:
    folder = tmp_path_factory.mktemp("books")
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


def test_every_cell_of_every_preset_is_what_python_wrote(books: Books) -> None:
    wrong = []
    for sheet, cells in books.written.items():
        for place, value in cells.items():
            found = books.plain[sheet].get(place)
            if isinstance(value, bool):
                continue
            equal = (found or "") == value if isinstance(value, str) else same(found, value)
            if not equal:
                wrong.append((sheet, place, value, found))
    assert not wrong, (len(wrong), wrong[:9])
    assert sum(map(len, books.written.values())) > 200_000


def test_as_written_it_is_what_ints_give(books: Books) -> None:
    gpu = hardware.find("h100")._replace(price_per_hour_micro=PRICE)
    settings = []
    for model in books.models:
        dtype = model.released_format if model.released_format in SCHEMES else "bf16"
        own = {"context": model.context, "batch": 1, "gpus": 1, "tp": 1}
        settings.append(own | {"dtype": dtype, "kv_dtype": "bf16", "gpu": gpu})
    specs = [model.spec for model in books.models]
    Held(books.models, books.plain).check(specs, settings)


def settings_of(edit: Edit) -> dict[str, Any]:
    gpu = hardware.find(edit.gpu)._replace(price_per_hour_micro=edit.price)
    return edit._asdict() | {"gpu": gpu}


def test_edited_it_is_what_ints_give(books: Books) -> None:
    specs = [edited(model, number) for number, model in enumerate(books.models, start=1)]
    Held(books.models, books.edited).check(specs, [settings_of(EDIT)] * len(specs))


def test_no_cell_is_an_error(books: Books) -> None:
    assert not errors(books.plain)
    assert not errors(books.edited)


def test_every_format_on_gpus_with_and_without_its_arithmetic(tmp_path: Path) -> None:
    models = [preset(name) for name in SOME]
    written(tmp_path / "plain.xlsx", models)
    edits = [
        Edit(context, batch, dtype, kv_dtype, gpu, replicas * tp, tp, 1_234_567)
        for dtype, kv_dtype, gpu, context, batch, tp, replicas in zip(
            SCHEMES,
            cycle(KV_FORMATS),
            cycle(GPUS),
            cycle([1, 100, 4_096, 131_072, 1_000_000]),
            cycle([1, 3, 64, 1_000]),
            cycle([1, 2, 4, 8, 3]),
            cycle([1, 1, 3]),
            strict=False,
        )
    ]
    paths = []
    for number, edit in enumerate(edits):
        package = office.Package(tmp_path / "plain.xlsx")
        edit.type(package)
        paths.append(tmp_path / f"edit{number}.xlsx")
        package.save(paths[-1])
    specs = [model.spec for model in models]
    for edit, cells in zip(edits, office.recalculated(paths, tmp_path), strict=True):
        Held(models, cells).check(specs, [settings_of(edit)] * len(specs))
        assert not errors(cells), edit
