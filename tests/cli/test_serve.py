"""``paramcalc serve`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from paramcalc.cli.main import main
from tests.conftest import ROOT

Capture = pytest.CaptureFixture[str]
LLAMA = ("llama3.1-8b", "--gpu", "h100")


def out(capsys: Capture, *arguments: str) -> str:
    assert main(["serve", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def document(capsys: Capture, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out(capsys, *arguments, "--json"))
    return found


def notes(capsys: Capture, *arguments: str) -> list[str]:
    assert main(["serve", *arguments]) == 0
    return capsys.readouterr().err.splitlines()


def refused(capsys: Capture, *arguments: str) -> str:
    assert main(["serve", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_the_integers_by_hand(capsys: Capture) -> None:
    """Llama 3.1 8B without its embedding in 16 bits; 131,072 bytes of cache a token."""
    found = document(capsys, *LLAMA)
    assert found["prompt"] == 1024  # 1k of tokens
    figures = {key: figure["value"] for key, figure in found["figures"].items()}
    assert figures["decode_weight_bytes"] == 2 * (8_030_261_248 - 128_256 * 4096)
    assert figures["decode_cache_bytes"] == 16 * 1152 * 131_072
    read = figures["decode_weight_bytes"] + figures["decode_cache_bytes"]
    step = -(-read * 1000 // 2_680_000)  # nanoseconds, 80% of 3.35 TB/s
    assert figures["step_time"] == -(-step // 1000)
    assert figures["tokens_per_second"] == 16 * 10**9 // step
    assert figures["tokens_per_second_request"] == 10**9 // step
    assert figures["cost_per_million_tokens"] is None
    assert found["bound"] == "memory"


def test_csv_and_markdown_hold_the_integers_of_json(capsys: Capture) -> None:
    arguments = ("gpt-oss-120b", "--gpu", "h100", "--tp", "2", "--price", "2.49")
    found = document(capsys, *arguments)
    flat = list(csv.DictReader(io.StringIO(out(capsys, *arguments, "--csv"))))
    values = {row["key"]: row["value"] for row in flat}
    assert values == {
        key: "" if figure["value"] is None else str(figure["value"])
        for key, figure in found["figures"].items()
    }
    assert {row["known"] for row in flat} == {"exact", "derived", "assumed"}
    text = out(capsys, *arguments, "--markdown")
    for key in ("decode_weight_bytes", "step_time", "cost_per_million_tokens"):
        assert str(found["figures"][key]["value"]) in text
    assert found["layout"] == {"tp": 2, "pp": 1, "ep": 1, "dp": 1}


def test_money_needs_a_price(capsys: Capture, tmp_path: Path) -> None:
    bare = out(capsys, *LLAMA)
    assert "$" not in bare
    assert "—  assumed  no price: --price" in bare
    file = tmp_path / "mine.yaml"
    file.write_text("extends: h100\nprice_per_hour: 3.60\n", encoding="utf-8")
    own = document(capsys, *LLAMA, "--hardware", str(file))
    typed = document(capsys, *LLAMA, "--price", "3.60")
    assert own["price_per_hour_micro"] == typed["price_per_hour_micro"] == 3_600_000
    assert own["figures"] == typed["figures"]
    # 1,000 micro-dollars a second: a million tokens take 10^9 / rate of them
    cost = own["figures"]["cost_per_million_tokens"]["value"]
    rate = own["figures"]["tokens_per_second"]["value"]
    assert abs(cost - 10**9 / rate) < 10**9 / rate / rate + 1
    assert "$3.60 a GPU-hour" in out(capsys, *LLAMA, "--price", "3.6")


def test_the_row_that_was_asked_is_marked(capsys: Capture) -> None:
    lines = out(capsys, *LLAMA, "--batch", "20").splitlines()
    marked = [line.split() for line in lines if line.endswith("asked")]
    assert [row[0] for row in marked] == ["20", "1,024"]


def test_efficiency_and_hop_are_the_users(capsys: Capture) -> None:
    arguments = (*LLAMA, "--tp", "2", "--flops-efficiency", "100%", "--bandwidth-efficiency", "1")
    found = document(capsys, *arguments, "--hop", "0")
    assert found["hop_nanoseconds"] == 0
    assert found["flops_efficiency_percent"] == found["bandwidth_efficiency_percent"] == 100
    read = sum(
        found["figures"][key]["value"] for key in ("decode_weight_bytes", "decode_cache_bytes")
    )
    nanoseconds = -(-read * 1000 // 3_350_000)
    assert found["figures"]["memory_time"]["value"] == -(-nanoseconds // 1000)
    waiting = document(capsys, *arguments)["figures"]["exchange_time"]["value"]
    # 65 all-reduces and a gather
    assert waiting - found["figures"]["exchange_time"]["value"] == 66 * 10


def test_what_is_slower_than_a_token_a_second(capsys: Capture) -> None:
    arguments = ("llama3.1-405b", "--gpu", "l4", "--batch", "64", "--prompt", "128k")
    assert main(["serve", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "<1 tokens/s" in shown
    assert " 0 tokens/s" not in shown


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        ((*LLAMA, "--prompt", "128k"), "prompt + output = 131,328: beyond the model's own 131,072"),
        (("llama3.1-70b", "--gpu", "h100"), "it does not fit: "),
        ((*LLAMA, "--batch", "5", "--dp", "4"), "batch = 5: does not divide over dp 4; "),
        ((*LLAMA, "--batch", "1", "--pp", "2"), "batch = 1: stages idle, pp 2 wants one each"),
        ((*LLAMA, "--tp", "8", "--pp", "2"), "16 GPUs exchange as if all were in one node"),
        ((*LLAMA, "--max-seqs", "8"), "batch = 16: the engine samples 8; --max-seqs"),
    ],
)
def test_notes(capsys: Capture, arguments: tuple[str, ...], note: str) -> None:
    assert any(line.startswith(f"paramcalc: note: {note}") for line in notes(capsys, *arguments))


def test_hardware_without_a_link(capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "name: mine\nvendor: Me\nunit: card\nmemory: 80 GiB\nbandwidth: 1 TB/s\n"
        "peaks: {bf16: 100T}\n",
        encoding="utf-8",
    )
    arguments = ("llama3.1-8b", "--gpu", "mine", "--hardware", str(file), "--tp", "2")
    assert notes(capsys, *arguments) == [
        "paramcalc: note: mine has no known link: exchange is its hops alone"
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("llama3.1-8b",), "--gpu"),
        (("llama3.1-8b", "--gpu", "h1000"), "gpu = h1000: unknown accelerator"),
        ((*LLAMA, "--dtype", "fp3"), "dtype = fp3: unknown format"),
        (("llama3.1-8b", "--gpu", "t4"), "dtype = bf16: needs bf16, and the hardware has fp32"),
        (("llama3.1-8b", "--gpu", "m3-ultra-512gb"), "no peak is published for m3-ultra-512gb"),
        ((*LLAMA, "--tp", "3"), "tp = 3: must divide the 32 heads"),
        ((*LLAMA, "--pp", "33"), "pp = 33: there are 32 layers"),
        ((*LLAMA, "--ep", "2"), "ep = 2: "),
        (("bert-base", "--gpu", "h100"), "model = bert-base: every token sees all others"),
        ((*LLAMA, "--json", "--csv"), "only one way of output"),
        ((*LLAMA, "--kv-dtype", "nf4"), "kv_dtype = nf4: is a format of weights"),
        ((*LLAMA, "--price", "0"), "price_per_hour = 0: must be dollars above 0"),
        ((*LLAMA, "--flops-efficiency", "150%"), "flops_efficiency = 150%: must be above 0"),
        ((*LLAMA, "--bandwidth-efficiency", "0"), "bandwidth_efficiency = 0: must be above 0"),
        ((*LLAMA, "--prompt", "0"), "prompt = 0: must be at least 1"),
    ],
)
def test_bad_input(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    assert message in refused(capsys, *arguments)


OPTIONS = "prompt output batch hop price flops-efficiency bandwidth-efficiency gpus tp pp ep dp"


@pytest.mark.parametrize("value", ["abc", "NaN", "-1", "inf", "", "٣", "1e30", "1e999999999"])
@pytest.mark.parametrize("option", OPTIONS.split())
def test_hostile_values(capsys: Capture, option: str, value: str) -> None:
    if (option, value) == ("dp", "1e30"):
        assert main(["serve", *LLAMA, "--dp", value]) == 0
        return
    shown = refused(capsys, *LLAMA, f"--{option}", value)
    assert shown.startswith(f"paramcalc: {option.replace('-', '_')}") or option == "price"


@pytest.mark.parametrize("size", ["1M", "1e9", "1T"])
def test_huge_sizes_are_answered(capsys: Capture, size: str) -> None:
    for option in ("--prompt", "--output", "--batch", "--max-seqs", "--page"):
        assert main(["serve", *LLAMA, option, size, "--price", "0.01"]) == 0
        assert "it does not fit" in capsys.readouterr().err


def test_the_table_of_the_page(capsys: Capture) -> None:
    """docs/serving.md holds what ``tools/throughput.py`` prints."""
    run_path(str(ROOT / "tools" / "throughput.py"), run_name="__main__")
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.strip() in page
