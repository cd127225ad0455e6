"""Compute-optimal sizes against the figures of Hoffmann et al. 2022 and Besiroglu et al. 2024."""

from __future__ import annotations

import pytest

from paramcalc.deploy import chinchilla
from paramcalc.deploy.chinchilla import BESIROGLU, HOFFMANN
from paramcalc.errors import InputError

GOPHER = 576 * 10**21
"""Budget of Gopher and of Chinchilla: 5.76e23 FLOPs."""


def test_chinchilla() -> None:
    """70 billion parameters, 1.4 trillion tokens."""
    assert chinchilla.tokens_for(70 * 10**9) == 1_400 * 10**9
    best = chinchilla.by_ratio(GOPHER)
    assert round(best.parameters, -9) == 69 * 10**9
    assert round(best.tokens, -11) == 1_400 * 10**9
    assert 6 * best.parameters * best.tokens <= GOPHER


def test_a_row_of_the_papers_table() -> None:
    """Table 3: 400 million parameters, 1.92e19 FLOPs, 8.0 billion tokens."""
    assert chinchilla.by_ratio(192 * 10**17) == (400 * 10**6, 8 * 10**9)


def test_the_fit_of_approach_3() -> None:
    """The paper: the budget of Gopher suits 40 billion parameters."""
    assert round(chinchilla.by_fit(GOPHER, HOFFMANN).parameters, -9) == 40 * 10**9


def test_the_corrected_fit_agrees_with_the_first_approaches() -> None:
    """About 20 tokens a parameter, which is what Besiroglu et al. found and Chinchilla had."""
    best = chinchilla.by_fit(GOPHER, BESIROGLU)
    assert round(best.parameters, -9) == 72 * 10**9
    assert 15 < best.tokens / best.parameters < 25


@pytest.mark.parametrize("fit", [HOFFMANN, BESIROGLU])
def test_an_optimum_turned_round(fit: chinchilla.Fit) -> None:
    best = chinchilla.by_fit(GOPHER, fit)
    assert chinchilla.tokens_for(best.parameters, fit) == pytest.approx(best.tokens, rel=1e-6)


@pytest.mark.parametrize("fit", [HOFFMANN, BESIROGLU])
def test_the_optimum_has_the_least_loss(fit: chinchilla.Fit) -> None:
    n, d = chinchilla.by_fit(GOPHER, fit)
    least = chinchilla.loss(n, d, fit)
    for change in (0.9, 1.1):
        other = int(n * change)
        assert chinchilla.loss(other, GOPHER // (6 * other), fit) > least


@pytest.mark.parametrize("budget", [0, -1])
def test_no_budget(budget: int) -> None:
    with pytest.raises(InputError, match="must be at least 1 FLOP"):
        chinchilla.by_fit(budget)
    with pytest.raises(InputError, match="must be at least 1 FLOP"):
        chinchilla.by_ratio(budget)


def test_too_little() -> None:
    with pytest.raises(InputError, match="buys no parameter"):
        chinchilla.by_ratio(119)
