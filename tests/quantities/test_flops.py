"""FLOPs against sums written out token by token, and the crossover against walking to it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.build import ledger_of, plan
from paramcalc.quantities import flops
from paramcalc.symbolic import symbolic
from paramcalc.symbols import lift
from tests.conftest import preset
from tests.strategies import specs

TINY: dict[str, Any] = {"d": 8, "L": 3, "H": 2, "V": 10, "d_ff": 16}


@settings(deadline=None)
@given(specs(), st.integers(1, 40))
def test_a_prefill_is_the_sum_of_its_tokens(fields: dict[str, Any], n: int) -> None:
    fields.pop("encoder", None)  # an encoder sees all its tokens at once
    model = paramcalc.load({**fields, "context": 64, "n_positions": 64})
    assert model.flops.prefill(n) == sum(model.flops.per_token(i) for i in range(1, n + 1))


@settings(deadline=None)
@given(specs(), st.integers(1, 40))
def test_the_cache_is_the_sum_of_what_each_token_adds(fields: dict[str, Any], n: int) -> None:
    memory = paramcalc.load(fields).memory
    added = [memory.kv_bytes_per_token(i) for i in range(n)]
    assert sum(added) == memory.kv_bytes(n)


def walked(model: paramcalc.Model, most: int) -> int | None:
    for n in range(1, most):
        seen = max(model.flops.attention_per_token(i) for i in range(1, n + 1))
        if seen >= model.flops.matmul_per_token:
            return n
    return None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"window": 200},
        {"window": 3},
        {"chunk": 50},
        {"layers": [{"pattern": [{"window": 9}, {}]}]},
        {"layers": [{"repeat": 1, "chunk": 9}, {"window": 70}]},
        {"layers": [{"repeat": 1, "chunk": 90}, {}]},
        {"layers": [{"repeat": 1, "chunk": 1}, {"repeat": 1, "window": 2}, {"window": 300}]},
        {"causal": False},
        {"causal": False, "window": 31},
        {"mla": {"kv_lora_rank": 4, "qk_nope_head_dim": 2, "qk_rope_head_dim": 2,
                 "v_head_dim": 4, "index_n_heads": 1, "index_head_dim": 1, "index_top_k": 5}},
    ],
)  # fmt: skip
def test_crossover_by_walking(fields: dict[str, Any]) -> None:
    model = paramcalc.load({**TINY, **fields})
    assert model.flops.crossover == walked(model, 400)


@pytest.mark.parametrize("windows", [(9, 300), (300, 9), (30, 30), (5, 5, 40), (1, 2, 3)])
def test_crossover_in_symbols(windows: tuple[int, ...]) -> None:
    layers = [*({"repeat": 1, "window": w} for w in windows), {"repeat": 2}]
    model = paramcalc.load({**TINY, "L": len(windows) + 2, "layers": layers})
    symbols, _ = symbolic(model.spec, 10)
    assert lift(flops.crossover(ledger_of(plan(symbols)))).value == walked(model, 1000)


def test_training_is_three_forwards_and_the_rule_is_six_n() -> None:
    model = preset("gpt2")
    assert model.flops.training(1024) == 3 * model.flops.prefill(1024)


def test_the_router_is_part_of_the_matmuls() -> None:
    assert preset("mixtral-8x7b").flops.router_per_token == 2 * 32 * 8 * 4096
    assert preset("llama3-8b").flops.router_per_token == 0


def test_an_encoder_decoder_by_hand() -> None:
    model = paramcalc.load({**TINY, "encoder": {"n_layers": 1}})
    n, d, ff = 5, 8, 16
    layer, attention = 4 * d * d + 2 * d * ff, 4 * d
    matmuls = 2 * n * (layer + 3 * (layer + 4 * d * d) + 10 * d)
    pairs = attention * (n * n + 3 * n * (n + 1) // 2 + 3 * n * n)
    assert model.flops.prefill(n) == matmuls + pairs


def test_a_pooler_runs_once_a_sequence() -> None:
    with_pooler = preset("bert-base").with_(pooler=True)
    assert with_pooler.flops.prefill(7) - preset("bert-base").flops.prefill(7) == 2 * 768 * 768
    assert with_pooler.flops.per_token(7) == preset("bert-base").flops.per_token(7)
