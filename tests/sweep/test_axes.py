"""Axes and expressions as typed, and what is said of those that cannot be."""

from __future__ import annotations

import numpy as np
import pytest

from paramcalc.errors import InputError
from paramcalc.sweep.axes import parse
from paramcalc.sweep.expressions import Expression


@pytest.mark.parametrize(
    ("field", "text", "values"),
    [
        ("kv", "8,32", (8, 32)),
        ("heads", "16:96:8", (16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96)),
        ("L", "3:5", (3, 4, 5)),
        ("L", "3:9:4", (3, 7)),
        ("context", "4k:128k:x2", (4096, 8192, 16384, 32768, 65536, 131072)),
        ("ff", "1k:9k:x3", (1000, 3000, 9000)),
        ("d", "64, 128:256:64 , 1k", (64, 128, 192, 256, 1000)),
    ],
)
def test_values(field: str, text: str, values: tuple[int, ...]) -> None:
    assert parse(field, text).values == values


@pytest.mark.parametrize("text", ["d/128", "ceil(3.5*d, 256)", "8, d/2", "4*d"])
def test_anything_else_is_an_expression(text: str) -> None:
    assert parse("ff", text).expression == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "n_layers: no values"),
        ("9:3", "the first value is above the last; swap them"),
        ("3:9:0", "a step of at least 1"),
        ("3:9:x1", "a factor of 2 or more"),
        ("0:9:x2", "a factor of 2 or more"),
        ("3:9:2:1", "a range is first:last:step"),
        ("3,3", "a value stands twice"),
        ("1:1T", "over 10,000,000 values"),
        ("1.5", "is not a whole number"),
    ],
)
def test_bad_values(text: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        parse("L", text)
    assert says in str(caught.value)


def value(text: str, **names: int) -> float:
    ratio = Expression(text, "ff", names).value(names)
    return ratio.top / ratio.bottom


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("d/128", 32), ("d//3", 1365), ("d%3", 1), ("-d + 2*(d+1)", 4098), ("3.5*d", 14336),
        ("ceil(8/3*d, 256)", 11008), ("floor(8/3*d, 256)", 10752), ("round(8/3*d, 256)", 11008),
        ("ceil(d/1000)", 5), ("min(d, 7)", 7), ("max(d/2, 7)", 2048), ("1k + d", 5096),
    ],
)  # fmt: skip
def test_expressions(text: str, result: float) -> None:
    assert value(text, d=4096) == result


def test_expressions_on_arrays() -> None:
    d = np.array([100, 256], dtype=np.int64)
    ratio = Expression("ceil(3.5*d, 256)", "ff", ["d"]).value({"d": d})
    assert (ratio.top // ratio.bottom).tolist() == [512, 1024]


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "d.real", "d[0]", "lambda: d", "d**99999", "f(d)",
        "d if d else 2", "[d for d in (1,)]", "d and 1", "(d := 3)", "'a'*9", "min(d)", "ceil()",
        "d+", "(" * 300, "1e99", "min(d, key=3)", "True", "d <", "print(d)", "~d", "{d}",
    ],
)  # fmt: skip
def test_what_is_no_expression(text: str) -> None:
    with pytest.raises(InputError) as caught:
        Expression(text, "ff", ["d"])
    assert str(caught.value).startswith("ff = ")
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        Expression(f"d < {text}", "where", ["d"], condition=True)


def test_a_division_by_zero_is_named() -> None:
    with pytest.raises(InputError, match="divides by zero"):
        value("4/(d-3)", d=3)


def test_products_never_wrap() -> None:
    names = {"a": np.array([2**62, 3]), "b": np.array([2**40, 5])}
    ratio = Expression("a*b + 1", "x", names).value(names)
    assert ratio.top.tolist() == [2**102 + 1, 16]
    holds = Expression("a / b > 1e9 and a * b >= 15", "x", names, condition=True).holds(names)
    assert [bool(value) for value in holds] == [False, False]
    holds = Expression("b < 1000 * a", "x", names, condition=True).holds(names)
    assert [bool(value) for value in holds] == [True, True]
