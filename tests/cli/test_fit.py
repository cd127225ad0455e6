"""``paramcalc fit`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from paramcalc.cli.main import main
from paramcalc.sweep import columns

Capture = pytest.CaptureFixture[str]
LLAMA = ("llama3.1-8b", "--gpu", "h100")
NONE = ("--kinds", "none")


def out(capsys: Capture, *arguments: str) -> str:
    assert main(["fit", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def document(capsys: Capture, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out(capsys, *arguments, "--json"))
    return found


def values(found: dict[str, Any]) -> dict[str, int]:
    return {key: figure["value"] for key, figure in found["figures"].items()}


def notes(capsys: Capture, *arguments: str) -> str:
    assert main(["fit", *arguments]) == 0
    return capsys.readouterr().err


def refused(capsys: Capture, *arguments: str) -> str:
    assert main(["fit", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_the_verdict(capsys: Capture) -> None:
    text = out(capsys, *LLAMA, "-n", "16000", "--batch", "4", *NONE)
    assert text.startswith("llama3.1-8b  fits on h100-sxm-80gb: 46.80 GB to spare\n")
    assert "makes it fit" not in text
    text = out(capsys, "llama3-70b", "--gpu", "h100")
    assert "llama3-70b  does not fit on h100-sxm-80gb: 72.55 GB missing" in text
    assert "-69.86 GB     -65.06 GiB" in text
    assert "Any one of these makes it fit, the smallest change first" in text


def test_machines_get_raw_integers(capsys: Capture) -> None:
    """Llama 3.1 8B, 4 x 16,000 tokens of 131,072 bytes."""
    line = (*LLAMA, "-n", "16000", "--batch", "4")
    found = document(capsys, *line)
    assert found["layout"] == {"tp": 1, "pp": 1, "ep": 1, "dp": 1}
    assert (found["gpus"], found["dtype"], found["kv_dtype"]) == (1, "bf16", "bf16")
    assert values(found)["gpu_weight_bytes"] == 16_060_522_496
    assert values(found)["gpu_kv_bytes"] == 4 * 16_000 * 131_072
    assert values(found)["gpu_free_bytes"] == found["gap_bytes"]
    assert found["cost_per_hour"] is None
    assert len(found["smallest"]) > 30
    assert {"gpu", "gpus", "layout", "gap_bytes", "cost_per_hour"} == set(found["smallest"][0])
    rows = list(csv.DictReader(io.StringIO(out(capsys, *line, "--csv"))))
    assert {row["key"]: row["value"] for row in rows}["gpu_weight_bytes"] == "16060522496"
    assert {row["known"] for row in rows} == {"exact", "derived", "measured", "assumed"}
    text = out(capsys, *line, "--markdown")
    assert "| weights in all | 16060522496 bytes | derived | the sum |" in text
    assert "| h100-sxm-80gb | 1 | one GPU |" in text


def test_gguf_types_and_releases(capsys: Capture) -> None:
    """llama-quantize's 4.58 GiB of Q4_K_M; gpt-oss as it ships."""
    found = document(capsys, *LLAMA, "--dtype", "q4_k_m", *NONE)
    assert round(values(found)["gpu_weight_bytes"] / 2**30, 2) == 4.58
    assert document(capsys, "gpt-oss-20b", "--gpu", "h100", *NONE)["dtype"] == "mxfp4"
    pro_rata = notes(capsys, *LLAMA, "--dtype", "q4_k_m", "--tp", "2", *NONE)
    assert "Q4_K_M on several GPUs: each tensor's bytes pro rata, its blocks not cut" in pro_rata


def test_the_quantization_of_a_config(capsys: Capture, tmp_path: Path) -> None:
    """4 bits and a 16-bit scale and a 4-bit zero point for 128 of each matrix of a layer."""
    d, ff, vocab = 1024, 2816, 32_000
    config = {
        "model_type": "llama",
        "hidden_size": d,
        "num_hidden_layers": 2,
        "num_attention_heads": 8,
        "intermediate_size": ff,
        "vocab_size": vocab,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128},
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    found = document(capsys, str(path), "--gpu", "h100", *NONE)
    assert found["dtype"] == "awq"
    matrices = 4 * d * d + 3 * d * ff
    plain = 2 * vocab * d + (2 * 2 + 1) * d
    layers = 2 * (matrices // 2 + matrices // 128 * 2 + matrices // 256)
    assert values(found)["gpu_weight_bytes"] == 2 * plain + layers


@pytest.mark.parametrize(
    ("options", "layout", "gpus"),
    [
        ("--gpus 8", {"tp": 8}, 8),
        ("--gpus 16", {"tp": 8, "pp": 2}, 16),
        ("--gpus 8 --tp 4", {"tp": 4, "dp": 2}, 8),
        ("--gpus 16 --dp 2", {"tp": 8, "dp": 2}, 16),
        ("--gpus 8 --tp 2 --dp 2", {"tp": 2, "pp": 2, "dp": 2}, 8),
        ("--tp 2 --pp 2", {"tp": 2, "pp": 2}, 4),
        ("--gpus 7", {"pp": 7}, 7),
    ],
)
def test_layouts(capsys: Capture, options: str, layout: dict[str, int], gpus: int) -> None:
    found = document(capsys, "llama3-70b", "--gpu", "h100", *options.split(), *NONE)
    assert found["layout"] == {"tp": 1, "pp": 1, "ep": 1, "dp": 1} | layout
    assert found["gpus"] == gpus


@pytest.mark.parametrize(
    "line",
    [
        "llama3-70b",
        "llama3-70b --tp 2 --dp 2 --batch 64",
        "qwen3-32b -n 32000",
        "qwen3-32b --pp 2 -n 40k --batch 16",
        "deepseek-v3 --tp 8 --pp 2 -n 128k --batch 32",
        "deepseek-v3 --dp 8 --ep 8 --batch 64",
        "gpt-oss-120b -n 128k --batch 32",
    ],
)
def test_each_change_as_typed(capsys: Capture, line: str) -> None:
    """What the screen says to type makes it fit; the layout typed gives way to a new one."""
    name, *words = line.split()
    typed = dict(zip(words[::2], words[1::2], strict=True))
    found = document(capsys, name, "--gpu", "h100", *words, *NONE)
    assert not found["fits"]
    assert found["changes"]
    for change in found["changes"]:
        own = dict(typed)
        if change["option"] == "--gpus":
            own = {k: v for k, v in typed.items() if k not in ("--tp", "--pp", "--dp", "--ep")}
        own.pop({"--context": "-n"}.get(change["option"], ""), None)
        value, *rest = change["value"].split()
        own[change["option"]] = value
        own |= dict(zip(rest[::2], rest[1::2], strict=True))
        options = [word for pair in own.items() for word in pair]
        assert main(["fit", name, "--gpu", "h100", *options, *NONE, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["fits"], change


def test_kinds_are_what_words_name(capsys: Capture) -> None:
    text = out(capsys, "llama3-70b", "--gpu", "h100", "--kinds", "h100,mi300x")
    rows = [line.split()[:2] for line in text.splitlines()]
    assert ["mi300x-192gb", "1"] in rows
    assert ["h100-sxm-80gb", "3"] in rows
    found = document(capsys, "llama3-70b", "--gpu", "h100", "--kinds", "amd card")
    assert {kind["gpu"][:2] for kind in found["smallest"]} == {"mi"}
    assert document(capsys, "llama3-70b", "--gpu", "h100", *NONE)["smallest"] == []
    assert "unknown accelerator" in refused(capsys, *LLAMA, "--kinds", "nosuch")


def test_kinds_without_the_arithmetic_are_left_out(capsys: Capture) -> None:
    text = out(capsys, "llama3-8b", "--gpu", "h100", "--kinds", "t4,h100")
    assert "t4-16gb" not in text
    assert "1 kinds left out, without arithmetic for bf16" in text


def test_money_is_shown_where_there_is_a_price(capsys: Capture, tmp_path: Path) -> None:
    line = ("llama3-70b", "--gpu", "h100", "--gpus", "4", "--kinds", "h100")
    assert "$" not in out(capsys, *line)
    assert "$10.00  derived" in out(capsys, *line, "--price", "2.5")
    path = tmp_path / "my.yaml"
    path.write_text("extends: h100\nprice_per_hour: 2.49\n", encoding="utf-8")
    text = out(capsys, *line, "--hardware", str(path))
    assert text.count("$9.96") == 1
    found = document(capsys, *line, "--hardware", str(path))
    assert found["cost_per_hour"] == 4 * 2_490_000


@pytest.mark.parametrize(("tp", "gpus"), [(2, 4), (1, 1)])
def test_one_name_is_one_figure_in_every_command(capsys: Capture, tp: int, gpus: int) -> None:
    """What a sweep calls by the same name is the same integer, known in the same way."""
    sizes = ("--gpus", str(gpus), "--tp", str(tp), "--batch", "8", "--price", "2.49")
    line = ("llama3-8b", "--gpu", "h100", "-n", "4096", *sizes)
    found = document(capsys, *line, *NONE)
    shared = [name for name in found["figures"] if name in columns.known([])]
    assert {"weight_bytes", "gpu_weight_bytes", "gpu_kv_bytes", "gpu_free_bytes"} <= {*shared}
    assert {"largest_batch", "cost_per_hour", "gpu_bytes"} <= {*shared}
    assert main(["sweep", *line, "--columns", ",".join(shared), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    for name in shared:
        figure = found["figures"][name]
        assert figure["value"] == row[name], name
        assert figure["known"] == columns.how_known(name), name
    assert found["cost_per_hour"] == row["cost_per_hour"]
    assert main(["serve", *line[:3], *sizes, "--json"]) == 0
    served = json.loads(capsys.readouterr().out)
    assert served["price_per_hour_micro"] * gpus == found["cost_per_hour"]
    for name in served["figures"].keys() & columns.known([]).keys():
        assert served["figures"][name]["known"] == columns.how_known(name), name


def test_what_is_noted(capsys: Capture) -> None:
    said = notes(capsys, "llama3-8b", "--gpu", "h100", "-n", "100k", *NONE)
    assert said == "paramcalc: note: context = 102,400: beyond the model's own 8,192\n"
    said = notes(capsys, "llama3-8b", "--gpu", "m3-ultra-512gb", *NONE)
    assert "has no published rates: whether it multiplies bf16 is not checked" in said


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--tp 3", "tp = 3: must divide the 32 heads of attention.q; lower it"),
        ("--tp 1000000000", "tp = 1000000000: must divide the 32 heads"),
        ("--tp abc", "tp = abc: 'abc' is not a number"),
        ("--tp ٣", "tp = ٣: '٣' is not a number"),
        ("--pp 33", "pp = 33: there are 32 layers, and a stage needs one; lower it"),
        ("--pp 1e30", "pp = 1000000000000000000000000000000: there are 32 layers"),
        ("--ep 2", "ep = 2: the model has no experts; leave it out"),
        ("--gpus 67", "gpus = 67: no tp up to 8 and pp make one replica"),
        ("--gpus 1e30", "gpus = 1000000000000000000000000000000: no tp up to 8"),
        ("--gpus 8 --tp 3", "gpus = 8: tp 3 must divide it; change one of them"),
        ("--gpus 8 --tp 2 --pp 2 --dp 1", "gpus = 8: tp x pp x dp is 4; leave one of them out"),
        ("--gpus 0", "gpus = 0: must be at least 1; raise it"),
        ("--batch 0", "batch = 0: must be at least 1; raise it"),
        ("--batch 1.5", "batch = 1.5: '1.5' is not a whole number"),
        ("--context 0", "context = 0: must be at least 1; raise it"),
        ("--context 1e400", "context = 1e400: '1e400' is too large to be a size"),
        ("--context nan", "context = nan: 'nan' is not a number"),
        ("--utilization 0", "utilization = 0: must be above 0 and at most 1; as 0.9 or 90%"),
        ("--utilization 1.5", "utilization = 1.5: must be above 0"),
        ("--utilization nan", "utilization = nan: must be above 0"),
        ("--utilization 1e-999999999", "utilization = 1e-999999999: must be above 0"),
        ("--utilization 1e999999999", "utilization = 1e999999999: must be above 0"),
        ("--page 0", "page = 0: must be at least 1; raise it"),
        ("--reserve=-1", "reserve = -1: must be at least 0; raise it"),
        ("--max-seqs 0", "max_seqs = 0: must be at least 1; raise it"),
        ("--max-batched-tokens 0", "max_batched_tokens = 0: must be at least 1; raise it"),
        ("--dtype q9", "dtype = q9: unknown format"),
        ("--dtype=", "dtype = : unknown format"),
        ("--kv-dtype nf4", "kv_dtype = nf4: is a format of weights; take one of"),
        ("--gpu nosuch", "gpu = nosuch: unknown accelerator"),
        ("--gpu t4", "dtype = bf16: needs bf16, and the hardware has fp32, fp16, int8, int4"),
        ("--price nan", "price_per_hour = nan: must be dollars above 0"),
        ("--hardware nowhere.yaml", "nowhere.yaml: no such file or directory"),
        ("--json --csv", "--json and --csv: only one way of output; choose one"),
    ],
)
def test_bad_input_is_one_line(capsys: Capture, options: str, says: str) -> None:
    start = time.monotonic()
    assert refused(capsys, "llama3-8b", "--gpu", "h100", *options.split()).startswith(
        f"paramcalc: {says}"
    )
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--ep 8", "ep = 8: with etp = 1 must divide the GPUs of a stage, tp x dp x cp = 1"),
        ("--ep 3 --dp 3", "ep = 3: must divide the 128 experts of ffn.experts.*.gate; lower it"),
        ("--gpus 74", "gpus = 74: no tp up to 8 and pp"),
    ],
)
def test_layouts_of_experts_that_do_not_divide(capsys: Capture, options: str, says: str) -> None:
    assert says in refused(capsys, "gpt-oss-120b", "--gpu", "h100", *options.split())


def test_a_broken_file_of_hardware(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("a: [\n", encoding="utf-8")
    assert "broken YAML" in refused(capsys, *LLAMA, "--hardware", str(path))
    assert "is a directory" in refused(capsys, *LLAMA, "--hardware", str(tmp_path))


@pytest.mark.parametrize(
    "options",
    [
        "--context 1e30 --batch 1e30",
        "--page 1e30",
        "--max-seqs 1e30 --max-batched-tokens 1e30",
        "--reserve 1e30",
        "--dp 1000000000",
        "--utilization 0.00000001",
    ],
)
def test_absurd_sizes_are_answered(capsys: Capture, options: str) -> None:
    assert main(["fit", *LLAMA, *options.split(), *NONE]) == 0
    assert "Memory of each GPU" in capsys.readouterr().out


def test_what_could_take_long(capsys: Capture, tmp_path: Path) -> None:
    """The largest models on the smallest cards; a model of the most layers there may be."""
    path = tmp_path / "deep.yaml"
    path.write_text("d_model: 64\nn_layers: 100000\nn_heads: 1\nvocab_size: 64\n", encoding="utf-8")
    start = time.monotonic()
    for line in (
        "kimi-k2 --gpu t4 --dtype fp16",
        "deepseek-v3 --gpu v100-sxm-16gb --dtype fp16",
        f"{path} --gpu h100",
        f"{path} --gpu h100 --pp 5000",
    ):
        assert main(["fit", *line.split()]) == 0
        capsys.readouterr()
    assert time.monotonic() - start < 20
    assert "llama.cpp reads at most 512 layers" in refused(
        capsys, str(path), "--gpu", "h100", "--dtype", "q4_k_m"
    )
