"""``paramcalc sweep`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]


def out(capsys: Capture, *arguments: str) -> str:
    assert main(["sweep", *arguments]) == 0
    return capsys.readouterr().out


def test_the_first_example(capsys: Capture) -> None:
    text = out(capsys, "--d", "4096", "--kv", "8,32")
    assert "2 rows, the rest as in llama3-8b" in text
    assert "8,030,261,248" in text
    assert "8,835,567,616" in text


def test_json_and_csv_hold_every_row(capsys: Capture) -> None:
    rows = json.loads(out(capsys, "--layers", "1:50", "--columns", "n_layers,params", "--json"))
    assert len(rows) == 50
    assert rows[31] == {"n_layers": 32, "params": 8_030_261_248}
    text = out(capsys, "--layers", "1:50", "--columns", "n_layers,params", "--csv")
    assert list(csv.DictReader(io.StringIO(text)))[31]["params"] == "8030261248"


def test_the_screen_says_how_many_more_and_what_was_left_out(capsys: Capture) -> None:
    text = out(capsys, "--layers", "1:50", "--kv", "3,8", "--rows", "5")
    assert "and 45 more" in text
    assert "left out: 50, n_kv_heads must divide n_heads" in text


def test_selection(capsys: Capture) -> None:
    grid = ["--layers", "1:100", "--columns", "n_layers", "--json"]
    target = out(capsys, *grid, "--target", "params=7e9", "--within", "2%")
    # one layer is 218,112,000; 27 layers are 6.94 B, 28 are 7.16 B
    assert json.loads(target) == [{"n_layers": 27}]
    best = out(
        capsys, *grid, "--where", "params < 8e9", "--top", "2", "--by", "params", "--descending"
    )
    assert json.loads(best) == [{"n_layers": 31}, {"n_layers": 30}]
    assert json.loads(out(capsys, *grid, "--min", "params")) == [{"n_layers": 1}]
    assert json.loads(out(capsys, *grid, "--max", "kv_bytes")) == [{"n_layers": 100}]
    assert json.loads(out(capsys, *grid, "--pareto", "params,kv_bytes")) == [{"n_layers": 1}]
    assert out(capsys, "--layers", "1:100", "--count", "--where", "params < 8e9") == "31\n"


def test_files_hold_the_same_rows(capsys: Capture, tmp_path: Path) -> None:
    grid = ["--layers", "1:40", "--context", "1k,8k", "--columns", "n_layers,context,kv_bytes"]
    rows = json.loads(out(capsys, *grid, "--json"))
    for name in ("a.csv", "a.jsonl", "a.parquet", "a.xlsx"):
        out(capsys, *grid, "--out", str(tmp_path / name))
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows
    with (tmp_path / "a.csv").open() as file:
        assert [{k: int(v) for k, v in row.items()} for row in csv.DictReader(file)] == rows
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == rows
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.jsonl", "a.parquet", "a.xlsx"]


def test_list_columns(capsys: Capture) -> None:
    found = json.loads(out(capsys, "--list-columns", "--json"))
    assert {"column": "params", "unit": "parameters", "known": "exact"} in found
    speed = {"column": "tokens_per_second", "unit": "tokens/s", "known": "assumed"}
    assert speed in found


def test_one_column_has_its_name(capsys: Capture) -> None:
    lines = out(capsys, "--kv", "8", "--columns", "params").split()
    assert lines[-2:] == ["params", "8,030,261,248"]


def test_gpus_without_tp_are_replicas_and_it_is_said(capsys: Capture, tmp_path: Path) -> None:
    grid = ["gpt-oss-120b", "--gpu", "h100", "--gpus", "2"]
    names = ["--columns", "gpus,tp,batch,gpu_free_bytes"]
    said = "gpus without tp: every GPU holds the whole model"
    assert said in out(capsys, *grid)
    for way in (["--json"], ["--csv"], ["--out", str(tmp_path / "a.csv")], ["--count"]):
        assert main(["sweep", *grid, *names, *way]) == 0
        shown = capsys.readouterr()
        assert said not in shown.out
        assert f"note: {said}" in shown.err
    (alone,) = json.loads(out(capsys, *grid, *names, "--where", "tp == 1", "--json"))
    (shared,) = json.loads(out(capsys, *grid, *names, "--tp", "2", "--json"))
    assert (alone["gpus"], alone["tp"], alone["batch"]) == (2, 1, 1)
    assert (shared["gpus"], shared["tp"]) == (2, 2)
    assert alone["gpu_free_bytes"] < 0 < shared["gpu_free_bytes"]
    for quiet in (["--tp", "1"], ["--tp", "2"], ["--gpus", "1"]):
        line = [*grid[:3], *quiet] if quiet[0] == "--gpus" else [*grid, *quiet]
        assert "without tp" not in out(capsys, *line)


def test_a_gpus_memory_is_known_as_its_entry_says(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("extends: h100\nname: ours\nmemory: 96 GiB\n")
    own = ["--hardware", str(path)]
    for words, label in (
        ([], "measured"),
        (["--gpu", "h100"], "measured"),
        ([*own, "--gpu", "h100"], "measured"),
        ([*own, "--gpu", "h100,ours"], "assumed"),
        (own, "assumed"),
    ):
        found = json.loads(out(capsys, "--list-columns", "--json", *words))
        assert {"column": "gpu_bytes", "unit": "bytes", "known": label} in found


BAD = {
    "--d=": "paramcalc: d_model: no values",
    "--d 9:3": "paramcalc: d_model = 9:3: the first value is above the last",
    "--d 4:8:0": "paramcalc: d_model = 4:8:0: a step of at least 1",
    "--d 0,4": "paramcalc: d_model = 0: must be at least 1",
    "--L 3": "paramcalc: No such option: --L",
    "--set colour=1,2": "paramcalc: colour: no field of a model",
    "--set window": "paramcalc: --set window: must be field=values",
    "--heads d/0": "paramcalc: n_heads = d/0: divides by zero",
    "--heads heads": "paramcalc: n_heads = heads: ",
    "--heads n_heads+1": "paramcalc: n_heads = n_heads+1: refers to itself",
    "--ff 2*H --heads d_ff": "paramcalc: n_heads = d_ff: refers to itself",
    "--heads foo+1": "paramcalc: n_heads = foo+1: unknown name foo",
    "--d 4096 --columns parms": "paramcalc: parms: unknown column (did you mean params",
    "--set window=1k,2k --columns attention_equals_matmuls_at": (
        "paramcalc: attention_equals_matmuls_at: llama3-8b has a window in every layer"
    ),
    "--tie maybe": "paramcalc: tie_embeddings = maybe: ",
    "--d 4096 --where parms<3": "paramcalc: where = parms<3: unknown name parms (did you mean par",
    "--d 4096 --where open('x')": "paramcalc: where = open('x'): is no condition",
    "--d 4096 --where params<f(3)": "paramcalc: where = params<f(3): calls what cannot be called",
    "--d 4096 --where model<3": "paramcalc: model: holds names, not numbers",
    "--d 4096 --top 3": "paramcalc: --top and --by: one needs the other",
    "--d 4096 --top 3 --by cost": "paramcalc: cost: unknown column",
    "--d 4096 --min params --max params": "paramcalc: --by, --min and --max: each sorts",
    "--d 4096 --target params": "paramcalc: target = params: must be name=size",
    "--d 4096 --target params=7e9 --within x": "paramcalc: target = params=7e9 within x: must be",
    "--d 4096 --dtype int5": "paramcalc: dtype = int5: unknown format",
    "--batch 1e30": "paramcalc: batch = 1000000000000000000000000000000: must be from 1 to",
    "--heads d*1e25": "paramcalc: sweep: no possible shape (n_heads = d*1e25 is above 1,000",
    "gpt2 --experts 4": "paramcalc: n_experts = 4: a router needs to know how many work on a token",
    "--set encoder.n_layers=4": "paramcalc: encoder.n_layers: there is no section encoder",
    "--kv 3,5": "paramcalc: sweep: no possible shape (n_kv_heads must divide n_heads: 2)",
    "--d 4096,4096": "paramcalc: d_model = 4096,4096: a value stands twice",
    "lama3-8b --kv 8": "paramcalc: lama3-8b: no such preset or file",
    "--kv 8 --out x.doc": "paramcalc: out = x.doc: unknown kind of file",
    "--kv 8 --out none/x.csv": "paramcalc: out = none/x.csv: none is no directory",
    "--L": "paramcalc: No such option: --L",
    "--kv 8 --price 2": "paramcalc: price = 2: is of a GPU-hour; add --gpu h100",
    "--kv 8 --hardware none.yaml": "paramcalc: hardware: is read for the GPUs that are named; add",
    "--kv 8 --columns tp": "paramcalc: tp: shares a model out over GPUs; add --gpu h100",
    "--kv 8 --where gpus>1": "paramcalc: gpus: shares a model out over GPUs; add --gpu h100",
    "--kv 8 --within 2%": "paramcalc: within = 2%: is how near to --target; add --target params",
    "--kv 8 --descending": "paramcalc: --descending: is the order of --top N --by NAME",
    "--kv 8 --descending --min params": "paramcalc: --descending: is the order of --top N --by",
    "--kv 8 --part-rows 9": "paramcalc: part_rows = 9: is of a folder of parts; give --out folder/",
    "--kv 8 --part-rows 9 --out a.csv": "paramcalc: part_rows = 9: is of a folder of parts",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(
    capsys: Capture, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *line.split(" ")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(BAD[line])
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_kept(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    assert main(["sweep", "--kv", "8", "--out", str(path)]) == 2
    assert "exists; name another or give --force" in capsys.readouterr().err
    assert path.read_text() == "mine"
    assert main(["sweep", "--kv", "8", "--out", str(path), "--force"]) == 0
    assert "8030261248" in path.read_text()


def test_a_sheet_too_small_is_said_before_it_starts(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    arguments = ["--layers", "1:1100", "--context", "1:1000", "--out", str(path)]
    assert main(["sweep", *arguments]) == 2
    assert "1,100,000 rows, and a sheet holds 1,048,575" in capsys.readouterr().err
    assert not path.exists()


def test_a_large_file_needs_a_yes(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    arguments = ["--layers", "1:10k", "--context", "1:100k", "--out", str(path)]
    assert main(["sweep", *arguments]) == 2
    assert "give --yes to write it" in capsys.readouterr().err
    assert not path.exists()
