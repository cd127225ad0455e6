"""``--as``: one model's FLOPs under the rule of another tool."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest

from paramcalc.cli.main import main
from paramcalc.quantities.conventions import CONVENTIONS
from paramcalc.sources import presets

Capture = pytest.CaptureFixture[str]
KEYS = [
    "convention",
    "source",
    "counts",
    "leaves_out",
    "unit",
    "known",
    "forward_flops_per_token",
    "forward_flops",
    "training_flops_per_token",
    "training_flops",
    "ratio_numerator",
    "ratio_denominator",
]
NO_BIASES = ["--set", "attention_bias=false", "--set", "ffn_bias=false", "--set", "norm_bias=false"]


def out(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_json_has_stable_keys_and_raw_integers(capsys: Capture) -> None:
    found = json.loads(out(capsys, "gpt2", *NO_BIASES, "--as", "palm", "--json"))
    assert list(found) == ["model", "context", *KEYS, "variants"]
    assert found["training_flops"] == 875_062_886_400
    assert found["training_flops_per_token"] == 875_062_886_400 // 1024
    assert found["forward_flops_per_token"] == 875_062_886_400 // 1024 // 3
    matmuls, pairs = 2 * (12 * 12 * 768 * 768 + 50_257 * 768), 4 * 12 * 768
    exact = 3 * (1024 * matmuls + pairs * 1024 * 1025 // 2)
    assert found["ratio_numerator"] == 875_062_886_400
    assert found["ratio_denominator"] == exact


def test_a_tool_shows_the_other_forms_of_its_rule(capsys: Capture) -> None:
    line = ["gpt-oss-120b", "-n", "4k", "--as", "torchtitan"]
    text = out(capsys, *line)
    assert "34,534,221,696" in text
    assert "38,044,854,144" in text
    found = json.loads(out(capsys, *line, "--json"))
    assert found["training_flops_per_token"] == 34_534_221_696
    others = {v["convention"]: v["training_flops_per_token"] for v in found["variants"]}
    assert others == {"torchtitan-full": 38_044_854_144}


def test_macs_have_no_training(capsys: Capture) -> None:
    line = ["gpt2", *NO_BIASES, "--as", "macs"]
    text = out(capsys, *line)
    assert "145,824,153,600" in text
    assert "training" not in text
    found = json.loads(out(capsys, *line, "--json"))
    assert found["forward_flops"] == 291_648_307_200 // 2
    assert found["unit"] == "MACs"
    assert found["training_flops"] is None
    assert found["training_flops_per_token"] is None


def test_all_stand_side_by_side(capsys: Capture) -> None:
    text = out(capsys, "gpt2", *NO_BIASES, "--as", "all")
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.startswith("  ")}
    assert set(CONVENTIONS) < set(rows)
    assert rows["palm"][2] == "875,062,886,400"
    assert "macs: 145,824,153,600 MACs forward" in text
    found = json.loads(out(capsys, "gpt2", "--as", "all", "--json"))
    assert [list(row) for row in found["conventions"]] == [KEYS] * len(CONVENTIONS)
    rows_csv = list(csv.DictReader(io.StringIO(out(capsys, "gpt2", "--as", "all", "--csv"))))
    assert [row["convention"] for row in rows_csv] == list(CONVENTIONS)
    assert rows_csv[-1]["training_flops"] == ""


@pytest.mark.parametrize("name", CONVENTIONS)
def test_each_screen_says_what_it_counts(capsys: Capture, name: str) -> None:
    text = out(capsys, "mixtral-8x7b", "--as", name)
    words = " ".join(text.split())
    assert CONVENTIONS[name].source in words
    assert f"counts: {CONVENTIONS[name].counts}" in words
    assert f"leaves out: {CONVENTIONS[name].leaves_out}" in words


@pytest.mark.parametrize("model", presets.names())
def test_every_preset_fits_80_columns(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, out(capsys, model, "--as", "all").splitlines())) <= 80


def test_a_default_context_is_assumed(capsys: Capture) -> None:
    card = ["llama3-8b", "--set", "context=null", "--as", "6n"]
    assert "2,048 tokens, assumed" in out(capsys, *card)
    assert json.loads(out(capsys, *card, "--json"))["known"] == "assumed"


def test_a_mean_that_is_no_integer_is_said(capsys: Capture) -> None:
    text = out(capsys, "gpt-oss-20b", "-n", "1001", "--as", "maxtext")
    assert text.count("no integer") == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("gpt2 --as nanogpt", "convention = nanogpt: unknown; take one of exact, all-pairs, palm"),
        ("gpt2 --as plam", "convention = plam: unknown (did you mean palm"),
        ("gpt2 --as palm --tensors", "--as and --tensors: only one listing; choose one"),
        ("gpt2 --as palm --by-layer", "--as and --by-layer: only one listing; choose one"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(capsys: Capture, line: str, says: str) -> None:
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {says}")
    assert captured.err.count("\n") == 1


def test_the_rules_are_imported_only_when_asked_for() -> None:
    code = (
        "import sys; from paramcalc.cli.main import main; main(['gpt2']);"
        " assert 'paramcalc.quantities.conventions' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
