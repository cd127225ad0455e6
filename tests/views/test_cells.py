"""Formulas as text of cells: the text means what the formula's integer is."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from paramcalc.numbers import ceil_div, fixed_power, maximum, minimum
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.cells import MOST_TEXT, PLAIN_BELOW, Writer
from paramcalc.views.conditions import Condition, Live

d, h, n = symbol("d", 4096), symbol("h", 32), symbol("n", 8191)
SMALL = {"d": 10**6, "h": 10**5, "n": 10**6}


def text(value: Any, limits: dict[str, int] = SMALL) -> str:
    return Writer(limits).text(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (lift(0), "0"),
        (lift(-7), "-7"),
        (2 * d * d - 3 * h + 1, "2*d*d-3*h+1"),
        (-d, "-d"),
        (d // h, "INT(d/h)"),
        ((d + 1) // h, "INT((d+1)/h)"),
        (3 * (d // h) * h, "3*INT(d/h)*h"),
        ((d + n) // (h * h), "INT((d+n)/(h*h))"),
        (minimum(n, lift(128)), "MIN(n,128)"),  # type: ignore[arg-type]
        (maximum(maximum(d, h), d), "MAX(d,h)"),  # type: ignore[arg-type]
    ],
)
def test_the_text(value: Formula, written: str) -> None:
    assert text(value) == written


def test_rounding_up() -> None:
    assert text(ceil_div(d, h)) == "-INT(-d/h)"  # type: ignore[arg-type]
    assert text(2 * ceil_div(d + 1, h)) == "2*(-INT(-(d+1)/h))"  # type: ignore[arg-type, operator]


def test_a_quotient_that_int_could_round_up_is_compared_again() -> None:
    assert text(n * n // h) == "INT(n*n/h)"
    wide = SMALL | {"n": 10**9}
    assert text(n * n // h, wide) == "INT(n*n/h)-(INT(n*n/h)*h>n*n)"
    up = text(ceil_div(n * n, h), wide)  # type: ignore[arg-type]
    assert up == "-INT(-n*n/h)+(-INT(-n*n/h)*h<n*n)"
    assert Writer(wide).most(n * n) >= PLAIN_BELOW


def test_long_parts_get_cells_of_their_own() -> None:
    held: list[str] = []

    def hold(formula: Formula, written: str) -> str:
        held.append(written)
        return f"S!$C${len(held)}"

    writer = Writer({}, hold)
    sum_ = sum((symbol(f"a_rather_long_name_{i}", i) for i in range(1000)), lift(0))
    written = writer.text(sum_)
    assert len(written) < 200
    assert all(len(part) < MOST_TEXT for part in held)
    written = writer.text(n * n // h)
    top = f"S!$C${len(held)}"
    assert written == f"INT({top}/h)-(INT({top}/h)*h>{top})"
    assert held[-1] == "n*n"


def test_a_power_needs_cells() -> None:
    with pytest.raises(ValueError, match="cells of its own"):
        text(fixed_power(d, h))  # type: ignore[arg-type]


def test_conditions() -> None:
    a, b = Live(d), Live(h)
    broken = a % b != 0
    assert isinstance(broken, Condition)
    assert broken.text(Writer(SMALL)) == "d-INT(d/h)*h<>0"
    assert not broken.holds
    both = (Live(n) > b) & (Live(n) % 2 != 0)
    assert both.holds
    assert both.text(Writer(SMALL)).startswith("AND(n>h,")
    assert (b < 5).holds is False


def evaluated(written: str, values: dict[str, int]) -> float:
    """The text as a spreadsheet computes it: in doubles."""
    space: dict[str, Any] = {name: float(value) for name, value in values.items()}
    space |= {"INT": lambda x: float(math.floor(x)), "MIN": min, "MAX": max}
    return float(eval(written, {"__builtins__": {}}, space))


NAMES = ("d", "h", "n")
formulas = st.recursive(
    st.sampled_from(NAMES) | st.integers(1, 9),
    lambda inner: st.tuples(st.sampled_from("+-*/^mM"), inner, inner),
    max_leaves=7,
)


def built(tree: Any, values: dict[str, Any]) -> Any:
    if isinstance(tree, str):
        return values[tree]
    if isinstance(tree, int):
        return tree
    sign, a, b = tree[0], built(tree[1], values), built(tree[2], values)
    if sign in "+-*":
        return a + b if sign == "+" else a - b if sign == "-" else a * b
    if sign in "/^":
        b = maximum(b, 1)
        return a // b if sign == "/" else ceil_div(a, b)
    return minimum(a, b) if sign == "m" else maximum(a, b)


@settings(deadline=None)
@given(formulas, st.tuples(*(st.integers(1, 99_999),) * 3))
def test_text_and_integer_agree(tree: Any, sizes: tuple[int, ...]) -> None:
    values = dict(zip(NAMES, sizes, strict=True))
    exact = built(tree, values)
    formula = lift(built(tree, {name: symbol(name, size) for name, size in values.items()}))
    assume(formula.value == exact)  # a minimum with 1 takes sizes for at least 1
    writer = Writer(dict.fromkeys(NAMES, 99_999))
    if writer.most(formula) < 2**53:
        assert evaluated(writer.text(formula), values) == exact
