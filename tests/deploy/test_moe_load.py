"""The load of experts against hand counts: every routing of a small batch, papers' examples."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.deploy.moe_figures import answer
from paramcalc.deploy.moe_load import (
    Batch,
    Experts,
    check,
    expected_experts,
    experts_of,
    experts_touched,
    loads_of,
    routings,
    slots,
)
from paramcalc.deploy.moe_routing import expected
from paramcalc.errors import InputError
from paramcalc.numbers import ONE
from tests.conftest import preset

SMALL = Experts("ffn", 4, 2, 10, 3, 4)


def set_of(n: int, k: int) -> Experts:
    return Experts("ffn", n, k, 1, 1, n)


def test_the_experts_of_presets() -> None:
    # DeepSeek-V3: 58 MoE layers, 8 of 256, three matrices of 7,168 x 2,048 (arXiv:2412.19437)
    deepseek = Experts("ffn", 256, 8, 2 * 3 * 7168 * 2048, 58, 256)
    assert experts_of(preset("deepseek-v3").ledger) == (deepseek,)
    # gpt-oss-20b: sliding and full layers, 24 together (its config.json)
    oss = Experts("ffn", 32, 4, 2 * 3 * 2880 * 2880, 24, 32)
    assert experts_of(preset("gpt-oss-20b").ledger) == (oss,)
    # Switch-Base: every second of 12 + 12 layers, two matrices
    switch = Experts("ffn", 8, 1, 2 * 2 * 768 * 3072, 12, 8)
    assert experts_of(preset("switch-base-8").ledger) == (switch,)


def test_a_dense_model_is_refused() -> None:
    with pytest.raises(InputError, match="the model is dense; choose"):
        experts_of(preset("llama3-8b").ledger)


def test_choices_that_are_no_expert() -> None:
    config = {
        "model_type": "longcat_flash",
        "num_layers": 2,
        "n_routed_experts": 6,
        "zero_expert_num": 2,
        "moe_topk": 3,
    }
    (found,) = experts_of(paramcalc.load(config).ledger)
    assert (found.n_experts, found.choices, found.top_k, found.layers) == (6, 8, 3, 2)
    (note,) = answer(found, Batch(5), routings(found))[0].notes
    assert note.startswith("the router has 2 more choices")


def test_attention_and_networks_with_experts_of_their_own() -> None:
    """JetMoE (arXiv:2404.07413): 8 experts, 2 a token, for queries and outputs and for networks."""
    config = {"model_type": "jetmoe", "num_hidden_layers": 3, "hidden_size": 64}
    config |= {"intermediate_size": 32, "num_key_value_heads": 4, "kv_channels": 16}
    attention, ffn = sorted(experts_of(paramcalc.load(config).ledger))
    assert attention == Experts("attention", 8, 2, 2 * 2 * 64 * 64, 3, 8)
    assert ffn == Experts("ffn", 8, 2, 2 * 3 * 64 * 32, 3, 8)


@pytest.mark.parametrize(
    ("tokens", "n", "k", "factor", "least", "expected"),
    [
        (6, 3, 1, "1", 0, 2),  # Switch Transformer, figure 3: six tokens, three experts
        (6, 3, 1, "1.5", 0, 3),
        (100, 8, 2, "1.25", 0, 32),  # 31.25 rounded up
        (8192, 256, 8, "1", 0, 256),
        (8192, 256, 8, "1.25", 0, 320),
        (4, 64, 2, "1", 4, 4),  # DeepSpeed's and Mesh TensorFlow's fewest
        (4, 64, 2, "0.5", 0, 1),
    ],
)
def test_slots(tokens: int, n: int, k: int, factor: str, least: int, expected: int) -> None:
    assert slots(tokens, n, k, Fraction(factor), least) == expected


def test_slots_of_arrays() -> None:
    found = slots(np.array([6, 7]), np.array([3, 2]), 1, Fraction(3, 2))
    assert found.tolist() == [3, 6]  # 7 x 1.5 / 2 = 5.25


@pytest.mark.parametrize("capacity", [0, 1, 2, 3])
def test_uniform_routing_against_every_routing(capacity: int) -> None:
    """Three tokens, each with one of the 6 pairs of 4 experts: 216 routings, all alike likely."""
    pairs = list(combinations(range(4), 2))
    dropped = rows = touched = 0
    for routing in product(pairs, repeat=3):
        loads = [sum(e in pair for pair in routing) for e in range(4)]
        dropped += sum(max(0, load - capacity) for load in loads)
        rows += sum(-(-load // 2) * 2 for load in loads)
        touched += sum(load > 0 for load in loads)
    uniform = routings(SMALL)[1]
    found = loads_of(SMALL, Batch(3, block=2), capacity, uniform)
    assert found.dropped == Fraction(dropped, 216)
    assert found.rows == Fraction(rows, 216)
    assert found.touched == Fraction(touched, 216) == experts_touched(4, 2, 3)


def test_balls_into_bins() -> None:
    """With one slot, k = 1 and T = E the dropped are the empty bins: E (1 - 1/E)^E."""
    experts = set_of(64, 1)
    found = loads_of(experts, Batch(64), 1, routings(experts)[1])
    assert found.dropped == 64 * Fraction(63, 64) ** 64


def test_many_tokens_to_the_stated_precision() -> None:
    """E[(X - C)+] as (T p - C) + the sum below C, in exact fractions."""
    experts, tokens, capacity = set_of(8, 2), 20_000, 5_050
    p, q = 1, 4
    below = sum(
        (capacity - x) * comb(tokens, x) * p**x * (q - p) ** (tokens - x) for x in range(capacity)
    )
    exact = 8 * (Fraction(tokens * p, q) - capacity + Fraction(below, q**tokens))
    found = loads_of(experts, Batch(tokens), capacity, routings(experts)[1])
    assert 0 < exact < tokens
    assert abs(found.dropped - exact) < Fraction(8, 2**60)


def test_balanced_routing() -> None:
    """Seven tokens, two of four experts each: loads 3, 3, 4, 4."""
    found = loads_of(SMALL, Batch(7, block=4, ep=2), 3, routings(SMALL)[0])
    assert (found.dropped, found.rows, found.touched, found.loss) == (2, 16, 4, 1)
    assert (found.largest, found.largest_rank) == (4, 8)


def test_figures_by_hand() -> None:
    """T k = 14, C = ceil(14 x 1 / 4) = 4; 3 layers of 10 FLOPs an assignment."""
    batch = Batch(7, Fraction(1), block=4, assumed=True)
    given, balanced, *_ = answer(SMALL, batch, routings(SMALL))
    values = {f.key: f.value for f in given.figures}
    assert values == {
        "layers": 3,
        "n_experts": 4,
        "top_k": 2,
        "assignments": 14,
        "assignment_flops": 10,
        "assigned_flops": 420,
        "capacity_factor": 1_000_000,
        "slots": 4,
        "layer_slots": 16,
        "slot_flops": 480,
    }
    known = {f.key: f.known for f in given.figures}
    assert (known["n_experts"], known["slots"]) == ("exact", "derived")
    assert known["capacity_factor"] == "assumed"
    even = {f.key: f.value for f in balanced.figures}
    assert (even["dropped"], even["kept_flops"], even["slots_per_kept"]) == (0, 420, 1_142_857)
    assert (even["dropless_rows"], even["dropless_flops"]) == (16, 480)
    assert (even["balance_loss"], even["imbalance"]) == (1_000_000, 1_142_857)


def test_no_factor_drops_nothing() -> None:
    given, *others = answer(SMALL, Batch(7, None), routings(SMALL))
    keys = {f.key for group in (given, *others) for f in group.figures}
    assert "dropless_rows" in keys
    assert not keys & {"slots", "dropped", "slots_per_kept"}


def test_touched_experts_by_hand() -> None:
    # Mixtral, 4 tokens in flight: 8 (1 - (3/4)^4) = 8 x 175 / 256
    assert experts_touched(8, 2, 4) == Fraction(175, 32)
    assert expected_experts(8, 2, 4) == 5_468_750
    assert expected_experts(8, 2, 4, 1000) == 5_468
    assert expected_experts(256, 8, 1) == 8_000_000
    assert expected_experts(8, 8, 1) == 8_000_000


@given(st.integers(1, 4096), st.data(), st.integers(1, 5000))
@settings(max_examples=60, deadline=None)
def test_touched_experts_in_integers(n: int, data: st.DataObject, tokens: int) -> None:
    k = data.draw(st.integers(1, n))
    exact = experts_touched(n, k, tokens) * 10**6
    found = expected_experts(n, k, tokens)
    assert abs(found - exact) <= Fraction(2 * n * tokens * 10**6, ONE) + 2  # fixed_power's steps
    array = expected_experts(np.array([n]), np.array([k]), np.array([tokens]))
    assert array.tolist() == [found]


@given(st.integers(1, 12), st.data(), st.integers(1, 40), st.fractions(0, 3))
@settings(max_examples=40, deadline=None)
def test_drops_fall_with_the_factor(
    n: int, data: st.DataObject, tokens: int, exponent: Fraction
) -> None:
    k = data.draw(st.integers(1, n))
    experts = set_of(n, k)
    low, high = sorted(data.draw(st.tuples(st.fractions("0.1", 9), st.fractions("0.1", 9))))
    for routing in routings(experts, exponent):
        sizes = [slots(tokens, n, k, factor) for factor in (low, high)]
        few, many = (loads_of(experts, Batch(tokens), size, routing) for size in sizes)
        assert many.dropped <= few.dropped < tokens * k
        assert few.rows >= tokens * k
        assert few.loss >= 1
        if routing.shares is not None:
            kept = [expected(tokens, p, partial(min, sizes[0]))[0] for p in routing.shares]
            assert sum(kept) + few.dropped == tokens * k


@pytest.mark.parametrize(
    ("experts", "batch", "line"),
    [
        (set_of(8, 2), Batch(0), "tokens = 0: must be from 1 to 67,108,864; change it"),
        (set_of(8, 2), Batch(1, Fraction(0)), "capacity_factor = 0: must be from 0.000001"),
        (set_of(8, 2), Batch(1, Fraction(-1)), "capacity_factor = -1: must be from 0.000001"),
        (set_of(8, 2), Batch(1, ep=3), "ep = 3: must divide the 8 experts; change it"),
        (set_of(8, 2), Batch(1, ep=16), "ep = 16: must divide the 8 experts; change it"),
        (set_of(8, 2), Batch(1, block=0), "block = 0: must be from 1"),
        (set_of(8, 2), Batch(1, least=-1), "min_capacity = -1: must be from 0"),
        (set_of(5000, 2), Batch(1), "n_experts = 5,000: at most 4,096"),
    ],
)
def test_refusals(experts: Experts, batch: Batch, line: str) -> None:
    with pytest.raises(InputError) as error:
        check(experts, batch)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((8, 2, -1), "tokens = -1: must be a whole number of at least 0"),
        ((8, 9, 3), "top_k = 9: must be at most n_experts = 8"),
        ((0, 0, 1), "n_experts = 0: must be a whole number of at least 1"),
        ((8, 2.0, 3), "top_k = 2.0: must be a whole number"),
    ],
)
def test_no_such_experts(sizes: tuple[int, int, int], message: str) -> None:
    with pytest.raises(InputError) as caught:
        experts_touched(*sizes)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        (Batch(1.5), "tokens = 1.5: must be a whole number"),  # type: ignore[arg-type]
        (Batch(True), "tokens = True: must be a whole number"),
        (Batch(10, 0.5), "capacity_factor = 0.5: must be a Fraction"),  # type: ignore[arg-type]
        (Batch(10, Fraction(1, 10**7)), "capacity_factor = 1e-07: must be from 0.000001"),
        (Batch(10, seed=-1), "seed = -1: must be from 0"),
        (Batch(10, seed=2**63), f"seed = {2**63}: must be from 0"),
        (Batch(10, ep=0), "ep = 0: must be from 1"),
    ],
)
def test_no_such_batch(batch: Batch, message: str) -> None:
    with pytest.raises(InputError) as caught:
        answer(set_of(8, 2), batch, routings(set_of(8, 2)))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(("assumed", "why"), [(True, "default"), (False, "--capacity-factor")])
def test_a_factor_is_assumed_typed_or_not(assumed: bool, why: str) -> None:
    figures = answer(set_of(8, 2), Batch(8, assumed=assumed), [])[0].figures
    (factor,) = (figure for figure in figures if figure.key == "capacity_factor")
    assert (factor.value, factor.known, factor.why) == (1_250_000, "assumed", why)
