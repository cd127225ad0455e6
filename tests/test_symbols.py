"""Formulas: what is equal, and what is simplified."""

from __future__ import annotations

from typing import Any, cast

from paramcalc.numbers import ceil_div, maximum, minimum
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
    assert lift(maximum(maximum(a, b), c)).text() == "max(a, b, c)"
    assert lift(maximum(maximum(a, b), maximum(c, b))).text() == "max(a, b, c)"
    assert lift(minimum(minimum(a, c), minimum(c, minimum(a, b)))).text() == "min(c, a, b)"
    assert lift(maximum(maximum(a, b), c)).value == 7


def test_atoms_made_in_one_way_meet_whatever_their_values_and_the_order_of_terms() -> None:
    a, b, c = named()
    one, other = lift((a + b) // c), lift((b + a) // c)
    assert one - other == 0
    assert (one * other).terms == (one * one).terms == (other * one).terms
    assert one * c * other == other * other * c
    assert symbol("a", 8) // 4 == symbol("a", 9) // 4  # whole, and not
    up: Any = ceil_div(cast(Any, symbol("a", 8)), 4)
    assert up != symbol("a", 8) // 4


def test_the_largest_of_hundreds_is_no_deep_nest() -> None:
    sizes = [symbol(f"W{i}", i + 1) for i in range(2000)]
    n: Any = symbol("n", 50)
    found: Any = 0
    for size in sizes:
        found = maximum(found, n * cast(Any, size) + 1)
    twice = found + found * n
    assert twice.value == 51 * (50 * 2000 + 1)
    assert twice.text().count("W1999") == 2
    assert maximum(found, n * cast(Any, sizes[7]) + 1) == found


def test_formulas_that_hold_each_other_twice_are_compared_at_once() -> None:
    def tower() -> Any:
        a, b, _ = named()
        for i in range(60):
            a = maximum(a + i, b) // (a + 1) + a
        return a

    assert tower() == tower()
    assert hash(tower()) == hash(tower())
