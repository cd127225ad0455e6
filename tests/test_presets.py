"""Every preset against the framework's counts, its published figure, and its own names."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.sources import presets
from tests.conftest import golden, preset

NAMES = presets.names()

# published minus counted, where a release prints another number than its parameters, and why
DIFFERENCES = {
    "llama2-7b": 2_048,  # rotary inverse frequencies: 32 layers x 64
    "llama2-13b": 2_560,  # 40 x 64
    "llama2-70b": 5_120,  # 80 x 64
    "qwen1.5-0.5b": 151_936 * 1_024,  # the tied head stored a second time
    "qwen3-0.6b": 151_936 * 1_024,
    "qwen3-1.7b": 151_936 * 2_048,
    "falcon-7b": 65_024 * 4_544,
    "falcon-180b": 65_024 * 14_848,
    # a SigLIP tower of 416,866,032 and a projector of 1152 d + 1152
    "gemma3-4b": 416_866_032 + 1_152 * 2_560 + 1_152,
    "gemma3-12b": 416_866_032 + 1_152 * 3_840 + 1_152,
    "gemma3-27b": 416_866_032 + 1_152 * 5_376 + 1_152,
    "llama4-scout": 871_932_416,  # vision tower and projector
    "llama4-maverick": 871_932_416,
    "moonlight-16b-a3b": 26 * 64 + 27 * 64,  # router corrections, rotary inverse frequencies
}
ROUNDED = {"k": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
# printed figures that leave something out or round otherwise; the preset's note says what
LOOSE = {
    "transformer-base": 0.031,
    "transformer-big": 0.006,
    "attention-only-1l": None,
    "attention-only-2l": None,
    "switch-base-128": 0.06,
    "albert-base": 0.07,
    "falcon-40b": 0.04,
    "granite3.0-2b": 0.04,
    "glm4.5": 0.007,
    "minimax-m2": 0.006,
}


def test_there_are_enough() -> None:
    assert len(NAMES) >= 70


@pytest.mark.parametrize(
    "name",
    [
        "llama3-8b",
        "llama3.1-405b",
        "llama4-scout",
        "gpt2",
        "gpt2-xl",
        "gpt3-175b",
        "qwen2-0.5b",
        "qwen3-30b-a3b",
        "gemma2-9b",
        "mixtral-8x7b",
        "deepseek-v3",
        "gpt-oss-20b",
        "transformer-base",
        "bert-base",
        "t5-small",
        "switch-base-128",
        "palm-540b",
        "attention-only-1l",
        "attention-only-2l",
        "transformer-big",
        "gpt1",
        "gpt2-medium",
        "gpt2-large",
        "bert-large",
        "t5-11b",
        "llama1-7b",
        "llama2-7b",
        "llama3.2-1b",
        "llama4-maverick",
        "mistral-7b",
        "mixtral-8x22b",
        "qwen2.5-7b",
        "qwen3-8b",
        "gemma-2b",
        "gemma3-27b",
        "deepseek-v2",
        "gpt-oss-120b",
    ],
)
def test_expected_names(name: str) -> None:
    assert name in NAMES


@pytest.mark.parametrize("row", golden(), ids=lambda row: row["preset"])
def test_parameters_equal_the_framework(row: dict[str, Any]) -> None:
    assert preset(row["preset"]).params.total == row["params"]


@pytest.mark.parametrize(
    ("row", "n"),
    [(row, n) for row in golden() for n in row["forward_flops"]],
    ids=lambda value: value if isinstance(value, str) else value["preset"],
)
def test_forward_flops_equal_the_framework(row: dict[str, Any], n: str) -> None:
    model = preset(row["preset"])
    if row["model_type"] == "llama4_text":  # that class runs every expert for every token
        model = model.with_(top_k=model.spec.n_experts)
    assert model.flops.prefill(int(n), all_pairs=True) == row["forward_flops"][n]


@pytest.mark.parametrize("name", NAMES)
def test_source_and_published_figure(name: str) -> None:
    about = preset(name).spec.about
    assert about is not None
    assert about.source
    assert about.published is not None
    assert about.where
    total = preset(name).params.total
    if isinstance(about.published, int):
        assert about.published - total == DIFFERENCES.get(name, 0)
        assert (about.published == total) or about.note
        return
    figure = about.published.rstrip("kMBT")
    printed = float(figure) * ROUNDED[about.published[-1]]
    # rounded or cut: within one of the last printed digit
    slack = LOOSE.get(name, 10 ** -len(figure.partition(".")[2]) / float(figure))
    if slack is None:
        assert about.note
    else:
        assert abs(total - printed) / printed <= slack


@pytest.mark.parametrize("name", NAMES)
def test_hub_ids_and_loose_spellings_find_it(name: str) -> None:
    about = preset(name).spec.about
    assert about is not None
    for hub in about.hub:
        assert presets.find(hub).path.stem == name
        assert presets.find(hub.upper()).path.stem == name
    assert presets.find(name.upper()).path.stem == name
    assert presets.find(name.replace("-", "_")).path.stem == name


def test_spellings_do_not_collide() -> None:
    keys = [presets.key(name) for name in NAMES]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("meta-llama/Meta-Llama-3-8B", "llama3-8b"),
        ("llama-3-8b", "llama3-8b"),
        ("LLaMA3-8B", "llama3-8b"),
        ("Llama-3.1-8B-Instruct", "llama3.1-8b"),
        ("Llama-2-7b-chat-hf", "llama2-7b"),
        ("google/gemma-2-9b-it", "gemma2-9b"),
        ("gemma-2-2b", "gemma2-2b"),
        ("Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("deepseek_v3", "deepseek-v3"),
        ("phi-4", "phi4"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
        ("bert-base-uncased", "bert-base"),
    ],
)
def test_common_spellings(spelling: str, name: str) -> None:
    assert paramcalc.load(spelling).name == name


def test_a_simple_model_is_eight_lines() -> None:
    text = (presets.folder() / "llama3-8b.yaml").read_text(encoding="utf-8")
    assert len(text.partition("about:")[0].splitlines()) == 8


def test_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(paramcalc.UnknownPreset, match="llama3-8b"):
        paramcalc.load("lama3-8b")


def test_a_hub_id_with_another_context_gets_it() -> None:
    assert paramcalc.load("Qwen/Qwen3-4B").spec.context == 40_960
    assert paramcalc.load("Qwen/Qwen3-4B-Instruct-2507").spec.context == 262_144
    assert paramcalc.load("qwen3-4b-instruct-2507").spec.context == 262_144
    assert paramcalc.load("qwen3-4b").spec.context == 40_960


def test_presets_stand_in_the_order_of_family_version_and_size() -> None:
    order = {name: i for i, name in enumerate(NAMES)}
    for names in (
        ["gemma-2b", "gemma-7b", "gemma2-2b", "gemma2-9b", "gemma2-27b", "gemma3-1b"],
        ["bloom-560m", "bloom-1b7", "bloom-3b", "bloom-176b"],
        ["qwen1.5-0.5b", "qwen1.5-110b", "qwen1.5-moe-a2.7b", "qwen2-0.5b"],
        ["pythia-14m", "pythia-410m", "pythia-1b", "pythia-12b"],
    ):
        assert [order[n] for n in names] == sorted(order[n] for n in names)
