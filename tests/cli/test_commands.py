"""The command line as a person uses it: what it prints, and what it says to bad input."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from paramcalc.cli.main import COMMANDS, main
from paramcalc.sources import presets
from tests.conftest import golden

Capture = pytest.CaptureFixture[str]


def out(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("word", [[], ["show"]])
def test_the_word_show_may_be_left_out(capsys: Capture, word: list[str]) -> None:
    assert "8,030,261,248" in out(capsys, *word, "llama3-8b")


def test_an_override_may_come_first(capsys: Capture) -> None:
    assert "8,835,567,616" in out(capsys, "--kv", "32", "llama3-8b")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--kv", "32"], "+805,306,368"),
        (["--kv=32"], "one decoder layer: 218,112,000 → 243,277,824 (+25,165,824)"),
        (["-L", "16"], "4,540,469,248 parameters"),
        (["--layers", "16"], "4,540,469,248 parameters"),
        (["--d", "2048", "--head-dim", "128"], "4,015,130,624 parameters"),
        (["-V", "1k"], "6,987,780,096 parameters"),
        (["--ff", "4096"], "4,003,729,408 parameters"),
        (["-H", "64", "--head-dim", "64"], "7,896,043,520 parameters"),
        (["-E", "8", "-k", "2"], "47,491,321,856 parameters, 13,668,454,400 active"),
        (["-n", "128k"], "68,719,476,736"),
        (["--tie"], "7,504,924,672 parameters"),
        (["--no-gated"], "6,151,213,056 parameters"),
        (["--gpt2"], "8,065,458,176 parameters"),
        (["--set", "attention_bias=[q, k, v]"], "8,030,457,856 parameters"),
        (["--set", "window=4k"], "never"),
    ],
)
def test_overrides(capsys: Capture, options: list[str], says: str) -> None:
    assert says in out(capsys, "llama3-8b", *options)


@pytest.mark.parametrize(
    "line",
    [
        "deepseek-v3 -E 128",
        "deepseek-v3 -L 30",
        "mixtral-8x7b -E 4 -k 2",
        "t5-large --ff 8k",
        "llama3-8b --tie -V 32k",
        "llama3-8b -E 8 -k 2",
        "mixtral-8x7b -E 0",
        "gpt2 --no-gpt2 --gated",
        "gemma3-27b -L 5",
        "llama4-maverick --kv 4 -k 2",
        "deepseek-v3 --set mla=null",
        "albert-base -L 6 --set share_layers=false",
    ],
)
def test_changes_add_up_to_the_total(capsys: Capture, line: str) -> None:
    text = out(capsys, *line.split(), "--markdown").partition("### FLOPs")[0]
    rows = [[c.strip() for c in r.split("|")[1:-1]] for r in text.splitlines() if r[:2] == "| "]
    rows = [row for row in rows if len(row) == 5 and row[3].isdigit()]
    total = next(row for row in rows if row[0] == "total")
    sums = ("total", "= layer", "= layer (shared)", "embedding + head")
    parts = [row for row in rows if row[0] not in sums]
    assert sum(int(row[3]) for row in parts) == int(total[3])
    assert sum(int(row[4] or 0) for row in parts) == int(total[4] or 0)


def test_the_window_of_sliding_layers_is_theirs(capsys: Capture) -> None:
    assert "21 sliding 1,024 + 21 full" in out(capsys, "gemma2-9b", "--set", "window=1k")


def test_a_place_that_keeps_its_own_value_is_named(capsys: Capture) -> None:
    assert main(["t5-small", "-L", "3"]) == 0
    assert "note: encoder.n_layers is stated there and stays" in capsys.readouterr().err


def test_a_context_changes_figures_and_not_the_parameters(capsys: Capture) -> None:
    text = out(capsys, "llama3-8b", "--context", "128k")
    assert text.startswith("llama3-8b  8,030,261,248 parameters\n")
    assert "70.2%" in text
    assert "+64,424,509,440" in text  # 4 x 32 x 4,096 x (131,072 - 8,192)
    assert "+786,432" in out(capsys, "gpt2", "--context", "2k")


def test_the_links_of_six_tokens(capsys: Capture) -> None:
    text = out(capsys, "llama3-8b", "-n", "6")
    assert (
        next(line for line in text.splitlines() if line.split()[:2] == ["causal", "links"]).split()[
            4
        ]
        == "21"
    )


def test_the_matrices_of_a_block(capsys: Capture) -> None:
    assert "2,359,296  4,718,592" in out(capsys, "gpt2")
    assert "1,835,008  13,074,432" in out(capsys, "qwen2-0.5b")
    text = out(capsys, "gpt2", "--d", "512", "-H", "8", "--no-gpt2")
    assert "1,048,576  2,097,152" in text
    assert "66.7%" in text


def test_a_field_without_a_place_is_named(capsys: Capture) -> None:
    assert main(["mixtral-8x7b", "-E", "0"]) == 0
    assert "note: top_k has no place in this model" in capsys.readouterr().err


def test_no_false_note_on_options_that_need_each_other(capsys: Capture) -> None:
    assert main(["llama3-8b", "-E", "8", "-k", "2", "--set", "d_expert=1k"]) == 0
    assert capsys.readouterr().err == ""


def test_standard_input(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("d: 512\nL: 2\nH: 8\nV: 100\n"))
    assert "6,396,416 parameters" in out(capsys, "-")


@pytest.mark.parametrize(
    "line", ["deepseek-v3 --tensors", "llama4-scout --context 100M --batch 64"]
)
@pytest.mark.parametrize("columns", ["20", "60", "80"])
def test_no_digit_is_cut_however_narrow(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, line: str, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = out(capsys, *line.split())
    assert "…" not in text
    assert text.count("671,026,404,352" if "tensors" in line else "107,769,861,120") >= 1


def test_an_override_that_changes_nothing_is_named(capsys: Capture) -> None:
    assert main(["deepseek-v3", "--set", "v_head_dim=64"]) == 0
    assert "note: v_head_dim changes nothing" in capsys.readouterr().err


def test_json_has_raw_integers(capsys: Capture) -> None:
    document = json.loads(out(capsys, "llama3-8b", "--json", "--kv", "32"))
    assert document["quantities"]["params"] == 8_835_567_616
    assert document["change"]["params"] == 805_306_368
    assert document["known"]["params"] == "exact"
    assert document["known"]["kv_bytes"] == "derived"
    assert len(document["layers"]) == 32
    assert sum(t["params"] for t in document["tensors"]) == 8_835_567_616
    assert sum(p["params"] for p in document["params_by_part"]) == 8_835_567_616


def test_a_context_nobody_stated_is_assumed(capsys: Capture) -> None:
    document = json.loads(out(capsys, "transformer-base", "--json"))
    assert document["context"] == 2_048
    assert document["known"]["prefill_flops"] == "assumed"
    assert document["known"]["params"] == "exact"
    assert "(assumed)" in out(capsys, "transformer-base")


def test_csv_has_stable_columns(capsys: Capture) -> None:
    rows = list(csv.DictReader(io.StringIO(out(capsys, "mixtral-8x7b", "--csv"))))
    assert list(rows[0]) == ["model", "quantity", "value", "unit", "known"]
    values = {row["quantity"]: row["value"] for row in rows}
    assert values["params"] == "46702792704"
    assert values["active_params"] == "12879925248"
    assert values["params_router"] == str(32 * 8 * 4096)
    tensors = list(csv.DictReader(io.StringIO(out(capsys, "gpt2", "--csv", "--tensors"))))
    assert sum(int(row["params"]) for row in tensors) == 124_439_808


def test_markdown_has_raw_integers_and_no_bars(capsys: Capture) -> None:
    text = out(capsys, "llama3-8b", "--markdown")
    assert "| total |  |  | 8030261248 | 100.0% |" in text
    assert "█" not in text


def test_tensors_and_layers(capsys: Capture) -> None:
    text = out(capsys, "deepseek-v3", "--tensors", "--by-layer")
    assert "layers.moe.*.ffn.experts.*.gate" in text
    assert "3 to 60" in text
    assert "671,026,404,352" in text


def test_batch_and_kv_dtype(capsys: Capture) -> None:
    one = json.loads(out(capsys, "llama3-8b", "--json"))["quantities"]["kv_bytes"]
    many = json.loads(out(capsys, "llama3-8b", "--json", "--batch", "16", "--kv-dtype", "fp8"))
    assert one == 8_192 * 131_072
    assert many["quantities"]["kv_bytes"] == 8 * one


def test_list_filters(capsys: Capture) -> None:
    rows = json.loads(out(capsys, "list", "--json"))
    assert [row["name"] for row in rows] == presets.names()
    by_name = {row["name"]: row for row in rows}
    for fact in golden():
        assert by_name[fact["preset"]]["params"] == fact["params"]
    assert by_name["llama3-8b"]["kv_bytes_per_token"] == 131_072
    names = [r["name"] for r in json.loads(out(capsys, "list", "--json", "gemma", "9b"))]
    assert names == ["gemma2-9b"]
    rows = json.loads(out(capsys, "list", "--json", "--moe", "--min", "100B", "--by", "params"))
    assert all(row["params"] >= 100e9 for row in rows)
    assert [r["params"] for r in rows] == sorted(r["params"] for r in rows)
    assert rows[-1]["name"] == "kimi-k2"
    headings = out(capsys, "list", "gpt2").splitlines()[1].replace("KV bytes", "KV-bytes").split()
    keys = ["params", "active_params", "context", "kv_bytes_per_token"]
    for heading, key in zip(headings, keys, strict=True):
        for name in (heading.replace("-", " "), key):
            rows = json.loads(out(capsys, "list", "--json", "gpt", "--by", name))
            assert [r[key] or 0 for r in rows] == sorted(r[key] or 0 for r in rows)
    assert "gpt2" in out(capsys, "list", "--dense", "--max", "125M")
    assert "| gpt2 | 124439808 |" in out(capsys, "list", "gpt2", "--markdown")


def test_compare_differences(capsys: Capture) -> None:
    rows = {
        r["quantity"]: r
        for r in json.loads(out(capsys, "compare", "llama3-8b", "mixtral-8x7b", "gpt2", "--json"))
    }
    assert rows["params"]["mixtral-8x7b"] == 46_702_792_704
    assert rows["params_router"]["llama3-8b"] == 0
    text = out(capsys, "compare", "llama3-8b", "mixtral-8x7b")
    assert "+38,672,531,456" in text
    assert rows["params"]["mixtral-8x7b change"] == 38_672_531_456
    assert "+38,672,531,456" in out(capsys, "compare", "llama3-8b", "gpt2", "mixtral-8x7b")
    same = json.loads(out(capsys, "compare", "gpt2", "gpt2", "--json", "--context", "1k"))
    assert same[0]["gpt2 (1)"] == same[0]["gpt2 (2)"]


def test_explain_in_each_way(capsys: Capture) -> None:
    steps = json.loads(out(capsys, "explain", "llama3-8b", "--json"))
    total = next(s for s in steps if s["name"] == "total")
    assert total["value"] == 8_030_261_248
    assert "2·V·d" in total["symbols"]
    assert "total,N = 2·V·d" in out(capsys, "explain", "llama3-8b", "--csv")
    assert "| total | N = 2·V·d" in out(capsys, "explain", "llama3-8b", "--markdown")
    assert "131,072 tokens" in out(capsys, "explain", "llama3-8b", "-n", "128k")


BAD = {
    "lama3-8b": "paramcalc: lama3-8b: no such preset or file (did you mean llama3-8b",
    "llama3-8b --kv 5": "paramcalc: n_kv_heads = 5: must divide n_heads = 32; take one of 4, 8",
    "llama3-8b --kv x": "paramcalc: n_kv_heads = x: 'x' is not a number; write it as 4096, 8k",
    "llama3-8b --kv 0": "paramcalc: n_kv_heads = 0: must be at least 1; raise it",
    "llama3-8b --kv -4": "paramcalc: n_kv_heads = -4: must be at least 1; raise it",
    "llama3-8b -L 1.5": "paramcalc: n_layers = 1.5: '1.5' is not a whole number",
    "llama3-8b -L 1e30": "paramcalc: n_layers = 1000000000000000000000000000000: must be at most",
    "llama3-8b -L inf": "paramcalc: n_layers = inf: 'inf' is too large to be a size",
    "llama3-8b -E 8": "paramcalc: n_experts = 8: a router needs to know how many work on a token",
    "llama3-8b -E 8 -k 9": "paramcalc: top_k = 9: cannot exceed n_experts = 8; take 1 to 8",
    "llama3-8b --set a": "paramcalc: --set a: must be field=value; write --set window=4096",
    "llama3-8b --set widow=4": "paramcalc: widow: unknown field (did you mean window",
    "llama3-8b --set a.b=4": "paramcalc: a.b: there is no section a; check the name",
    "llama3-8b --set d=[": "paramcalc: --set: broken YAML",
    "llama3-8b --batch 0": "paramcalc: batch = 0: must be at least 1; raise it",
    "llama3-8b --kv-dtype nf4": "paramcalc: kv_dtype = nf4: is a format of weights; take one of",
    "llama3-8b --kv-dtype fp7": "paramcalc: kv_dtype = fp7: unknown format (did you mean fp8",
    "llama3-8b --json --csv": "paramcalc: --json and --csv: only one way of output; choose one",
    "llama3-8b --kvv 4": "paramcalc: No such option: --kvv",
    "llama3-8b gpt2": "paramcalc: Got unexpected extra argument(s) (gpt2); paramcalc compare A B",
    "compar gpt2 gpt2": "paramcalc: Got unexpected extra argument(s) (gpt2 gpt2) (did you mean com",
    "llama3": "paramcalc: llama3: no such preset or file (did you mean llama3-8b, llama3-70b",
    "llama3-8b --set attention_bias=q,x": "paramcalc: attention_bias = q,x: must be",
    "show": "paramcalc: Missing argument 'MODEL'",
    "compare gpt2": "paramcalc: compare gpt2: needs two models or more; name another",
    "compare gpt2 gpt3": "paramcalc: gpt3: no such preset or file (did you mean gpt",
    "list nothing-at-all": "paramcalc: no preset fits; loosen the words or the limits",
    "list --by size": "paramcalc: by = size: unknown column",
    "list --min x": "paramcalc: min = x: 'x' is not a number",
    "deepseek-v3 --set mla=null --kv 3": "paramcalc: n_kv_heads = 3: must divide n_heads = 128",
    "deepseek-v3 --kv 8": "paramcalc: n_kv_heads = 8: has no meaning with latent attention",
    "none.yaml": "paramcalc: none.yaml: no such file or directory",
    ".": "paramcalc: .: is a directory without a config.json; name a file",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(capsys: Capture, line: str) -> None:
    assert main(line.split(" ")) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(BAD[line])
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_help(capsys: Capture, command: str) -> None:
    text = out(capsys, command, "--help")
    assert text.startswith(f"Usage: paramcalc {command}")
    assert all(len(line) <= 80 for line in text.splitlines())


def test_help_version_and_nothing(capsys: Capture) -> None:
    page = out(capsys, "--help")
    assert page == out(capsys)
    assert all(name in page for name in COMMANDS)
    assert all(len(line) <= 80 for line in page.splitlines())
    assert out(capsys, "--version").startswith("paramcalc 0.")


def test_a_real_yaml(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("d: 512\nL: 2\nH: 8\nV: 100\nn: 64\n", encoding="utf-8")
    assert "6,396,416 parameters" in out(capsys, str(path))


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_fits_80_columns_and_loses_no_digit(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = out(capsys, name)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "…" not in text
    document = json.loads(out(capsys, name, "--json"))
    keys = ("params", "active_params", "matmul_flops_per_token", "prefill_flops")
    assert all(f"{document['quantities'][key]:,}" in text for key in keys)


def test_names_of_files_are_harmless(capsys: Capture, tmp_path: Path) -> None:
    for name in ("=cmd()", "+1", "a\nb", "\x1b[31m", "\tx", "a|b"):
        path = tmp_path / f"{name}.yaml"
        path.write_text("d: 512\nL: 2\nH: 8\nV: 100\nn: 64\n", encoding="utf-8")
        for arguments in (["show", str(path), "--csv"], ["compare", "gpt2", str(path), "--csv"]):
            for line in out(capsys, *arguments).splitlines():
                assert not any(cell[:1] in "=+@\t" for cell in next(csv.reader([line])) if cell)
        text = out(capsys, str(path))
        assert "\x1b" not in text
        assert "6,396,416 parameters" in text.splitlines()[0]


@pytest.mark.parametrize("text", ["9" * 20_000, "x" * 20_000, "\x1b[31m", "8\n9", "a\x00b"])
@pytest.mark.parametrize("option", ["--kv", "--batch", "--kv-dtype", "--set", "--context"])
def test_hostile_values_are_shown_short_and_plain(capsys: Capture, option: str, text: str) -> None:
    assert main(["gpt2", option, text]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error[:-1].isprintable()
    assert len(error) < 400
