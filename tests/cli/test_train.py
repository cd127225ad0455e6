"""``paramcalc train`` as a person uses it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]
LLAMA = ("train", "llama3-8b", "--gpu", "h100")
RUN = (*LLAMA, "--tokens", "15T", "--gpus", "1024", "--mfu", "0.4", "--seq", "8k")
N = 8_030_261_248
GOLDEN = Path(__file__).parent.parent / "golden"


def out(capsys: Capture, *arguments: str) -> str:
    assert main(list(arguments)) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def values(document: dict[str, Any]) -> dict[str, Any]:
    return {key: figure["value"] for key, figure in document["figures"].items()}


def test_the_screen(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = out(capsys, *RUN, "--price", "2.50", "--chinchilla")
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.startswith("llama3-8b  training fits on 1,024 × h100-sxm-80gb")
    for part in ("parameters", "8,030,261,248", "GPU-hours", "$2.50 a GPU-hour", "700 W a GPU"):
        assert part in text
    assert f"{20 * N:,}" in text  # Chinchilla: 20 tokens a parameter
    pipeline = out(capsys, *LLAMA, "--tp", "2", "--pp", "4", "--dp", "2", "--global-batch", "32")
    assert all(len(line) <= 80 for line in pipeline.splitlines())
    assert "18.8%" in pipeline  # 3 / 16


def test_json_csv_and_markdown_hold_the_same_integers(capsys: Capture) -> None:
    document = json.loads(out(capsys, *RUN, "--json"))
    found = values(document)
    assert found["params"] == found["trained_params"] == N
    assert found["tokens"] == 15 * 10**12
    assert found["gpu_weight_bytes"] == 2 * N
    # steps of 1,024 x 8,192 tokens: 1,788,139.3 of them, so one more than the whole ones
    assert found["processed_tokens"] == 1_788_140 * 1024 * 8192
    assert found["flops_6n"] == 6 * N * found["processed_tokens"]
    assert found["checkpoint_bytes"] == 14 * N
    assert found["cost"] is None
    assert document["layout"] == {"tp": 1, "pp": 1, "ep": 1, "dp": 1024, "cp": 1}
    flat = list(csv.DictReader(io.StringIO(out(capsys, *RUN, "--csv"))))
    assert {r["key"]: int(r["value"]) if r["value"] else None for r in flat} == found
    assert {row["known"] for row in flat} == {"exact", "derived", "measured", "assumed"}
    text = out(capsys, *RUN, "--markdown")
    assert str(found["need_bytes"]) in text
    assert str(found["gpu_weight_bytes"]) in text


def test_every_stage_is_in_json(capsys: Capture) -> None:
    document = json.loads(out(capsys, *LLAMA, "--pp", "4", "--seq", "2k", "--json"))
    stages = document["stages"]
    assert [stage["layers"] for stage in stages] == [8, 8, 8, 8]
    assert [stage["in_flight"] for stage in stages] == [4, 3, 2, 1]
    assert sum(stage["params"] for stage in stages) == N
    most = max(stages, key=lambda stage: stage["need_bytes"])
    assert values(document)["need_bytes"] == most["need_bytes"]


def test_qlora(capsys: Capture) -> None:
    """The adapters that PEFT prints for rank 16 on every linear layer."""
    arguments = (*LLAMA, "--lora-rank", "16", "--base-dtype", "nf4-dq", "--seq", "2k", "--json")
    document = json.loads(out(capsys, *arguments))
    assert values(document)["trained_params"] == 41_943_040
    assert values(document)["gpu_weight_bytes"] == 4 * 41_943_040
    assert document["recipe"]["lora_targets"] == ["all-linear"]
    assert document["figures"]["model_flops"]["known"] == "derived"
    assert "flops_6n" not in document["figures"]


def test_the_speed_gives_the_utilization(capsys: Capture) -> None:
    arguments = (*LLAMA, "--tokens", "1T", "--seq", "8k", "--json")
    by_speed = json.loads(out(capsys, *arguments, "--tokens-per-second", "7688"))
    by_mfu = json.loads(out(capsys, *arguments, "--mfu", "40%"))
    assert values(by_speed)["mfu"] == pytest.approx(400_000, abs=100)
    assert values(by_mfu)["tokens_per_second"] == 7688
    timed = ["tokens_per_second", "step_time", "time", "gpu_hours", "energy", "cost", "hfu", "mfu"]
    assert {by_speed["figures"][key]["known"] for key in timed} == {"derived"}
    assert {by_mfu["figures"][key]["known"] for key in timed} == {"assumed"}
    peak = by_mfu["figures"]["peak_flops"]
    assert (peak["known"], peak["by"]) == ("measured", "datasheet, bf16")


def test_batches_in_tokens(capsys: Capture) -> None:
    both = [
        json.loads(out(capsys, *LLAMA, "--dp", "4", "--seq", "4k", *batch, "--json"))
        for batch in (("--global-batch-tokens", "64k"), ("--global-batch", "16"))
    ]
    assert both[0] == both[1]
    assert both[0]["recipe"]["microbatches"] == 4


def test_what_would_make_it_fit(capsys: Capture) -> None:
    document = json.loads(out(capsys, *LLAMA, "--dp", "8", "--seq", "8k", "--zero", "0", "--json"))
    assert not document["fits"]
    assert document["gap_bytes"] < 0
    assert document["changes"][0]["option"] == "--zero"
    text = out(capsys, *LLAMA, "--dp", "8", "--seq", "8k", "--zero", "0")
    assert "Any one of these makes it fit" in text
    assert "two, four, ... times the GPUs tried" in text
    alone = out(capsys, "train", "llama3.1-405b", "--gpu", "t4", "--compute", "fp16")
    assert "nothing" in alone


def test_prices_of_ones_own(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("- {name: mine, like: h100, price_per_hour: 2}\n", encoding="utf-8")
    text = out(capsys, *RUN, "--price", "3", "--json")
    found = values(json.loads(text))
    assert found["cost"] == pytest.approx(found["gpu_hours"] / 100 * 3_000_000, rel=1e-6)


def test_notes(capsys: Capture) -> None:
    assert main([*LLAMA, "--seq", "16k", "--gpus", "8"]) == 0
    assert "note: seq = 16,384: beyond the model's own 8,192" in capsys.readouterr().err
    assert main([*LLAMA, "--seq", "8k", "--pp", "2", "--dp", "4", "--zero", "fsdp"]) == 0
    assert "note: zero = 3: with pipeline stages" in capsys.readouterr().err


BAD = {
    "--tp 3": "tp = 3: must divide the 32 heads",
    "--pp 33": "pp = 33: there are 32 layers",
    "--ep 2 --dp 2": "ep = 2: the model has no experts",
    "--dp 16 --micro-batch 8 --global-batch 1000": "global_batch = 1,000: must be a multiple",
    "--seq 3000 --global-batch-tokens 1M": "global_batch_tokens = 1,048,576: must be a multiple",
    "--global-batch 8 --global-batch-tokens 1M": "global_batch and global_batch_tokens: state one",
    "--compute fp4": "compute = fp4: h100-sxm-80gb has no such peak",
    "--mfu 1.2": "mfu = 1.2: must be above 0",
    "--mfu 0.4 --tokens-per-second 9": "mfu and tokens_per_second: each gives the other",
    "--tokens 0": "tokens = 0: must be at least 1",
    "--tokens 1e30": "tokens = 1,000,000,000,000,000,000,000,000,000,000: must be at most",
    "--reserve=-100G": "reserve = -100G: must be at least 0",
    "--micro-batch 1T": "micro_batch = 1,000,000,000,000: must be at most 1,000,000",
    "--lora-targets q": "lora_targets = q: only of adapters; add --lora-rank",
    "--base-dtype bf16": "base_dtype = bf16: only under adapters",
    "--lora-rank 8 --dtype fp16": "dtype = fp16: adapters are fp32",
    "--lora-rank 8 --lora-targets ,": "lora_targets = none: must be a list",
    "--lora-rank 100k": "lora_rank = 100,000: must be at most the smaller side of attention.k, 1,0",
    "--lora-rank 8 --master": "master = true: fp32 adapters need no fp32 copy",
    "--zero 0 --shard-over 1": "shard_over = 1: ZeRO 0 divides nothing",
    "--dp 2 --etp 2": "etp = 2: the model has no experts",
    "--kept --chinchilla": "--kept and --chinchilla: only --json shows both",
    "--compute int8": "compute = int8: integers carry no gradients",
    "--grad-dtype=": "grad_dtype = : must be one of bf16, fp16, fp32",
    "--mfu 1 --recompute full": "mfu = 1: full recomputation makes",
    "--mfu 4e-1": "mfu = 4e-1: must be above 0",
    "--mfu 0.4_1": "mfu = 0.4_1: must be above 0",
    "--pue ٣": "pue = ٣: must be a number from 1 to 100",
    "--pue 1_0": "pue = 1_0: must be a number from 1 to 100",
    "--price 1_000": "price_per_hour = 1_000: must be dollars above 0",
    "--price 10,00": "price_per_hour = 10,00: must be dollars above 0",
    "--seq 0": "seq = 0: must be at least 1",
    "--seq long": "seq = long: 'long' is not a number",
    "--lora-rank 8 --lora-targets q,zz": "lora_targets = zz: no such matrix in this model; take q,",
    "--base-dtype nf4": "base_dtype = nf4: only under adapters",
    "--zero 4": "zero = 4: must be 0, 1, 2, 3 or fsdp",
    "--optimizer adamx": "optimizer = adamx: unknown (did you mean adamw?)",
    "--recompute some": "recompute = some: must be one of none, selective, full",
    "--attention fast": "attention = fast: must be one of eager, sdpa, flash",
    "--schedule zb": "schedule = zb: must be one of gpipe, 1f1b, interleaved",
    "--virtual 2": "virtual = 2: only with --schedule interleaved",
    "--pp 4 --schedule interleaved --virtual 3": "virtual = 3: pp x virtual = 12 must divide",
    "--gpus 6 --tp 4": "gpus = 6: tp 4 must divide it",
    "--gpus 8 --tp 2 --dp 2": "gpus = 8: tp 2 x dp 2 is 4",
    "--pue 0.5": "pue = 0.5: must be a number from 1 to 100",
    "--pue x": "pue = x: must be a number from 1 to 100",
    "--price -1": "price_per_hour = -1: must be dollars above 0",
    "--json --csv": "--json and --csv: only one way",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_input_is_one_line_and_exit_2(capsys: Capture, line: str) -> None:
    assert main([*LLAMA, *line.split(" ")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"paramcalc: {BAD[line]}")
    assert captured.err.count("\n") == 1


def test_stages_are_counted_from_one(capsys: Capture) -> None:
    arguments = (*LLAMA, "--pp", "4", "--seq", "2k")
    document = json.loads(out(capsys, *arguments, "--json"))
    assert [stage["stage"] for stage in document["stages"]] == [1, 2, 3, 4]
    most = max(document["stages"], key=lambda stage: stage["need_bytes"])
    assert f"Memory of a GPU of stage {most['stage']} of 4" in out(capsys, *arguments)


def test_money_and_energy_of_a_short_run(capsys: Capture) -> None:
    """A millionth of a dollar an hour for 1.07 s, rounded up to the millionth; 700 W are 745 J."""
    arguments = ("train", "llama3-8b", "--gpu", "h100", "--tokens", "1", "--price", "0.000001")
    text = " ".join(out(capsys, *arguments).split())
    assert "energy <1 Wh assumed" in text
    assert "cost $0.000001 assumed $0.000001 a GPU-hour" in text
    assert "one step 1.07 s assumed 8,192 tokens the run 1.07 s" in text
    document = json.loads(out(capsys, *arguments, "--json"))
    assert (document["energy_joules"], values(document)["energy"]) == (745, 0)
    assert values(document)["cost"] == 1


def test_a_price_with_commas(capsys: Capture) -> None:
    found = [
        values(json.loads(out(capsys, *RUN, "--price", price, "--json")))["cost"]
        for price in ("1,000", "1000")
    ]
    assert found[0] == found[1]


def test_the_longest_run_has_every_digit(capsys: Capture) -> None:
    """10^18 tokens at 7,688 a second: 130,073,000,000,000 s or 1,505,475,000 days."""
    arguments = (*LLAMA, "--tokens", "1,000,000,000,000,000,000", "--seq", "8k")
    document = json.loads(out(capsys, *arguments, "--json"))
    microseconds = values(document)["time"]
    hundredths = (2 * microseconds * 100 + 86_400_000_000) // (2 * 86_400_000_000)
    text = out(capsys, *arguments)
    assert f"{hundredths // 100:,}.{hundredths % 100:02d} days" in text
    assert "e+" not in text


WIDE = ("led", "mobilebert", "inkling2_loop_text")


@pytest.mark.parametrize("model_type", WIDE)
@pytest.mark.parametrize("extra", [(), ("--recompute", "selective"), ("--attention", "eager")])
def test_kept_tensors_with_long_names_fit_a_terminal(
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    model_type: str,
    extra: tuple[str, ...],
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = (GOLDEN / "types.jsonl").read_text(encoding="utf-8").splitlines()
    fact = next(f for f in map(json.loads, lines) if f["model_type"] == model_type)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fact["config"] | {"model_type": model_type}), encoding="utf-8")
    assert main(["train", str(path), "--gpu", "h100", "--kept", *extra]) == 0
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    assert "input" in text


def test_a_hundred_thousand_layers_take_no_time(capsys: Capture, tmp_path: Path) -> None:
    """Over 1,024 GPUs that cannot hold them; each parameter has 16 bytes of states."""
    path = tmp_path / "deep.yaml"
    card = "d_model: 1024\nn_layers: 100000\nn_heads: 16\nd_ff: 4096\nvocab_size: 32000\n"
    path.write_text(card + "context: 4096\n", encoding="utf-8")
    start = process_time()
    document = json.loads(
        out(capsys, "train", str(path), "--gpu", "h100", "--gpus", "1024", "--json")
    )
    assert process_time() - start < 2
    assert sum(stage["layers"] for stage in document["stages"]) == 100_000
