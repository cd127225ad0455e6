"""A workbook as it is written: formulas, values, names, limits; nothing that runs."""

from __future__ import annotations

import errno
import os
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import openpyxl
import pytest

import paramcalc
from paramcalc.deploy import hardware
from paramcalc.errors import InputError
from paramcalc.formats.schemes import SCHEMES
from paramcalc.model import Model
from paramcalc.views import workbook
from paramcalc.views.workbook.inputs import Placed
from tests import office
from tests.conftest import preset
from tests.views.book_cells import LINES

FUNCTIONS = {
    "AND",
    "CHOOSE",
    "COUNTIF",
    "IF",
    "INDEX",
    "INT",
    "ISNUMBER",
    "MATCH",
    "MAX",
    "MIN",
    "OR",
    "ROUND",
    "SUM",
    "SUMIF",
}
"""What LibreOffice and every Excel have; none is volatile or for arrays alone."""
MODELS = ("llama3-8b", "gpt-oss-20b", "deepseek-v3.2", "t5-small", "bert-base")
EVIL = ["=1+1", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0", '"&A1&"', "<b>x</b>"]


def write(path: Path, *models: Model, **wish: Any) -> Path:
    unit = hardware.find("h100")
    workbook.write(path, list(models), hardware.all(), workbook.wish(unit, **wish))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    return write(folder / "plan.xlsx", *map(preset, MODELS), price=2_490_000)


@pytest.fixture(scope="module")
def formulas(path: Path) -> dict[str, dict[str, Any]]:
    book = openpyxl.load_workbook(path)
    return {
        sheet.title: {c.coordinate: c.value for row in sheet for c in row if c.value is not None}
        for sheet in book
    }


@pytest.fixture(scope="module")
def values(path: Path) -> dict[str, dict[str, Any]]:
    book = openpyxl.load_workbook(path, data_only=True)
    return {
        sheet.title: {c.coordinate: c.value for row in sheet for c in row if c.value is not None}
        for sheet in book
    }


def within_limits(formula: str) -> bool:
    """Whether Excel takes a formula: 8,192 letters, 64 levels of functions, 255 arguments."""
    depth, arguments, deepest, most = 0, [0], 0, 0
    for token in re.findall(r'"(?:[^"]|"")*"|[(),]', formula):
        if token == "(":
            depth += 1
            arguments.append(1)
        elif token == ")":
            depth -= 1
            arguments.pop()
        elif token == ",":
            arguments[-1] += 1
        deepest, most = max(deepest, depth), max(most, arguments[-1])
    return len(formula) <= 8192 and deepest <= 64 and most <= 255 and depth == 0


def test_the_limits_are_seen() -> None:
    assert within_limits('=MAX(1,IF(A1="(((,",2,3))')
    assert not within_limits("=" + "1+" * 4096 + "1")
    assert not within_limits("=" + "INT(" * 65 + "1" + ")" * 65)
    assert not within_limits("=MAX(" + "1," * 255 + "1)")


WIDE = {"d_model": 3072, "n_heads": 24, "head_dim": 128, "vocab_size": 32_000}
MANY = {
    "windows": lambda i: {"window": i + 1, "n_kv_heads": [1, 2, 4][i % 3], "d_ff": 100 + i},
    "widths": lambda i: {"n_heads": 12 + i % 12, "n_kv_heads": 1, "d_ff": 1536 + 256 * i},
    "experts": lambda i: {"n_experts": 8 + i, "top_k": 2, "n_kv_heads": 4, "d_ff": 256},
}


@pytest.mark.parametrize(
    ("kind", "count"), [("windows", 60), ("windows", 130), ("widths", 80), ("experts", 20)]
)
def test_many_kinds_of_layers(kind: str, count: int, tmp_path: Path) -> None:
    layers = [{"repeat": 1, **MANY[kind](i)} for i in range(count)]
    model = paramcalc.load({**WIDE, "n_layers": count, "layers": layers, "name": kind})
    path = write(tmp_path / "many.xlsx", model)
    with closing(openpyxl.load_workbook(path, read_only=True)) as book:
        for sheet in book:
            for row in sheet.iter_rows(values_only=True):
                for value in filter(is_formula, row):
                    assert within_limits(value), (sheet.title, value[:99], len(value))


def is_formula(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("=")


def test_only_plain_functions_and_no_macros(path: Path, formulas: dict[str, Any]) -> None:
    found: set[str] = set()
    count = 0
    for cells in formulas.values():
        for value in filter(is_formula, cells.values()):
            found |= set(re.findall(r"([A-Z][A-Z0-9.]*)\(", re.sub(r'"[^"]*"', "", value)))
            assert within_limits(value), (value[:99], len(value))
            count += 1
    assert found <= FUNCTIONS
    assert count > 9_000
    parts = office.Package(path).parts
    assert not [name for name in parts if "vba" in name or "external" in name]
    assert not [name for name, data in parts.items() if b"<f t=" in data]  # arrays


def test_every_formula_has_its_value(values: dict[str, Any], formulas: dict[str, Any]) -> None:
    for sheet, cells in formulas.items():
        for place, value in cells.items():
            if is_formula(value):  # an empty text is read as nothing
                assert place in values[sheet] or '""' in value, (sheet, place)


def test_the_integers_are_the_models(values: dict[str, Any]) -> None:
    cells = values["Summary"]
    labels = {cells[f"A{row}"]: row for row in range(4, 60) if f"A{row}" in cells}
    for number, name in enumerate(MODELS):
        model, column = preset(name), office.letters(2 + number)
        assert cells[f"{column}{labels['parameters']}"] == model.params.total
        assert cells[f"{column}{labels['active parameters']}"] == model.params.active
        assert cells[f"{column}{labels['forward, one token']}"] == model.flops.per_token()
        assert cells[f"{column}{labels['KV cache']}"] == model.memory.kv_bytes()
        for dtype in SCHEMES:
            exact = model.memory.weight_bytes(dtype)
            assert cells[f"{column}{labels[dtype]}"] == exact, dtype
        crossover = cells.get(f"{column}{labels['attention = matmuls at']}")
        assert crossover in (None, model.flops.crossover)
    assert cells["C" + str(labels["parameters"])] == 8_030_261_248


def test_fields_are_named_cells_with_limits(path: Path, formulas: dict[str, Any]) -> None:
    book = openpyxl.load_workbook(path)
    names = {name: cell.attr_text for name, cell in book.defined_names.items()}
    sheet = book["Inputs"]
    limits = {str(v.sqref): v for v in sheet.data_validations.dataValidation}
    for name in ("d_model", "n_layers", "n_kv_heads", "d_ff", "vocab_size"):
        place = names[f"m1_{name}"].split("!")[1].replace("$", "")
        assert formulas["Inputs"][place] == getattr(preset("llama3-8b").spec, name)
        assert limits[place].type == "whole"
        assert limits[place].formula1 == "1"
    assert formulas["Inputs"][names["m1_head_dim"].split("!")[1].replace("$", "")] == (
        "=INT(u1_d_model/u1_n_heads)"
    )
    assert names["u1_d_model"] != names["m1_d_model"]
    lists = {str(v.sqref): v.formula1 for v in book["Deployment"].data_validations.dataValidation}
    assert lists[f"D{LINES['format']}"].startswith("Formats!$A$5:$A$")
    assert lists[f"D{LINES['gpu']}"].startswith("Hardware!$A$5:$A$")
    assert "m2_n_experts" in names
    assert "m3_mla_kv_lora_rank" in names
    assert "m4_encoder_n_layers" in names
    assert all(page.freeze_panes for page in book)


def test_sheets_and_charts(path: Path, tmp_path: Path) -> None:
    assert openpyxl.load_workbook(path).sheetnames == list(workbook.SHEETS)
    charts = [name for name in office.Package(path).parts if name.startswith("xl/charts/chart")]
    assert len(charts) == 3
    alone = write(tmp_path / "one.xlsx", preset("gpt2"))
    assert "Compare" not in openpyxl.load_workbook(alone).sheetnames


def test_names_never_become_formulas(tmp_path: Path) -> None:
    base = {"d": 64, "L": 2, "H": 4, "V": 100}
    models = [paramcalc.load({**base, "name": name}) for name in EVIL]
    path = write(tmp_path / "evil.xlsx", *models)
    book = openpyxl.load_workbook(path)
    for number, name in enumerate(EVIL):
        for sheet, row, column in (("Inputs", 4, 4), ("Summary", 3, 3), ("Deployment", 3, 4)):
            cell = book[sheet].cell(row, column + number)
            assert (cell.value, cell.data_type) == (name, "s")
    for sheet in book:
        for row in sheet:
            for cell in row:
                if cell.data_type == "f":
                    assert not any(name in cell.value for name in EVIL[3:])


def test_a_default_stays_a_formula_and_a_stated_field_does_not() -> None:
    stated = Placed(paramcalc.load({"d": 64, "L": 2, "H": 4, "V": 100, "d_ff": 99}), 1)
    assert stated.inputs["d_ff"].default is None
    default = stated.inputs["head_dim"].default
    assert default is not None
    assert default.text() == "u1_d_model/u1_n_heads"


def test_layers_that_no_field_spells_are_fixed(tmp_path: Path) -> None:
    model = paramcalc.load({"model_type": "mamba", "num_hidden_layers": 24})
    placed = Placed(model, 1)
    assert placed.fixed
    path = write(tmp_path / "mamba.xlsx", model)
    book = openpyxl.load_workbook(path, data_only=True)
    cells = {c.value for row in book["Summary"] for c in row}
    assert model.params.total in cells
    assert not book["Inputs"].data_validations.dataValidation


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"gpus": 3, "tp": 2}, "gpus = 3: must be a multiple of tp = 2"),
        ({"batch": 2**30}, "batch = 1,073,741,824: a workbook takes up to 16,777,216"),
        ({"dtype": "Q4_K_M"}, "dtype = Q4_K_M: llama.cpp's types are a table"),
        ({"dtype": "int5"}, "dtype = int5: unknown format"),
        ({"kv_dtype": "nf4"}, "kv_dtype = nf4: is a format of weights"),
    ],
)
def test_a_wish_is_checked(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        workbook.wish(hardware.find("h100"), **wish)


def test_too_many_models(tmp_path: Path) -> None:
    models = [preset("gpt2")] * (workbook.MOST_MODELS + 1)
    with pytest.raises(InputError, match="models = 257: a workbook takes 256"):
        write(tmp_path / "x.xlsx", *models)
    assert not list(tmp_path.iterdir())


SMALL = {"d": 64, "L": 2, "H": 4, "V": 100, "name": "small"}


@pytest.mark.parametrize(
    ("models", "wish", "message"),
    [
        ([{}, {}], {}, "model = small: given twice; leave one out, or rename it"),
        (
            [{"d": 4_000_001, "H": 1, "d_ff": 4}],
            {},
            "a tensor is 4,000,001 wide, and a workbook takes",
        ),
        ([{"H": 4_000, "head_dim": 4_000}], {}, "a tensor is 16,000,000 wide"),
        (
            [{"H": 200_000, "head_dim": 1}],
            {},
            "n_heads = 200,000: a workbook takes",
        ),
        ([{"context": 10**10}], {}, "context = 10,000,000,000: a workbook takes up to"),
        ([{}], {"gpus": 3, "tp": 3}, "tp = 3: must divide the 4 heads of attention.q"),
        ([{}, {"name": "b"}], {"gpus": 8, "tp": 8}, "heads of attention.q; lower it (model small)"),
    ],
)
def test_what_a_workbook_refuses(
    models: list[dict[str, Any]], wish: dict[str, Any], message: str, tmp_path: Path
) -> None:
    there = [paramcalc.load({**SMALL, **own}) for own in models]
    with pytest.raises(InputError, match=re.escape(message)) as error:
        write(tmp_path / "x.xlsx", *there, **wish)
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError) as error:
        write(tmp_path / "x.xlsx", preset("gpt2"))
    assert str(error.value) == f"out = {tmp_path / 'x.xlsx'}: file too large; name another"
    assert not list(tmp_path.iterdir())
