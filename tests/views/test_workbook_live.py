"""A workbook of every preset, computed by LibreOffice: each cell is Python's integer, as written
and after edits of shapes, formats, GPUs and price."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any

from paramcalc.deploy import hardware
from paramcalc.formats import KV_FORMATS
from paramcalc.formats.schemes import SCHEMES
from tests import office
from tests.conftest import preset
from tests.views.book_cells import Edit, Held, errors, same
from tests.views.live_books import BATCH, EDIT, KV, PRICE, Books, edited, written

pytestmark = office.needs_office
SOME = ["llama3-8b", "gpt-oss-20b", "deepseek-v3.2", "t5-small", "gemma3-27b", "bert-base"]
"""Windows, experts, latent attention, an encoder-decoder, an encoder."""
GPUS = ["h100-sxm-80gb", "t4-16gb", "b200-180gb", "m2-ultra-64gb", "rtx-4090-24gb", "tpu-v5e"]
"""With FP8, without BF16, with FP4, without any peak, without links, without FP16."""


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
        own = {"context": model.context, "batch": BATCH, "gpus": 1, "tp": 1}
        settings.append(own | {"dtype": dtype, "kv_dtype": KV, "gpu": gpu})
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
