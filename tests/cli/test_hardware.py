"""``paramcalc hardware``: the list, one with its sources, and a person's own file."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]


def out(capsys: Capture, *arguments: str) -> str:
    assert main(["hardware", *arguments]) == 0
    return capsys.readouterr().out


@pytest.fixture
def priced(tmp_path: Path) -> str:
    path = tmp_path / "my.yaml"
    path.write_text("extends: h100\nprice_per_hour: 2.49\n", encoding="utf-8")
    return str(path)


def test_the_list_fits_80_columns(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = out(capsys).splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.split()[:1] == ["h100-sxm-80gb"])
    assert row.split() == [
        "h100-sxm-80gb",
        "85.9",
        "80",
        "3.35",
        "989",
        "1,979",
        "900",
        "700",
        "card",
    ]
    row = next(line for line in lines if line.split()[:1] == ["gb300-279gb"])
    assert "5,000  15,000" in row


def test_words_filter(capsys: Capture) -> None:
    text = out(capsys, "amd", "die")
    assert "mi250x-die-64gb" in text
    assert "mi300x" not in text
    assert out(capsys, "intel").startswith("2 accelerators\n")
    assert out(capsys, "h100", "pcie").startswith("NVIDIA H100 PCIe 80 GB\n")


def test_one_shows_each_figure_with_its_source(capsys: Capture) -> None:
    text = out(capsys, "h100")
    assert text.startswith("NVIDIA H100 SXM5 80 GB\n")
    assert "others: h100-pcie-80gb, h100-nvl-94gb" in text
    assert "79.18 GiB  measured  [2]" in text
    assert "1,978.9 TFLOP/s  measured" in text
    assert "450 GB/s  derived" in text
    assert "[1] " in text
    assert "https://" in text
    assert "price" not in text
    assert "No rates by format are published." in out(capsys, "m3-ultra-512gb")


def test_machines_get_raw_integers(capsys: Capture) -> None:
    (h100,) = json.loads(out(capsys, "h100", "--json"))
    assert h100["memory_bytes"] == 85_899_345_920
    assert h100["peak_bf16_flops_per_second"] == 989_400_000_000_000
    assert h100["peak_fp4_flops_per_second"] is None
    assert h100["link_bytes_per_second"] == 2 * h100["link_one_way_bytes_per_second"]
    assert h100["price_per_hour_micro_dollars"] is None
    assert set(h100["sources"]["memory"]) == {"title", "url", "date"}
    rows = list(csv.DictReader(io.StringIO(out(capsys, "--csv"))))
    assert len(rows) >= 36
    a100 = next(row for row in rows if row["name"] == "a100-sxm-80gb")
    assert a100["bandwidth_bytes_per_second"] == "2039000000000"
    assert a100["peak_fp8_flops_per_second"] == ""
    assert "| gaudi2-96gb | Intel Gaudi 2 96 GB |" in out(capsys, "intel", "--markdown")
    assert "| memory | 85899345920 | bytes | measured | [1] |" in out(capsys, "a100", "--markdown")


def test_a_card_of_ones_own_is_meant_by_every_name_in_every_command(
    capsys: Capture, tmp_path: Path
) -> None:
    path, table = tmp_path / "v.yaml", tmp_path / "t.csv"
    own = "{name: h100-sxm-80gb, extends: h100, visible: 40 GiB, price_per_hour: 2}"
    path.write_text(f"accelerators: [{own}]\n", encoding="utf-8")
    files = ["--hardware", str(path)]
    for name in ("h100", "H100 SXM", "h100-sxm-80gb"):
        gpu = ["--gpu", name, *files, "--json"]
        found = {}
        for words in (["fit", "gpt2", "--kinds", name], ["serve", "gpt2"]):
            assert main([*words, *gpu]) == 0
            found[words[0]] = json.loads(capsys.readouterr().out)
        assert found["fit"]["figures"]["gpu_bytes"]["value"] == 40 * 2**30
        assert found["serve"]["figures"]["cost_per_million_prompt_tokens"]["value"]
        assert [kind["gpu"] for kind in found["fit"]["smallest"]] == ["h100-sxm-80gb"]
        assert main(["sweep", "gpt2", *gpu, "--columns", "gpu_bytes,cost_per_hour"]) == 0
        assert json.loads(capsys.readouterr().out) == [
            {"gpu_bytes": 40 * 2**30, "cost_per_hour": 2_000_000}
        ]
        table.write_text(f"model,gpu\ngpt2,{name}\n")
        names = "gpu_bytes,cost_per_hour_dollars"
        done = ["annotate", str(table), "-o", str(tmp_path / "o.csv"), "--force", *files]
        assert main([*done, "--columns", names]) == 0
        assert (tmp_path / "o.csv").read_text().endswith(f"gpt2,{name},{40 * 2**30},2.00,\n")
        capsys.readouterr()
        assert main(["train", "gpt2", "--tokens", "1B", *gpu]) == 0
        assert "$2.00 a GPU-hour" in capsys.readouterr().out


def test_a_price_of_ones_own(capsys: Capture, priced: str) -> None:
    assert "$2.49/h  assumed" in out(capsys, "--hardware", priced, "h100")
    text = out(capsys, "--hardware", priced)
    row = next(line for line in text.splitlines() if "h100-sxm-80gb" in line)
    assert row.split()[-1] == "2.49"
    (h100,) = json.loads(out(capsys, "--hardware", priced, "h100", "--json"))
    assert h100["price_per_hour_micro_dollars"] == 2_490_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["h1000"], "gpu = h1000: unknown accelerator (did you mean h100"),
        (["zz", "yy"], "gpu = zz-yy: unknown accelerator"),
        (["--hardware", "nowhere.yaml"], "nowhere.yaml: no such file or directory"),
        (["h100", "--json", "--csv"], "--json and --csv: only one way of output"),
    ],
)
def test_bad_input_is_one_line(capsys: Capture, arguments: list[str], says: str) -> None:
    assert main(["hardware", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {says}")
    assert captured.err.count("\n") == 1
