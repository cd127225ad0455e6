"""``paramcalc formats`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json

import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]


def out(capsys: Capture, *arguments: str) -> str:
    assert main(["formats", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_list(capsys: Capture) -> None:
    """The bits that llama.cpp publishes, to the last digit; 8,030,261,248 weights of 2 bytes."""
    text = out(capsys, "llama3.1-8b")
    assert text.startswith("llama3.1-8b  8,030,261,248 parameters\n")
    cells = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line[:2] == "  "}
    assert cells["bf16"] == ["16.0000", "16.06", "GB", "14.96", "GiB"]
    published = {"Q4_K_M": "4.8944", "Q5_K_M": "5.7036", "Q6_K": "6.5633", "Q8_0": "8.5008"}
    for name, bits in published.items():
        assert cells[name][0] == bits
    assert cells["Q4_K_M"][3] == "4.58"


def test_machines_get_raw_integers(capsys: Capture) -> None:
    found = {row["format"]: row for row in json.loads(out(capsys, "llama3-8b", "--json"))}
    assert found["bf16"]["bytes"] == 16_060_522_496
    assert found["Q6_K"]["bits_per_weight_e4"] == 65_633
    rows = list(csv.DictReader(io.StringIO(out(capsys, "llama3-8b", "--csv"))))
    assert {row["format"]: int(row["bytes"]) for row in rows} == {
        name: row["bytes"] for name, row in found.items()
    }
    assert "| bf16 | 16.0000 | 16060522496 |" in out(capsys, "llama3-8b", "--markdown")


@pytest.mark.parametrize(
    ("name", "dtype", "total"),
    [
        ("llama3-8b", "bf16", 2 * 8_030_261_248),
        ("gpt2", "fp32", 4 * 124_439_808),
        # 24 layers of 32 experts, 3 matrices of 2,880 x 2,880 in 17 bits for 4 weights
        (
            "gpt-oss-20b",
            "mxfp4",
            2 * (20_914_757_184 - 24 * 32 * 3 * 2880**2) + 24 * 32 * 3 * 2880**2 * 17 // 32,
        ),
    ],
)
def test_tensor_by_tensor(capsys: Capture, name: str, dtype: str, total: int) -> None:
    rows = json.loads(out(capsys, name, "--dtype", dtype, "--json"))
    assert sum(row["bytes"] for row in rows) == total
    (listed,) = [r for r in json.loads(out(capsys, name, "--json")) if r["format"] == dtype]
    assert listed["bytes"] == total
    types = {row["tensor"]: row["type"] for row in rows}
    assert types["embedding"] == (dtype if dtype in ("bf16", "fp32") else "bf16")


def test_the_types_of_a_file(capsys: Capture) -> None:
    """Q4_K_M keeps the head in Q6_K and norms in F32."""
    rows = json.loads(out(capsys, "llama3-8b", "--dtype", "q4_k_m", "--json"))
    types = {row["tensor"]: row["type"] for row in rows}
    assert types["output.weight"] == "Q6_K"
    assert types["token_embd.weight"] == "Q4_K"
    assert types["blk.*.attn_norm.weight"] == "F32"
    # V and down: half of the layers in Q6_K
    assert {row["type"] for row in rows if row["tensor"] == "blk.*.attn_v.weight"} == {
        "Q4_K",
        "Q6_K",
    }


def test_a_type_that_rows_do_not_fit_is_left_out(capsys: Capture) -> None:
    """Q1_0 has blocks of 128 and no other type to fall back on; rows of 576 do not fit it."""
    for name, listed in (("llama3-8b", True), ("smollm2-135m", False)):
        names = {row["format"] for row in json.loads(out(capsys, name, "--json"))}
        assert ("Q1_0" in names) is listed
        assert {"bf16", "awq", "Q4_K_M"} <= names


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch"], "nosuch: no such preset or file"),
        (["llama3-8b", "--dtype", "q9_x"], "dtype = q9_x: unknown format"),
        (["llama3-8b", "--dtype", ""], "dtype = : unknown format"),
        (["llama3-8b", "--dtype", "gptq-g0"], "dtype = gptq-g0: a group has 1 to 65,536 weights"),
        (["llama3-8b", "--json", "--markdown"], "--json and --markdown: only one way of output"),
    ],
)
def test_bad_input_is_one_line(capsys: Capture, arguments: list[str], says: str) -> None:
    assert main(["formats", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {says}")
    assert captured.err.count("\n") == 1
