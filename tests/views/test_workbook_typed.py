"""What a planner types that cannot be: each cell says so, none is an error, answers are empty."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from paramcalc.deploy import fitting, hardware
from paramcalc.deploy.engine import for_gpu
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.quantities import flops
from paramcalc.views import workbook
from tests import office
from tests.conftest import preset
from tests.views import figures_of
from tests.views.book_cells import LACKS, LINES, LOOKED, errors
from tests.views.live_books import PRICE

pytestmark = office.needs_office
Typed = dict[str, int | float | str | None]
"""Names of cells (or places, with their sheet) and what is typed into them."""
GPUS = ["h100-sxm-80gb", "t4-16gb", "v100-sxm-32gb", "m2-ultra-64gb"]

EMPTIED: list[Typed] = [
    {f"m1_{name}": None}
    for name in (
        *("d_model", "n_layers", "n_heads", "n_kv_heads", "head_dim", "d_ff", "vocab_size"),
        *(
            "n_experts",
            "top_k",
            "context",
            "layers_0_pattern_0_window",
            "at_context",
            "batch",
            "format",
        ),
        *("kv_format", "gpu", "gpus", "tp", "percent"),
    )
]
WRONG: list[Typed] = [
    {"m1_d_model": -4096},
    {"m1_d_model": 0},
    {"m1_d_model": 4_000_001},
    {"m1_d_model": 10**300},
    {"m1_d_model": "wide"},
    {"m1_n_layers": 2.5},
    {"m1_n_layers": 10**6},
    {"m1_head_dim": "64 "},
    {"m1_n_heads": -64, "m1_n_kv_heads": -8},
    {"m1_n_heads": None, "m1_n_kv_heads": None},
    {"m1_at_context": "8k"},
    {"m1_at_context": 100.5},
    {"m1_batch": 0},
    {"m1_batch": 10**9},
    {"m1_format": "int5"},
    {"m1_format": "fp?"},
    {"m1_kv_format": "nf4"},
    {"m1_gpu": "*"},
    {"m1_gpu": 7},
    {"m1_gpus": -2, "m1_tp": -2},
    {"m1_gpus": 2.5, "m1_tp": 2.5},
    {"m1_percent": 150},
    {"m1_percent": 92.55},
    {"m1_percent": 0},
    {"m1_price": "free"},
    {"m1_price": -5},
    {"Formats!C7": None},
    {"Formats!E12": "all"},
    {"Formats!E20": None, "Formats!F20": None},
    {"Formats!P6": None},
    {"Hardware!D5": None},
    {"Hardware!D5": "80 GB"},
    {"Hardware!K5": None, "Hardware!L5": "many"},
]
"""On sheet Formats: bits of the third, block columns of int4, block and scale of the last, bits of
the cache's second; on Hardware: memory and engine of the first."""
SLOW: list[Typed] = [
    {"Hardware!E5": None},
    {"Hardware!E5": "fast"},
    {"Hardware!F5": "fast"},
    {"Hardware!N5": "fast", "Hardware!O5": None, "Hardware!P5": "x", "Hardware!Q5": None},
    {"Hardware!D6": None, "Hardware!K6": "x"},
    {"Curve!A5": None, "Curve!A6": "x", "Curve!A7": -1, "Curve!A8": 2.5, "Curve!A9": 100},
]
"""Rates that are no numbers, another accelerator's memory, contexts of the curve."""
BROKEN: list[Typed] = [
    {"m1_gpus": 3, "m1_tp": 2},
    {"m1_gpus": 1, "m1_tp": 64},
    {"m1_gpus": 3, "m1_tp": 3},
    {"m1_n_kv_heads": 7},
    {"m1_n_kv_heads": 7, "m1_n_layers": 1},
    {"m1_top_k": 33},
    {"m1_n_heads": 90_000},
]
SHARES: list[Typed] = [{"m1_percent": percent} for percent in (92.5, 0.1, 33.3, 100)]
SMALL: list[Typed] = [{"m1_batch": 1_000}, {"m1_gpu": "t4-16gb", "m1_format": "fp16"}]
"""What does not fit, on a GPU with and without its format."""
FIGURES = ("parameters", "forward, one token", "KV cache", "bf16")


def write(path: Path, models: list[Model], **wish: Any) -> Path:
    units = [hardware.find(name) for name in GPUS]
    workbook.write(path, models, units, workbook.wish(units[0], **wish))
    return path


def edited(path: Path, edits: list[Typed], folder: Path) -> list[Path]:
    """Copies of a workbook with each of the edits, without values."""
    found = []
    for number, edit in enumerate(edits):
        package = office.Package(path)
        for name, value in edit.items():
            if "!" in name:
                sheet, cell = name.split("!")
                package.put(sheet, cell, value)
            else:
                package.type(name, value)
        found.append(folder / f"{path.stem}-{number}.xlsx")
        package.save(found[-1])
    return found


class Typing:
    """Edits of a workbook of gpt-oss-20b with a price, of one of two models, and of one without."""

    def __init__(self, folder: Path) -> None:
        both = [preset("gpt-oss-20b"), preset("llama3-8b")]
        priced = write(folder / "priced.xlsx", both[:1], price=PRICE)
        two = write(folder / "two.xlsx", both, context=3_000)
        bare = write(folder / "bare.xlsx", both[1:])
        old = write(folder / "old.xlsx", [preset("gpt2")], dtype="fp16")
        every: list[Typed] = [
            *EMPTIED,
            *WRONG,
            *BROKEN,
            *SLOW,
            *SHARES,
            *SMALL,
            {"m1_price": None},
            {},
        ]
        place = f"Deployment!C{LINES['at_context']}"
        paths = edited(priced, every, folder)
        many = {f"Deployment!C{LINES['batch']}": 300}
        paths += edited(two, [{place: None}, {place: "8k"}, many], folder)
        paths += edited(bare, [{}], folder)
        paths += edited(old, [{"m1_gpu": gpu, "m1_format": f} for gpu, f in FITS], folder)
        cells = office.recalculated(paths, folder)
        self.edits = {str(edit): found for edit, found in zip(every, cells, strict=False)}
        self.context, self.worded, self.many, self.bare, *rest = cells[len(every) :]
        self.fits = dict(zip(FITS, rest, strict=True))
        self.all = cells


FITS = [(gpu, dtype) for gpu in GPUS for dtype in ("fp16", "bf16", "fp8", "int4")]


@pytest.fixture(scope="module")
def typing(tmp_path_factory: pytest.TempPathFactory) -> Typing:
    return Typing(tmp_path_factory.mktemp("typed"))


def shown(cells: office.Cells, key: str, column: str = "C") -> Any:
    return cells["Deployment"].get(f"{column}{LINES[key]}") or ""


def looked(cells: office.Cells, key: str, column: str = "C") -> Any:
    return cells["Lookups"].get(f"{column}{LOOKED[key]}") or ""


def summary(cells: office.Cells, label: str) -> Any:
    rows = {text: place[1:] for place, text in cells["Summary"].items() if place[0] == "A"}
    return cells["Summary"].get(f"C{rows[label]}") or ""


def test_no_cell_is_an_error(typing: Typing) -> None:
    for number, cells in enumerate(typing.all):
        assert not errors(cells), number


@pytest.mark.parametrize("edit", [*EMPTIED, *WRONG], ids=str)
def test_a_cell_that_cannot_be_used_is_said(typing: Typing, edit: Typed) -> None:
    cells = typing.edits[str(edit)]
    assert shown(cells, "fits") == "check the inputs"
    assert shown(cells, "wrong") >= 1
    for key in figures_of.ANSWERS:
        assert shown(cells, key) == "", key
    for label in FIGURES:
        assert summary(cells, label) == "", label
    assert summary(cells, "cells or rules that are wrong (Inputs, Deployment)") >= 1


@pytest.mark.parametrize("edit", BROKEN, ids=str)
def test_a_broken_rule_is_said(typing: Typing, edit: Typed) -> None:
    cells = typing.edits[str(edit)]
    assert shown(cells, "fits") == "check the rules"
    for key in figures_of.ANSWERS:
        assert shown(cells, key) == "", key
    assert summary(cells, "parameters") > 10**9


def test_a_price_that_is_taken_away_takes_money_with_it(typing: Typing) -> None:
    before, after = typing.edits["{}"], typing.edits[str({"m1_price": None})]
    for key in figures_of.ANSWERS:
        if key in figures_of.MONEY:
            assert shown(before, key) > 0
            assert shown(after, key) == ""
        else:
            assert shown(before, key) == shown(after, key) != ""
    assert shown(after, "fits") == "fits"


def test_a_workbook_without_a_price(typing: Typing) -> None:
    assert shown(typing.bare, "fits") == "fits"
    assert summary(typing.bare, "parameters") == 8_030_261_248
    assert shown(typing.bare, "tokens") > 0
    assert not any(shown(typing.bare, key) for key in figures_of.MONEY)


def test_rates_that_are_no_numbers(typing: Typing) -> None:
    slow, fast, link, none, _, curve = (typing.edits[str(edit)] for edit in SLOW)
    for cells in (slow, fast, none):
        assert shown(cells, "fits") == "fits"
        assert not looked(cells, "known")
        assert shown(cells, "times") == "none: rate not known"
        assert shown(cells, "tokens") == shown(cells, "cost_million") == ""
    assert shown(link, "tokens") > 0
    spec = preset("gpt-oss-20b").ledger
    rows = {row: curve["Curve"].get(f"B{row}") or "" for row in (5, 6, 7, 8, 9)}
    exact = flops.attention_per_token(spec, 100)
    assert rows == {5: "", 6: "", 7: "", 8: "", 9: exact}


def test_an_empty_context_for_all_is_each_models_own(typing: Typing) -> None:
    own = [preset("gpt-oss-20b").context, preset("llama3-8b").context]
    assert [looked(typing.context, "used at_context", c) for c in "CD"] == own == [131_072, 8_192]
    assert [shown(typing.worded, "fits", c) for c in "DE"] == ["check the inputs"] * 2
    assert looked(typing.worded, "used at_context") == 3_000  # as it was written


def test_fits_is_what_fit_says(typing: Typing) -> None:
    for (gpu, dtype), cells in typing.fits.items():
        serves = fitting.serves(hardware.find(gpu), SCHEMES[dtype])
        assert shown(cells, "fits") == ("fits" if serves else LACKS), (gpu, dtype)
        free = summary(cells, hardware.find(gpu).label)
        assert (free == LACKS) is not serves
        assert (shown(cells, "tokens") == "") is not (serves and bool(hardware.find(gpu).peaks))
        assert (shown(cells, "times") == "none: see fits") is not serves
    lacking = [key for key in FITS if shown(typing.fits[key], "fits") == LACKS]
    assert ("t4-16gb", "bf16") in lacking
    assert ("m2-ultra-64gb", "bf16") not in lacking  # nothing is published of it


@pytest.mark.parametrize("edit", SMALL, ids=str)
def test_what_does_not_fit_has_no_times_and_no_money(typing: Typing, edit: Typed) -> None:
    cells = typing.edits[str(edit)]
    assert shown(cells, "fits") == "does not fit"
    assert shown(cells, "free") < 0 < shown(cells, "step_weights")
    for key in (*figures_of.TIMED, *figures_of.MONEY, "step_ms", "cost_million_dollars"):
        assert shown(cells, key) == "", key
    assert shown(cells, "times") == "none: see fits"


def test_models_side_by_side_where_one_fits(typing: Typing) -> None:
    rows = {text: place[1:] for place, text in typing.many["Compare"].items() if place[0] == "A"}
    both = [
        [typing.many["Compare"].get(f"{column}{rows[text]}") or "" for column in "CD"]
        for text in (
            "fits",
            "free on one GPU",
            "tokens a second, all sequences",
            "a million tokens",
        )
    ]
    fits, free, tokens, cost = both
    assert fits == ["fits", "does not fit"]
    assert free[0] > 0 > free[1]
    assert tokens[0] > 0
    assert tokens[1] == ""
    assert cost == ["", ""]  # without a price


@pytest.mark.parametrize("edit", SHARES, ids=str)
def test_a_share_of_memory_with_a_decimal(typing: Typing, edit: Typed) -> None:
    percent = Fraction(str(edit["m1_percent"]))
    engine = for_gpu(hardware.find(GPUS[0]))._replace(utilization=percent / 100)
    exact = engine.budget(hardware.find(GPUS[0]).visible_bytes)
    assert shown(typing.edits[str(edit)], "budget") == exact
