"""The explanation: its text, read back as arithmetic, gives its integer, which is the count."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import paramcalc
from paramcalc.cli.main import main
from paramcalc.quantities import flops
from paramcalc.sources import presets
from paramcalc.symbolic import legend
from paramcalc.views.explain import explain
from tests.conftest import preset
from tests.strategies import specs

POWERS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def evaluated(text: str) -> float | int:
    """Read a formula in numbers as plain arithmetic, independently of how it was made."""
    code = text.replace(",", "") if "min" not in text and "max" not in text else text
    code = re.sub(r"(?<=\d),(?=\d{3})", "", code)
    code = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda m: "**" + m.group(1).translate(POWERS), code)
    space: dict[str, Any] = {"floor": math.floor, "ceil": math.ceil, "min": min, "max": max}
    code = (
        code.replace("·", "*").replace("/", "//") if "ceil" not in code else code.replace("·", "*")
    )
    return eval(code, {"__builtins__": {}}, space)


def check(model: paramcalc.Model, n: int) -> None:
    steps = {step.name: step for step in explain(model, n)}
    for step in steps.values():
        assert evaluated(step.numbers) == step.value, step
    assert steps["total"].value == model.params.total
    assert steps.get("active", steps["total"]).value == model.params.active
    assert steps["matmuls, one token"].value == model.flops.matmul_per_token
    assert steps["attention, token n"].value == model.flops.attention_per_token(n)
    assert steps["forward, token n"].value == model.flops.per_token(n)
    assert steps["forward, n tokens"].value == model.flops.prefill(n)
    assert steps["training, n tokens"].value == model.flops.training(n)
    assert steps["weights in BF16"].value == model.memory.weight_bytes("bf16")
    if f"KV cache in BF16, {n:,} tokens" in steps:
        assert steps[f"KV cache in BF16, {n:,} tokens"].value == model.memory.kv_bytes(n)
        assert steps["KV cache in BF16, first token"].value == model.memory.kv_bytes_per_token()
    if "attention = matmuls at n" in steps:
        assert steps["attention = matmuls at n"].value == flops.crossover(model.ledger)


@pytest.mark.parametrize("name", presets.names())
def test_presets(name: str) -> None:
    check(preset(name), preset(name).context)


@settings(deadline=None)
@given(specs())
def test_random_shapes(fields: dict[str, Any]) -> None:
    check(paramcalc.load(fields), fields["context"])


def test_the_formulas_a_student_expects() -> None:
    steps = {step.name: step.symbols for step in explain(preset("llama3-8b"), 8192)}
    assert steps["feed-forward, one layer"] == "3·d·d_ff"
    assert steps["attention, one layer"] == "2·H·d_h·d + 2·H_kv·d_h·d"
    assert steps["attention, token n"] == "A = 4·L·n·H·d_h"
    assert steps["KV cache in BF16, first token"] == "4·L·H_kv·d_h"
    steps = {step.name: step.symbols for step in explain(preset("mixtral-8x7b"), 64)}
    assert steps["feed-forward, one layer"] == "3·E·d·d_ff"
    assert steps["router, one layer"] == "E·d"


def test_each_symbol_has_one_value() -> None:
    found = legend(preset("deepseek-v3").spec, 64)
    assert len({short for short, _, _ in found}) == len(found)
    assert ("r_kv", "kv_lora_rank", 512) in found


CARD = {"d_model": 512, "n_layers": 2, "n_heads": 8, "vocab_size": 100, "context": 64}


@pytest.mark.parametrize(
    "fields",
    [
        {"n_kv_heads": 2, "layers": [{"repeat": 1, "n_heads": 4}, {}]},
        {"n_kv_heads": 4, "encoder": {"n_layers": 2, "n_heads": 16}},
        {"layers": [{"repeat": 1, "gated_ffn": True}, {}]},
        {"encoder": {"n_layers": 2, "gated_ffn": True}},
        {
            "mla": {
                "kv_lora_rank": 8,
                "qk_nope_head_dim": 4,
                "qk_rope_head_dim": 4,
                "v_head_dim": 4,
            },
            "encoder": {"n_layers": 2},
        },
    ],
)
def test_defaults_that_an_inner_section_changes(fields: dict[str, Any]) -> None:
    check(paramcalc.load({**CARD, **fields}), 64)


@pytest.mark.parametrize("model_type", ["mamba", "mamba2", "gemma3", "qwen3_5", "whisper"])
def test_what_no_field_spells_is_the_sum_of_its_shapes(model_type: str) -> None:
    model = paramcalc.load({"model_type": model_type})
    steps = explain(model, 64)
    for step in steps:
        assert evaluated(step.numbers) == step.value, step
    for text in (text for step in steps for text in (step.symbols, step.numbers)):
        assert not re.search(r"\d{4}", text), text


def test_mamba_s_mixer_by_hand() -> None:
    model = paramcalc.load({"model_type": "mamba", "hidden_size": 2560, "num_hidden_layers": 64})
    step = next(s for s in explain(model, 64) if s.name == "mixer, one layer")
    # arXiv:2312.00752, 3.4: twice the width in, a convolution of 4, steps of rank d/16, 16 states
    d, inner, rank, state = 2560, 5120, 160, 16
    into, out, conv = 2 * inner * d, inner * d, inner * 4 + inner
    steps = (rank + 2 * state) * inner + inner * rank + inner
    assert step.value == into + out + conv + steps + inner * state + inner
    assert step.symbols.startswith("10,240·2,560 + 5,120·4")


def test_the_legend_has_no_symbol_that_no_formula_has(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "mamba.json"
    path.write_text('{"model_type": "mamba"}', encoding="utf-8")
    assert main(["explain", str(path)]) == 0
    out = capsys.readouterr().out
    assert "d = d_model = 768" in out
    assert "d_ff" not in out
