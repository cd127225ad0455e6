"""What a reader of a workbook sees: units, words, notes, and how it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openpyxl
import pytest

from paramcalc.deploy import hardware
from paramcalc.views import workbook
from paramcalc.views.workbook.book import MOST_PRINTED
from paramcalc.views.workbook.rows import LOOKUPS, ROWS
from tests.conftest import preset

MODELS = ("llama3-8b", "gemma3-27b", "bert-base")
SWITCHES = ("tie_embeddings", "gated_ffn", "gpt2", "causal", "share_layers")


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("sheets") / "plan.xlsx"
    wish = workbook.wish(hardware.find("h100"), price=2_490_000, batch=16)
    workbook.write(path, [preset(name) for name in MODELS], hardware.all(), wish)
    return openpyxl.load_workbook(path, data_only=True)


def lines(sheet: Any, start: int = 0) -> dict[str, list[Any]]:
    """Rows by their first cell; the first of equal ones."""
    found: dict[str, list[Any]] = {}
    for row in sheet.iter_rows(values_only=True):
        found.setdefault(str(row[0]), list(row[1 + start :]))
    return found


def test_every_sheet_prints_with_its_names(book: Any) -> None:
    for sheet in book:
        widths = [own.width * (own.max - own.min + 1) for own in sheet.column_dimensions.values()]
        across = int(sheet.page_setup.fitToWidth or 1)
        assert sheet.sheet_properties.pageSetUpPr.fitToPage
        assert sum(widths) / across < MOST_PRINTED + 20, sheet.title
        first = sheet.print_title_rows.replace("$", "").split(":")[0]
        assert across == 1 or first != "1", sheet.title
        assert sheet.print_title_cols or sheet.title == "Steps", sheet.title
        assert "&A" in f"&{sheet.oddFooter.left.text}", sheet.title
    assert book["Weights"].page_setup.fitToWidth > 1


def test_models_are_compared_in_a_planners_units(book: Any) -> None:
    rows = list(book["Compare"].iter_rows(values_only=True, max_col=5))
    above = {row[0]: row[1:] for row in rows[:20] if row[1] not in ("bytes", "ns", "microdollars")}
    below = {row[0]: row[1:] for row in rows if row[1] in ("bytes", "ns", "microdollars")}
    assert above["fits"][1:] == ("fits", "does not fit", "fits")
    sizes = {"GB": 10**9, "ms": 10**6, "s": 10**9, "$": 10**6}
    assert len(below) == 7
    for label, (_, *whole) in below.items():
        unit, *shown = above[label]
        for found, exact in zip(shown, whole, strict=True):
            assert (found is None) is (exact is None), label
            assert found is None or found == exact / sizes[unit], label
    assert below["free on one GPU"][2] < 0
    assert below["a million tokens"][2] is None


def test_structure_is_in_words(book: Any) -> None:
    found = lines(book["Inputs"])
    for name in SWITCHES:
        *_, causal, note = found[name][2:6]
        assert causal in ("yes", "no")
        assert len(note) > 20, name
    assert found["causal"][2:5] == ["yes", "yes", "no"]
    assert found["tie_embeddings"][2:5] == ["no", "yes", "yes"]


def test_what_only_formulas_use_is_no_result(book: Any) -> None:
    assert not {key for key, _, _ in ROWS if key} & {key for key, _, _ in LOOKUPS if key}
    assert not [label for _, label, _ in ROWS if label.startswith("1:")]
    titles = [label for key, label, _ in ROWS if not key]
    assert [title.split()[0].strip(",") for title in titles] == [
        "What",
        "Memory",
        "One",
        "The",
        "Cost",
        "Checks",
    ]
    assert lines(book["Deployment"])["times"][2:5] == [
        "shown",
        "none: see fits",
        "none: writes no tokens",
    ]


def test_headings_say_of_which_gpus(book: Any) -> None:
    heads = [label for label in lines(book["Summary"]) if label.startswith("Free on")]
    assert heads == [
        "Free on each GPU of sheet Deployment (tp of them a replica), were it of this kind"
    ]
    assert "attention scores and values, states" in lines(book["Summary"])
    note = book["Steps"]["A3"].value
    assert "square" in note
    assert "digit" in note
