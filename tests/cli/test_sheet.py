"""``paramcalc sheet`` as a person uses it."""

from __future__ import annotations

import sys
from pathlib import Path

import openpyxl
import pytest

from paramcalc.cli.main import main
from tests.views.book_cells import LINES

Capture = pytest.CaptureFixture[str]


def test_a_workbook_is_written(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "plan.xlsx"
    arguments = ["--context", "32k", "--dtype", "fp8", "--gpu", "h200", "--gpus", "4", "--tp", "2"]
    assert main(["sheet", "llama3-8b", "-o", str(path), *arguments, "--price", "3.5"]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == f"paramcalc: wrote 1 model to {path}\n"
    sheet = openpyxl.load_workbook(path)["Deployment"]
    shown = {key: sheet[f"C{row}"].value for key, row in LINES.items() if key}
    assert shown["at_context"] == 32_768
    assert shown["format"] == "fp8"
    assert shown["gpu"] == "h200-sxm-141gb"
    assert (shown["gpus"], shown["tp"], shown["price"]) == (4, 2, 3.5)
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_read_from_a_file(tmp_path: Path, capsys: Capture) -> None:
    model = tmp_path / "mine.yaml"
    model.write_text("{d: 64, L: 2, H: 4, V: 100, name: '=1+1'}", encoding="utf-8")
    path = tmp_path / "plan.xlsx"
    assert main(["sheet", str(model), "gpt2", "-o", str(path)]) == 0
    assert "wrote 2 models" in capsys.readouterr().err
    assert openpyxl.load_workbook(path)["Inputs"]["D4"].data_type == "s"


def test_without_a_gpu_it_says_that_one_is_assumed(tmp_path: Path) -> None:
    path = tmp_path / "plan.xlsx"
    assert main(["sheet", "gpt2", "-o", str(path)]) == 0
    sheet = openpyxl.load_workbook(path)["Deployment"]
    assert sheet[f"E{LINES['gpu']}"].value == "from sheet Hardware; assumed: take yours"
    assert not str(sheet[f"C{LINES['price']}"].value).startswith("2")


BAD = {
    "gpt2": "paramcalc: Missing option '--out' / '-o'.",
    "gpt2 -o plan.xls": "paramcalc: out = plan.xls: a workbook ends in .xlsx",
    "gpt2 -o none/plan.xlsx": "paramcalc: out = none/plan.xlsx: none is no directory",
    "gpt2 -o folder.xlsx": "paramcalc: out = folder.xlsx: is a directory",
    "gpt3 -o plan.xlsx": "paramcalc: gpt3: no such preset or file",
    "gpt2 -o plan.xlsx --gpu h1000": "paramcalc: gpu = h1000: unknown accelerator",
    "gpt2 -o plan.xlsx --gpus 3 --tp 2": "paramcalc: gpus = 3: must be a multiple of tp = 2",
    "gpt2 -o plan.xlsx --dtype Q4_K_M": "paramcalc: dtype = Q4_K_M: llama.cpp's types are a table",
    "gpt2 -o plan.xlsx --context 2e9": "paramcalc: context = 2,000,000,000: a workbook takes up to",
    "gpt2 -o plan.xlsx --price free": "paramcalc: price",
    "gpt2 gpt2 -o plan.xlsx": "paramcalc: model = gpt2: given twice; leave one out",
    "llama3-8b -o plan.xlsx --tp 3": "paramcalc: tp = 3: must divide the 32 heads of",
    "gpt2 -o /proc/x.xlsx": "paramcalc: out = /proc/x.xlsx: no such file or directory; name",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(
    capsys: Capture, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.xlsx").mkdir()
    assert main(["sheet", *line.split(" ")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(BAD[line])
    assert captured.err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["folder.xlsx"]


def test_an_existing_file_is_kept(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "plan.xlsx"
    path.write_text("mine")
    assert main(["sheet", "gpt2", "-o", str(path)]) == 2
    assert "exists; name another or give --force" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["sheet", "gpt2", "-o", str(path), "--force"]) == 0
    assert openpyxl.load_workbook(path)["Inputs"]["A5"].value == "d_model"


def test_without_the_extra_one_line_says_what_to_install(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    assert main(["sheet", "gpt2", "-o", str(tmp_path / "plan.xlsx")]) == 2
    assert "a workbook needs XlsxWriter; pip install 'paramcalc[xlsx]'" in capsys.readouterr().err
