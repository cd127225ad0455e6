"""``paramcalc moe`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]
MIXTRAL = ("moe", "mixtral-8x7b", "--tokens", "8k")


def out(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def values(document: dict[str, Any]) -> dict[str, dict[str, int]]:
    (experts,) = document["experts"]
    return {
        group["title"]: {key: figure["value"] for key, figure in group["figures"].items()}
        for group in experts["groups"]
    }


def test_the_screen(capsys: Capture) -> None:
    text = out(capsys, *MIXTRAL, "--skew", "1", "--ep", "4")
    assert all(len(line) <= 80 for line in text.splitlines())
    rows = [line.split() for line in text.splitlines()]
    # 8,192 x 2 x 1.25 / 8 slots; 8 of them; an expert has 3 x 4,096 x 14,336 weights
    assert ["slots", "an", "expert", "2,560", "tokens", "derived"] in rows
    assert ["slots", "a", "layer", "20,480", "tokens", "derived"] in rows
    assert ["capacity", "factor", "1.250", "assumed"] in rows
    assert ["FLOPs", "of", "one", f"{2 * 3 * 4096 * 14336:,}", "FLOPs", "exact"] in rows
    assert ["heaviest", "rank", "0", "derived"] in rows
    assert any(row[:4] == ["balanced", "uniform", "zipf", "1"] for row in rows)


def test_json_csv_and_markdown_hold_the_same_integers(capsys: Capture) -> None:
    arguments = (*MIXTRAL, "--skew", "0.5", "--capacity-factor", "1", "--ep", "2")
    document = json.loads(out(capsys, *arguments, "--json"))
    found = values(document)
    assert set(found) == {"ffn", "balanced", "uniform", "zipf 0.5"}
    assert found["ffn"]["slots"] == 2048
    assert found["balanced"]["dropped"] == 0
    assert found["balanced"]["balance_loss"] == 10**6
    flat = list(csv.DictReader(io.StringIO(out(capsys, *arguments, "--csv"))))
    assert {(row["group"], row["key"]): int(row["value"]) for row in flat} == {
        (title, key): value for title, group in found.items() for key, value in group.items()
    }
    text = out(capsys, *arguments, "--markdown")
    for key in ("dropped_ppm", "balance_loss", "rank_imbalance", "kept_flops"):
        assert str(found["zipf 0.5"][key]) in text
    groups = document["experts"][0]["groups"]
    labels = {f["known"] for group in groups for f in group["figures"].values()}
    assert labels == {"exact", "derived", "assumed"}


def test_a_seed_repeats(capsys: Capture) -> None:
    first = out(capsys, *MIXTRAL, "--seed", "5", "--csv")
    assert first == out(capsys, *MIXTRAL, "--seed", "5", "--csv")
    assert first != out(capsys, *MIXTRAL, "--seed", "6", "--csv")


def test_dropless(capsys: Capture) -> None:
    """Even loads of 2,048 are 20 blocks of 100 and a part: 2,100 rows an expert."""
    arguments = (*MIXTRAL, "--capacity-factor", "none", "--block", "100", "--json")
    found = values(json.loads(out(capsys, *arguments)))
    assert found["balanced"]["dropless_rows"] == 8 * 2100
    assert "slots" not in found["ffn"]
    assert "dropped" not in found["uniform"]


def test_loads_of_a_list_and_a_file(capsys: Capture, tmp_path: Path) -> None:
    """Shares of 8 loads that sum to 20, times 2: the fifth takes 10 of 20, so every token."""
    path = tmp_path / "loads.txt"
    path.write_text("1 1 1 1\n10 2 2 2\n", encoding="utf-8")
    arguments = (*MIXTRAL, "--ep", "4", "--capacity-factor", "1", "--json")
    found = json.loads(out(capsys, *arguments, "--loads", "1,1,1,1,10,2,2,2"))
    assert found == json.loads(out(capsys, *arguments, "--loads", str(path)))
    skewed = values(found)["loads"]
    assert skewed["heaviest"] == 4
    assert skewed["heaviest_rank"] == 2
    assert skewed["largest"] == 8192
    # q = 1/20 four times, 1/2, and 1/10 three times: 8 x (4/400 + 1/4 + 3/100)
    assert skewed["balance_loss"] == 2_320_000


def test_fewest_slots(capsys: Capture) -> None:
    arguments = ("moe", "deepseek-v3", "--tokens", "4", "--min-capacity", "4", "--json")
    assert values(json.loads(out(capsys, *arguments)))["ffn"]["slots"] == 4


BAD = {
    "moe llama3-8b --tokens 8k": "n_experts = 0: the model is dense",
    "moe mixtral-8x7b": "Missing option '--tokens'",
    "moe mixtral-8x7b --tokens 0": "tokens = 0: must be from 1",
    "moe mixtral-8x7b --tokens -3": "tokens = -3: must be from 1",
    "moe mixtral-8x7b --tokens many": "tokens = many: 'many' is not a number",
    "moe mixtral-8x7b --tokens 1T": "tokens = 1099511627776: must be from 1",
    "moe mixtral-8x7b --tokens 8k --capacity-factor 0": "capacity_factor = 0: must be from 0",
    "moe mixtral-8x7b --tokens 8k --capacity-factor -1": "capacity_factor = -1: must be fr",
    "moe mixtral-8x7b --tokens 8k --capacity-factor x": "capacity_factor = x: is not a number",
    "moe mixtral-8x7b --tokens 8k --capacity-factor inf": "capacity_factor = inf: is not a",
    "moe mixtral-8x7b --tokens 8k --capacity-factor 1e0": "capacity_factor = 1e0: is not a number",
    "moe mixtral-8x7b --tokens 8k --capacity-factor 0.0000001": "capacity_factor = 1e-07: must be",
    "moe mixtral-8x7b --tokens 8k --capacity-factor ١": "capacity_factor = ١: is not a number",
    "moe mixtral-8x7b --tokens 8k --skew 1_0": "skew = 1_0: is not a number",
    "moe mixtral-8x7b --tokens 8k --capacity-factor none --min-capacity 4": "min_capacity = 4: wi",
    "moe mixtral-8x7b --tokens 8k --skew -1": "skew = -1: must be from 0",
    "moe mixtral-8x7b --tokens 8k --ep 3": "ep = 3: must divide the 8 experts",
    "moe mixtral-8x7b --tokens 8k --ep 0": "ep = 0: must be at least 1",
    "moe mixtral-8x7b --tokens 8k --block 0": "block = 0: must be at least 1",
    "moe mixtral-8x7b --tokens 8k --seed -1": "seed = -1: must be from 0",
    "moe mixtral-8x7b --tokens 8k --loads 1,2": "loads = 2 numbers: there are 8 experts",
    "moe mixtral-8x7b --tokens 8k --loads 1,a": "loads = a: is not a number",
    "moe mixtral-8x7b --tokens 8k --loads none.txt": "none.txt: no such file",
    "moe mixtral-8x7b --tokens 8k --json --csv": "--json and --csv: only one way",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(capsys: Capture, line: str) -> None:
    assert main(line.split(" ")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {BAD[line]}")
    assert captured.err.count("\n") == 1


def test_the_smallest_factor_is_shown(capsys: Capture) -> None:
    rows = [
        line.split() for line in out(capsys, *MIXTRAL, "--capacity-factor", "0.000001").splitlines()
    ]
    assert ["capacity", "factor", "0.000001", "assumed"] in rows
    assert ["slots", "an", "expert", "1", "tokens", "derived"] in rows
