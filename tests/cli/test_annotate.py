"""``paramcalc annotate`` as a planner uses it."""

from __future__ import annotations

import csv
import json
import os
import random
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]

FLEET = """\
Team;Model;GPU;GPUs;Context;Batch;Zip
"a;b";llama3-8b;h100;1;8k;4;00123
ü;meta-llama/Meta-Llama-3-70B;H100;8;8192;16;0001

y;=cmd|' /C calc'!A0;h100;1;8k;1;=1+1
;;;;;;
z;mine.yaml;;;;;
"""


def test_a_fleet(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "fleet.csv", tmp_path / "out.csv"
    path.write_text(FLEET, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("d: 512\nL: 2\nH: 8\nV: 100\n")
    assert main(["annotate", str(path), "-o", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "guessed by their names: model from Model, gpu from GPU, gpus from GPUs" in said.err
    assert f"wrote {out}: 4 rows, 2 with a fault in paramcalc_error" in said.err
    old, new = FLEET.splitlines(), out.read_text(encoding="utf-8").splitlines()
    assert all(b.startswith(a) for a, b in zip(old, new, strict=True))
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert rows[0]["params"] == "8030261248"
    assert (rows[1]["params"], rows[1]["fits"]) == ("70553706496", "true")
    assert rows[2]["params"] == ""
    assert rows[2]["paramcalc_error"].startswith("model: =cmd|' /C calc'!A0: no such preset")
    assert rows[4]["params"] == "6396416"
    assert rows[4]["paramcalc_error"].startswith("gpu: empty")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fleet.csv", "mine.yaml", "out.csv"]


def test_a_workbook_in_place(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "fleet.xlsx"
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["net", "params"], ["gpt2", "small"], ["<b>x</b>", 1]):
        sheet.append(row)
    book.save(path)
    line = ["annotate", str(path), "--model-column", "net", "--columns", "params,kv_bytes"]
    assert main([*line, "-o", str(path)]) == 2
    assert "exists; name another or give --force" in capsys.readouterr().err
    assert main([*line, "-o", str(path), "--force"]) == 0
    assert "the table has params already; the new column is paramcalc_params" in (
        capsys.readouterr().err
    )
    found = openpyxl.load_workbook(path).active
    assert found is not None
    rows = list(found.iter_rows(values_only=True))
    assert rows[0] == ("net", "params", "paramcalc_params", "kv_bytes", "paramcalc_error")
    assert rows[1] == ("gpt2", "small", 124_439_808, 37_748_736, None)
    assert str(rows[2][4]).startswith("model: <b>x</b>: no such preset")
    assert main([*line, "-o", str(path), "--force"]) == 2
    assert "was annotated before" in capsys.readouterr().err


def test_a_macro_workbook_keeps_its_name(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.xlsm").write_bytes(b"PK")
    line = ["annotate", str(tmp_path / "a.xlsm"), "-o", str(tmp_path / "b.xlsx")]
    assert main(line) == 2
    assert "a .xlsm stays one; end it in .xlsm" in capsys.readouterr().err


BAD = {
    "fleet.csv": "Missing option '--out' / '-o'",
    "fleet.csv -o out.xlsx": "out = out.xlsx: a .csv stays one; end it in .csv",
    "fleet.csv -o none/out.csv": "out = none/out.csv: none is no directory",
    "fleet.csv -o fleet.csv": "out = fleet.csv: exists; name another or give --force",
    "old.xls -o out.xls": "old.xls: an old .xls; save it as .xlsx",
    "a.pdf -o b.pdf": "table = a.pdf: unknown kind of file; end it in .csv, .tsv",
    "none.csv -o out.csv": "none.csv: no such file or directory",
    "fleet.csv -o out.csv --sheet a": "sheet = a: fleet.csv is CSV; leave it out",
    "fleet.csv -o out.csv --header-row 0": "header_row = 0: must be at least 1",
    "fleet.csv -o out.csv --header-row 99": "header-row = 99: fleet.csv has 7 rows",
    "fleet.csv -o out.csv --model-column Modell": (
        "model-column = Modell: no such column (did you mean Model?); there are Team, Model, GPU"
    ),
    "fleet.csv -o out.csv --gpu-column Model": "model-column: no column is called model",
    "fleet.csv -o out.csv --model-column Zip --gpu-column Zip": (
        "gpu-column = Zip: is the column of model already"
    ),
    "twice.csv -o out.csv --model-column model": (
        "model-column = model: 2 columns have that name; rename one"
    ),
    "late.csv -o out.csv": (
        "model-column: no column is called model; give --model-column, one of title;"
        " row 2 looks like a heading: --header-row 2"
    ),
    "fleet.csv -o out.csv --columns params,": "columns = params,: an empty name",
    "fleet.csv -o out.csv --columns parms": "columns = parms: unknown column (did you mean params",
    "fleet.csv -o out.csv --columns cost_per_hour": "columns = cost_per_hour: no GPU has a price",
    "fleet.csv -o out.csv --hardware none.yaml": "none.yaml: no such file",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_nothing_is_written(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("fleet.csv").write_text(FLEET, encoding="utf-8")
    Path("twice.csv").write_text("model,model\nx,y\n")
    Path("late.csv").write_text("title\nModel\nx\n")
    before = sorted(os.listdir())
    assert main(["annotate", *line.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {BAD[line]}")
    assert captured.err.count("\n") == 1
    assert sorted(os.listdir()) == before


def test_an_output_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    path = tmp_path / "fleet.csv"
    path.write_text(FLEET, encoding="utf-8")

    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", locked)
    assert main(["annotate", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    assert "out.csv: permission denied; close it, or name another" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["fleet.csv"]


def test_decimal_commas_where_semicolons_part_cells(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "de.csv", tmp_path / "out.csv"
    text = "sep=;\nModel;GPU;GPUs;Context;Price per hour\n"
    text += "gpt2;h100;2;1.024;2,49\ngpt2;h100;1.000;1.024;2,49\n"
    path.write_text(text)
    columns = "context,cost_per_hour,cost_per_hour_dollars"
    assert main(["annotate", str(path), "-o", str(out), "--columns", columns]) == 0
    rows = [line.split(";", 5)[5] for line in out.read_text().splitlines()[1:]]
    assert rows[0] == "paramcalc_context;cost_per_hour;cost_per_hour_dollars;paramcalc_error"
    assert rows[1] == "1024;4980000;4,98;"  # 2 x 2.49 dollars in millionths, in dollars
    assert rows[2].endswith('"gpus: 1.000 may be 1 or 1,000; write 1 or 1000, without a sign"')
    path.write_text(text.replace("2,49", "2.49"))  # the table's own prices have a point
    line = ["annotate", str(path), "-o", str(out), "--columns", columns, "--force"]
    assert main(line) == 0
    assert out.read_text().splitlines()[2].endswith(";1024;4980000;4.98;")
    capsys.readouterr()


def test_faults_are_said_with_their_rows(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    rows = ["gpt2,h100,1", "gpt2,h999,x", "Total,,3", ",,3", *["nosuch,h100,1"] * 6]
    path.write_text("model,gpu,gpus\n" + "\n".join(rows) + "\n")
    assert main(["annotate", str(path), "-o", str(out)]) == 0
    said = capsys.readouterr().err
    assert "note: row 3: gpu = h999: unknown accelerator" in said
    assert "note: row 4: model: Total: no such preset or file" in said
    assert "note: row 5: model: empty; name a preset or a file; gpu: empty" in said
    assert "note: and 4 more rows with a fault" in said
    with out.open(newline="") as file:
        faults = [row["paramcalc_error"] for row in csv.DictReader(file)]
    assert "; gpus = x: 'x' is not a number" in faults[1]
    assert not any("more)" in fault for fault in faults)
    book = tmp_path / "t.xlsx"
    openpyxl.Workbook().save(book)
    opened = openpyxl.load_workbook(book)
    sheet = opened.active
    assert sheet is not None
    sheet["A3"], sheet["A4"], sheet["B7"] = "model", "gpt2", "a sum"
    opened.save(book)
    line = ["annotate", str(book), "-o", str(tmp_path / "out.xlsx"), "--header-row", "3"]
    assert main(line) == 0
    assert "note: row 7: model: empty" in capsys.readouterr().err


def test_what_does_not_fit_has_no_price_to_sort_by(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("model,gpu\ndeepseek-v3,h100\nllama3-8b,h100\n")
    assert main(["annotate", str(path), "-o", str(out), "--price", "2.5"]) == 0
    assert "note: 1 row does not fit: times and money left empty" in capsys.readouterr().err
    with out.open(newline="") as file:
        big, small = csv.DictReader(file)
    money = ("tokens_per_second", "cost_per_hour_dollars", "cost_per_million_tokens_dollars")
    assert big["fits"] == "false"
    assert big["gpu_free_bytes"].startswith("-")
    assert [big[name] for name in (*money, "paramcalc_error")] == [""] * 4
    assert small["cost_per_hour_dollars"] == "2.50"
    assert all(small[name] for name in money)


def test_dollars_are_numbers_of_a_workbook(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "t.xlsx"
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["model", "gpu", "price per hour"], ["gpt2", "h100", 2.490001]):
        sheet.append(row)
    book.save(path)
    names = "cost_per_hour_dollars,cost_per_hour,params"
    line = ["annotate", str(path), "-o", str(tmp_path / "out.xlsx"), "--columns", names]
    assert main(line) == 0
    capsys.readouterr()
    found = openpyxl.load_workbook(tmp_path / "out.xlsx").active
    assert found is not None
    assert [cell.value for cell in found[2]][3:6] == [2.490001, 2_490_001, 124_439_808]
    assert [cell.number_format for cell in found[2]][3:6] == ["General", "#,##0", "#,##0"]


def test_new_columns_have_names_that_no_column_has(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    path.write_text("Model,Params,fits,paramcalc_params,PARAMCALC_PARAMS_2\ngpt2,1,2,3,4\n")
    assert main(["annotate", str(path), "-o", str(out), "--columns", "params,kv_bytes"]) == 0
    heads = out.read_text().splitlines()[0].split(",")
    assert heads[5:] == ["paramcalc_params_3", "kv_bytes", "paramcalc_error"]
    assert len({head.lower() for head in heads}) == len(heads)
    assert "the new column is paramcalc_params_3" in capsys.readouterr().err


def test_names_that_look_like_formulas_and_sizes_that_are_none(
    tmp_path: Path, capsys: Capture
) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    names = ("-gpt2", "=gpt2", "+gpt2", "@gpt2", "_gpt2", "gpt2-", "--gpt2")
    path.write_text(
        "model,gpu,context\ngpt2,h100,NaN\ngpt2,-h100,1\ngpt2,=h100,1\n"
        + "".join(f"{name},h100,1\n" for name in names)
    )
    assert main(["annotate", str(path), "-o", str(out), "--columns", "params"]) == 0
    with out.open(newline="") as file:
        faults = [row["paramcalc_error"] for row in csv.DictReader(file)]
    assert faults[0].startswith("context = NaN: 'NaN' is not a number; write it as 4096")
    for fault, name in zip(faults[1:3], ("-h100", "=h100"), strict=True):
        assert fault.startswith(f"gpu = {name}: unknown accelerator")
    for fault, name in zip(faults[3:], names, strict=True):
        assert fault.startswith(f"model: {name}: no such preset or file")
    capsys.readouterr()


def fit(row: dict[str, str], capsys: Capture) -> dict[str, Any] | None:
    """What ``paramcalc fit --json`` says of a row; None where it refuses."""
    options = ("gpu", "gpus", "tp", "context", "batch", "dtype", "kv_dtype")
    line = [f"--{name.replace('_', '-')}={row[name]}" for name in options if row[name]]
    done = main(["fit", row["model"], *line, "--kinds", "none", "--json"])
    said = capsys.readouterr()
    found: dict[str, Any] = json.loads(said.out) if done == 0 else {}
    return found or None


def test_rows_are_answered_as_fit_answers_them(tmp_path: Path, capsys: Capture) -> None:
    choose = random.Random(6)
    kinds = {
        "model": ("llama3-8b", "gpt2", "qwen3-30b-a3b", "gemma3-4b", "deepseek-v3", "llama3-70b"),
        "gpu": ("h100", "h200", "b200", "mi300x", "l40s", "a100-80gb", "t4", "4090"),
        "gpus": ("", "1", "2", "4", "8"),
        "tp": ("", "1", "2"),
        "context": ("", "777", "1k", "1000"),
        "batch": ("", "3", "8", "50"),
        "dtype": ("", "bf16", "fp8", "int4", "awq"),
        "kv_dtype": ("", "fp8"),
    }
    rows = [{name: choose.choice(some) for name, some in kinds.items()} for _ in range(24)]
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(kinds))
        writer.writeheader()
        writer.writerows(rows)
    columns = "fits,gpu_bytes_needed,gpu_free_bytes,gpu_weight_bytes,largest_batch,weight_bytes"
    assert main(["annotate", str(path), "-o", str(out), "--columns", columns]) == 0
    capsys.readouterr()
    with out.open(newline="") as file:
        answered = list(csv.DictReader(file))
    asked = 0
    for row, answer in zip(rows, answered, strict=True):
        found = fit(row, capsys)
        assert (found is None) == bool(answer["paramcalc_error"]), (row, answer)
        if found is None:
            assert answer["fits"] == ""
            continue
        asked += 1
        figures = {name: figure["value"] for name, figure in found["figures"].items()}
        assert answer["fits"] == str(found["fits"]).lower(), row
        for name in ("gpu_free_bytes", "gpu_weight_bytes", "weight_bytes"):
            assert int(answer[name]) == figures[name], row
    assert asked >= 6


def test_many_rows_ask_once(tmp_path: Path, capsys: Capture) -> None:
    path, out = tmp_path / "fleet.csv", tmp_path / "out.csv"
    path.write_text("model,gpu,context\n" + "llama3-8b,h100,8k\nqwen3-8b,h200,4k\n" * 50_000)
    assert main(["annotate", str(path), "-o", str(out)]) == 0
    assert "100,000 rows, 0 with a fault" in capsys.readouterr().err
    with out.open() as file:
        assert sum(1 for _ in file) == 100_001
