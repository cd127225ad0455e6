"""Routings: shares, expectations and drawn batches against hand counts."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paramcalc.deploy.moe_load import Batch, Experts, loads_of, routings
from paramcalc.deploy.moe_routing import (
    balance_loss,
    draw,
    even,
    expected,
    expected_loads,
    shares,
    zipf,
)
from paramcalc.errors import InputError

EIGHT = Experts("ffn", 8, 2, 1, 1, 8)


def test_shares_by_hand() -> None:
    assert shares((5, 3, 2), 1) == (Fraction(1, 2), Fraction(3, 10), Fraction(1, 5))
    # 2 x 5 / 6 is above 1: the first is held there and the others share what is left of 2
    assert shares((5, 1, 0), 2) == (1, 1, 0)
    assert shares((6, 2, 1, 1), 2) == (1, Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    assert shares((1, 1), 2) == even(2, 2) == (1, 1)
    assert zipf(3, Fraction(1)) == (2**48, 2**47, 93824992236885)  # 2^48 / 3, rounded
    assert shares(zipf(4, Fraction(0)), 2) == even(4, 2)


@pytest.mark.parametrize(
    ("exponent", "loads", "line"),
    [
        (Fraction(-1), None, "skew = -1: must be from 0"),
        (Fraction(11), None, "skew = 11: must be from 0"),
        (None, (1, 2), "loads = 2 numbers: there are 8 experts"),
        (None, (1,) + (0,) * 7, "loads = 1 experts with a load"),
        (None, (1,) * 7 + (-2,), "loads = -2: must not be negative"),
    ],
)
def test_refusals(exponent: Fraction | None, loads: tuple[Fraction, ...] | None, line: str) -> None:
    with pytest.raises(InputError) as error:
        routings(EIGHT, exponent, loads)
    assert str(error.value).startswith(line)


def test_expected_of_certain_loads() -> None:
    assert expected(7, Fraction(0), int) == (0,)
    assert expected(7, Fraction(1), int) == (7,)


@pytest.mark.parametrize("capacity", [0, 196_000, 199_000, 200_000, 200_100, 205_000, 10**6])
@pytest.mark.parametrize("block", [1, 7, 128])
def test_many_tokens_are_not_added_up_one_by_one(capacity: int, block: int) -> None:
    """A million tokens at 1 in 5: the closed forms against the sum over every load."""
    share = Fraction(1, 5)
    summed = expected(
        10**6,
        share,
        lambda load: max(0, load - capacity),
        lambda load: -(-load // block) * block,
        bool,
    )
    found = expected_loads(10**6, share, capacity, block)
    assert all(abs(a - b) < Fraction(1, 2**40) for a, b in zip(found, summed, strict=True))


def test_a_large_skewed_batch_takes_no_time() -> None:
    """60 million tokens take 8 each, and a block of each expert is half empty."""
    start = process_time()
    found = loads_of(
        Experts("ffn", 256, 8, 1, 1, 256),
        Batch(60_000_000),
        2_343_750,
        routings(Experts("ffn", 256, 8, 1, 1, 256), Fraction(6, 5))[2],
    )
    assert process_time() - start < 1.5
    assert found.largest == 60_000_000  # the first experts are held at a share of 1
    assert abs(found.rows - (8 * 60_000_000 + 128 * 256 / 2)) < 128 * 256 / 2


def test_too_many_unequal_loads_are_refused() -> None:
    thousands = Experts("ffn", 4096, 8, 1, 1, 4096)
    law = routings(thousands, Fraction(6, 5))[2]
    with pytest.raises(InputError, match=r"tokens = 60,000,000: .* loads of .* unequal experts"):
        loads_of(thousands, Batch(60_000_000), 10**6, law)


@given(st.integers(1, 3000), st.fractions(0, 1, max_denominator=500))
@settings(max_examples=60, deadline=None)
def test_the_mean_and_variance_are_the_binomials(tokens: int, share: Fraction) -> None:
    mean, square = expected(tokens, share, int, lambda x: x * x)
    assert abs(mean - tokens * share) < Fraction(1, 2**50)
    variance = square - mean * mean
    assert abs(variance - tokens * share * (1 - share)) < Fraction(1, 2**40)


@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=20),
    st.data(),
    st.sampled_from([1, 3, 50, 5000]),
    st.integers(0, 2**63 - 1),
)
@settings(max_examples=60, deadline=None)
def test_drawn_loads_are_possible_and_repeat(
    weights: list[int], data: st.DataObject, tokens: int, seed: int
) -> None:
    positive = sum(1 for w in weights if w)
    if not positive:
        weights, positive = [w + 1 for w in weights], len(weights)
    k = data.draw(st.integers(1, positive))
    law = shares(weights, k)
    assert sum(law) == k
    drawn = draw(tokens, law, seed, 2)
    for loads in drawn:
        assert sum(loads) == tokens * k
        for load, share in zip(loads, law, strict=True):
            assert 0 <= load <= tokens
            assert load == tokens or share < 1
            assert load == 0 or share > 0
    assert draw(tokens, law, seed, 2) == drawn


def test_another_seed_draws_others() -> None:
    assert draw(100, even(8, 2), 0, 1) != draw(100, even(8, 2), 1, 1)


@pytest.mark.parametrize("tokens", [40, 4000])
def test_drawn_means_are_the_shares(tokens: int) -> None:
    """The mean load over 400 batches is within 5 of its standard errors of T p."""
    law = shares((6, 2, 1, 1, 5, 3), 2)
    drawn = draw(tokens, law, 7, 400)
    for i, share in enumerate(law):
        off = abs(Fraction(sum(one[i] for one in drawn), 400) - tokens * share)
        assert off**2 <= 25 * tokens * share * (1 - share) / 400


def test_each_pair_is_as_likely() -> None:
    """Even shares, one token: 3,000 batches over the 6 pairs of 4, 500 each within 5 errors."""
    drawn = draw(1, even(4, 2), 3, 3000)
    pairs = Counter(tuple(i for i, load in enumerate(one) if load) for one in drawn)
    assert sorted(pairs) == list(combinations(range(4), 2))
    assert all((count - 500) ** 2 <= 25 * 3000 * 5 / 36 for count in pairs.values())


def test_the_loss_by_hand() -> None:
    quarter = (Fraction(1, 4),) * 4
    assert balance_loss((5, 5, 5, 5), quarter) == 1
    # all to one expert, by a router that is sure: E
    assert balance_loss((9, 0, 0, 0), (Fraction(1), Fraction(0), Fraction(0), Fraction(0))) == 4
    half = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8), Fraction(1, 8))
    assert balance_loss((4, 2, 1, 1), half) == 4 * Fraction(16 + 4 + 1 + 1, 64)


def test_the_loss_of_the_transformers_library() -> None:
    """Three tokens over 4 experts, k = 2, logits ln of the rows below.

    ``load_balancing_loss_func`` of transformers 5.24 gives 2.1333: k = 2 times ours.
    """
    rows = [(1, 2, 3, 4), (4, 3, 2, 1), (1, 1, 5, 3)]
    chosen = [(2, 3), (0, 1), (2, 3)]
    means = [sum(Fraction(row[i], 10) for row in rows) / 3 for i in range(4)]
    loads = [sum(i in pair for pair in chosen) for i in range(4)]
    assert round(2 * balance_loss(loads, means), 4) == Fraction("2.1333")
