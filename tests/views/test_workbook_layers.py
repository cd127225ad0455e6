"""A few layers of models with windows, where divisors may become 0, typed into a workbook."""

from __future__ import annotations

import random
from pathlib import Path

from paramcalc.deploy import hardware
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.quantities import flops
from paramcalc.spec import ModelSpec
from paramcalc.views import workbook
from paramcalc.views.workbook.inputs import swapped
from tests import office
from tests.conftest import preset
from tests.views import figures_of
from tests.views.book_cells import Held, errors, summary_rows
from tests.views.test_workbook_typed import Typed, edited

pytestmark = office.needs_office
WINDOWED = ["gemma2-9b", "gemma3-27b", "gemma3-4b", "gpt-oss-20b", "llama4-scout"]


def with_layers(model: Model, layers: int) -> ModelSpec:
    """A model's spec with another number of layers."""

    def make(path: str, value: int) -> int:
        return layers if path == "n_layers" else value

    spec: ModelSpec = swapped(model.spec, make, "")
    return spec


def test_few_layers_of_models_with_windows(tmp_path: Path) -> None:
    models = [preset(name) for name in WINDOWED]
    gpu = hardware.find("h100")
    workbook.write(tmp_path / "few.xlsx", models, hardware.all(), workbook.wish(gpu))
    draw = random.Random(6)
    counts = [[1] * len(models), [2] * len(models), [5] * len(models)]
    counts += [[draw.randint(1, 9) for _ in models] for _ in range(3)]
    edits: list[Typed] = [
        {f"m{number}_n_layers": layers for number, layers in enumerate(own, start=1)}
        for own in counts
    ]
    paths = edited(tmp_path / "few.xlsx", edits, tmp_path)
    for own, cells in zip(counts, office.recalculated(paths, tmp_path), strict=True):
        assert not errors(cells)
        specs, settings = [], []
        row = summary_rows(cells)[figures_of.SOLVED]
        for place, (model, layers) in enumerate(zip(models, own, strict=True), start=2):
            spec = with_layers(model, layers)
            specs.append(spec)
            dtype = model.released_format if model.released_format in SCHEMES else "bf16"
            asked = {"context": model.context, "batch": 1, "gpus": 1, "tp": 1}
            settings.append(asked | {"dtype": dtype, "kv_dtype": "bf16", "gpu": gpu})
            found = cells["Summary"].get(f"{office.letters(place)}{row}")
            ledger = figures_of.ledger(spec)
            exact = flops.crossover(ledger)
            free = any(o.sight.most is None and o.copies for o in ledger.operations)
            solved = [o.sight for o in ledger.operations if type(o.sight).__name__ != "Chunk"]
            if free and len(solved) == len(ledger.operations):
                assert found == exact, (model.name, layers)
            else:  # never, or no closed form
                assert not found, (model.name, layers)
        Held(models, cells).check(specs, settings)
