"""Formulas: what is equal, and what is simplified."""

from __future__ import annotations

from typing import Any

from paramcalc.numbers import maximum, minimum
from paramcalc.symbols import Formula, lift, symbol


def named() -> tuple[Any, Any, Any]:
    return symbol("a", 3), symbol("b", 5), symbol("c", 7)


def test_the_order_of_terms_and_factors_does_not_matter() -> None:
    a, b, c = named()
    assert a * b + c == c + b * a
    assert hash(a * b + c) == hash(c + b * a)
    assert a * b != a * c
    assert {a * b + c, c + a * b} == {b * a + c}


def test_nothing_is_added_and_one_multiplied() -> None:
    a, b, _ = named()
    assert (a + 0).terms == (1 * a).terms == (a * lift(1)).terms == a.terms
    assert (a * 0).terms == {}
    assert (a * b - b * a).terms == {}
    assert (lift(0) * a).value == 0


def test_products_of_sums() -> None:
    a, b, c = named()
    found: Formula = (a + b) * (c - a) * a
    assert found == a * a * c - a * a * a + a * b * c - a * a * b
    assert found.value == (3 + 5) * (7 - 3) * 3


def test_the_largest_of_what_was_compared_already() -> None:
    a, b, c = named()
    assert lift(maximum(a, a)).text() == "a"
    assert lift(maximum(maximum(a, b), b)).text() == "max(a, b)"
    assert lift(maximum(b, maximum(a, b))).text() == "max(a, b)"
    assert lift(minimum(minimum(a, b), a)).text() == "min(a, b)"
    assert lift(minimum(maximum(a, b), a)).text() == "min(max(a, b), a)"
    assert lift(maximum(maximum(a, b), c)).text() == "max(max(a, b), c)"
