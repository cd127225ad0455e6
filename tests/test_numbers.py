from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from paramcalc.numbers import ONE, ceil_div, fixed_power, maximum, minimum, triangle
from paramcalc.symbols import lift, symbol

whole = st.integers(0, 10**6)
positive = st.integers(1, 10**6)


@given(whole, positive)
def test_each_kind_of_number_agrees(a: int, b: int) -> None:
    x, y = np.array([a], dtype=np.int64), np.array([b], dtype=np.int64)
    p, q = sympy.Integer(a), sympy.Integer(b)
    f, g = symbol("a", a), symbol("b", b)
    for name, exact in (
        (minimum, min(a, b)),
        (maximum, max(a, b)),
        (ceil_div, (a + b - 1) // b),
    ):
        assert name(a, b) == exact
        assert name(x, y)[0] == exact  # type: ignore[arg-type,index]
        assert name(p, q) == exact  # type: ignore[arg-type]
        assert lift(name(f, g)).value == exact  # type: ignore[arg-type]


@given(st.integers(0, 300))
def test_triangle(n: int) -> None:
    assert triangle(n) == sum(range(n + 1))


def test_no_minimum_of_text() -> None:
    with pytest.raises(TypeError, match="no minimum"):
        minimum("a", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize(("experts", "top_k", "tokens"), [(8, 2, 1), (128, 8, 16), (32, 4, 1000)])
def test_a_fixed_power_is_the_power(experts: int, top_k: int, tokens: int) -> None:
    """Against exact fractions; ints, arrays and symbols give the same integer."""
    base = (experts - top_k) * ONE // experts
    exact = Fraction(experts - top_k, experts) ** tokens
    found = fixed_power(base, tokens)
    assert abs(Fraction(found, ONE) - exact) < Fraction(2 * tokens, ONE)
    array = fixed_power(base, np.array([tokens, 0, 1], dtype=np.int64))
    assert list(array) == [found, ONE, base]
    assert lift(fixed_power(symbol("b", base), symbol("n", tokens))).value == found


def test_a_floor_and_a_ceil_that_agree_here_stay_apart() -> None:
    """8 / 4 is whole either way; the same formulas at 9 are not."""
    a, b = symbol("a", 8), symbol("b", 4)
    down, up = lift(a // b), lift(ceil_div(a, b))
    assert down.text() == up.text() == "a/b"
    assert down != up
    assert len({atom for f in (down, up) for product in f.terms for atom, _ in product}) == 2
    assert lift(down + up).text() == "(a/b) + (a/b)"
