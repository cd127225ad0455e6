"""The answer of ``paramcalc fit``: its figures, its verdict, the kinds of GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from paramcalc.deploy import columns, fitting, hardware, training, training_figures
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.figures import GIB, Figure
from paramcalc.deploy.fit import Deployment, Load
from paramcalc.deploy.fitting import Fit
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.hardware_file import priced
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training_run import Run
from paramcalc.views import figures_view
from tests.conftest import preset

H100 = hardware.find("h100")
LLAMA = Fit(Deployment(preset("llama3.1-8b"), Layout()), H100, Load(16_000, 4))


def figures(fit: Fit) -> dict[str, Figure]:
    return {figure.key: figure for group in fitting.groups(fit) for figure in group.figures}


def test_the_figures_by_hand() -> None:
    """8,030,261,248 weights of 16 bits; 131,072 bytes of cache a token; 39 bytes a logit."""
    found = {key: figure.value for key, figure in figures(LLAMA).items()}
    budget = int(H100.visible_bytes * 9 // 10)
    used = 2 * 8_030_261_248 + 1024 * 128_256 * 39 + round(0.14 * GIB)
    room = budget - used
    assert found["params_per_gpu"] == 8_030_261_248
    assert found["gpu_weight_bytes"] == found["weight_bytes"] == 2 * 8_030_261_248
    assert found["budget_bytes"] == budget
    assert found["kv_room_bytes"] == room
    assert found["gpu_kv_bytes_ideal"] == found["gpu_kv_bytes"] == 4 * 16_000 * 131_072
    assert found["gpu_free_bytes"] == room - 4 * 16_000 * 131_072
    assert found["largest_batch"] == room // (16_000 * 131_072)
    assert found["concurrency"] == 100 * room // (16_000 * 131_072)
    assert found["largest_context"] == room // (4 * 16 * 131_072) * 16
    assert LLAMA.fits
    assert LLAMA.changes() == []


def test_how_each_figure_is_known() -> None:
    known = {key: figure.known for key, figure in figures(LLAMA).items()}
    assert known["params_per_gpu"] == "exact"
    assert known["gpu_weight_bytes"] == known["gpu_kv_bytes"] == "derived"
    assert known["gpu_bytes"] == known["reserve_bytes"] == "measured"
    assert known["workspace_bytes"] == known["budget_bytes"] == "assumed"
    # what rests on the engine's share, workspace and reserve, as the columns of a sweep say
    for key in ("kv_room_bytes", "gpu_free_bytes", "largest_context", "largest_batch"):
        assert known[key] == columns.COLUMNS.get(key, columns.COLUMNS["largest_batch"]).known
        assert known[key] == "assumed"
    own = LLAMA._replace(deployment=Deployment(preset("gpt2"), Layout(), engine=Engine(reserve=7)))
    reserve = figures(own)["reserve_bytes"]
    assert (reserve.value, reserve.known, reserve.why) == (7, "assumed", "--reserve")


def test_padding_is_a_figure_of_its_own() -> None:
    """gpt-oss 20B: 3 matrices of 24 x 32 experts, 192 more columns of 2,880, 4.25 bits each."""
    found = figures(Fit(Deployment(preset("gpt-oss-20b"), Layout(), "mxfp4"), H100, Load(16_000)))
    padding = found["gpu_weight_bytes_padding"]
    assert padding.value == 24 * 32 * 3 * 192 * 2880 * 17 // 32
    assert padding.known == "measured"
    assert "gpu_weight_bytes_padding" not in figures(LLAMA)


def test_the_gap_of_what_does_not_fit() -> None:
    short = LLAMA._replace(load=Load(120_000, 4))
    assert not short.fits
    gap = figures(short)["gpu_free_bytes"]
    assert gap.label == "missing"
    assert gap.value == short.gap < 0
    assert str(figures_view.shown(gap)).startswith(f"{-short.gap / 10**9:.2f} GB")
    assert short.changes()[0].option == "--kv-dtype"


def test_the_busiest_stage_is_named_from_one() -> None:
    fit = Fit(Deployment(preset("deepseek-v3"), Layout(tp=8, pp=2), "fp8-block"), H100, Load(4096))
    weights, memory, _ = fitting.groups(fit)
    assert weights.title == "Weights on a GPU of stage 2 of 2"
    assert memory.title == "Memory of a GPU of stage 2 of 2"
    assert fitting.groups(LLAMA)[0].title == "Weights on each GPU"


def test_no_limit_is_no_number() -> None:
    found = figures(Fit(Deployment(preset("bert-base"), Layout()), H100, Load(512)))
    assert (found["largest_context"].value, found["largest_context"].why) == (
        512,
        "table of positions",
    )
    for key in ("largest_batch", "concurrency", "cached_tokens"):
        assert found[key].value is None


def test_money_only_where_there_is_a_price() -> None:
    assert "cost_per_hour" not in figures(LLAMA)
    assert LLAMA.price is None
    four = Deployment(preset("llama3.1-8b"), Layout(tp=4))
    fit = Fit(four, priced(H100, "2.49"), Load(16_000))
    hour = figures(fit)["cost_per_hour"]
    assert (hour.value, hour.known) == (4 * 2_490_000, columns.COLUMNS["cost_per_hour"].known)
    kinds = fitting.smallest(fit, [priced(H100, "2.49"), hardware.find("a100")])
    assert [kind.price for kind in kinds if kind.gpu.name == H100.name] == [2_490_000]
    assert [kind.price for kind in kinds if kind.gpu.name != H100.name] == [None]


def test_the_smallest_of_each_kind() -> None:
    names = ["t4-16gb", "h100", "mi300x", "rtx-3090-24gb", "m3-ultra-512gb"]
    kinds = [hardware.find(name) for name in names]
    fit = Fit(Deployment(preset("llama3-70b"), Layout()), H100, Load(8192))
    found = fitting.smallest(fit, kinds)
    # a T4 has no bf16; Apple publishes no rates and is not judged
    assert [(kind.gpu.name, kind.gpus, kind.layout) for kind in found] == [
        ("mi300x-192gb", 1, "one GPU"),
        ("m3-ultra-512gb", 1, "one GPU"),
        ("h100-sxm-80gb", 3, "pp 3"),
        ("rtx-3090-24gb", 7, "pp 7"),
    ]
    assert all(kind.gap is not None and kind.gap >= 0 for kind in found)
    tiny = H100._replace(name="tiny", visible_bytes=GIB)
    assert fitting.smallest(fit, [tiny]) == [fitting.Smallest(tiny, None, "", None, None)]


@pytest.mark.parametrize(
    ("name", "dtype", "can"),
    [
        ("t4", "bf16", False),
        ("t4", "int8", True),
        ("h100", "mxfp4", True),
        ("v100-sxm-32gb", "fp8", True),  # unpacked to fp16
        ("m3-ultra-512gb", "bf16", True),
    ],
)
def test_arithmetic(name: str, dtype: str, can: bool) -> None:
    assert fitting.serves(hardware.find(name), preset("llama3-8b").format(dtype)) is can


OWN = """
sources: {{sheet: {{title: a datasheet, date: "2026-03-01"}}}}
accelerators:
- {{name: h100-ours, vendor: Me, unit: card, memory: 80 GiB, bandwidth: 3 TB/s,
   peaks: {{bf16: 900T}}{}}}
"""


@pytest.mark.parametrize(
    ("source", "label"),
    [("", ("assumed", "your file")), (", source: sheet", ("measured", "a datasheet"))],
)
def test_memory_is_known_as_its_entry_says(
    tmp_path: Path, source: str, label: tuple[str, str]
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.format(source))
    gpu = hardware.find("h100-ours", [path])
    found = figures(LLAMA._replace(gpu=gpu))
    assert (found["gpu_bytes"].known, found["gpu_bytes"].why) == label
    assert found["reserve_bytes"].known == label[0]  # measured on an H100 that is one
    assert gpu.known_peak("bf16") == label[0]
    run = {f.key: f for g in training_figures.groups(_trained(gpu)) for f in g.figures}
    assert (run["gpu_bytes"].known, run["gpu_bytes"].why) == label
    peak = run["peak_flops"]
    assert (peak.known, peak.why) == (label[0], f"{label[1]}, bf16")


def _trained(gpu: Accelerator) -> Run:
    return Run(training.Plan(preset("gpt2"), Layout(), Recipe()), gpu, 10**9)


def test_what_a_file_changes_is_assumed_and_the_rest_is_not(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("extends: h100\nname: ours\nmemory: 96 GiB\n")
    own = hardware.find("ours", [path])
    assert own.known("visible") == own.known("memory") == "assumed"
    assert own.known_peak("bf16") == own.known("bandwidth") == "measured"
    assert own.known("price_per_hour") == "derived"  # not there
    path.write_text("extends: h100\nprice_per_hour: 2.49\n")
    assert hardware.find("h100", [path]).known("visible") == "measured"
