"""Formulas as JavaScript: the text, and what a browser makes of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from paramcalc.numbers import ONE, ceil_div, fixed_power, maximum, minimum
from paramcalc.symbols import Formula, lift, symbol
from paramcalc.views.script import Script, javascript
from tests.browser import chromium


@pytest.fixture(scope="module")
def tab() -> Iterator[Any]:
    with chromium() as browser:
        yield browser.new_page()


def mixed(a: Any, b: Any, c: Any) -> Any:
    """Every kind of arithmetic, quotients of negative numbers in."""
    q = (a * b - c * c) // (a + 1)
    return (
        3 * a * a * b
        - c * c * c
        - q * 7
        + ceil_div(a * c, b)
        + minimum(a * b, c + 5) * maximum(q, c - a)
        + ceil_div(c - a * b, 4) * (2 * a + 6) // 2
        + fixed_power(ONE - ONE // 3, minimum(a, 40))
    )


def test_a_browser_gets_every_digit(tab: Any) -> None:
    source, number = javascript(
        mixed(*(symbol(n, v) for n, v in zip("abc", (5, 7, 11), strict=True)))
    )
    dice = random.Random(6)
    tops = (9, 1000, 10**6, 10**14)
    cases = [[dice.randint(1, top) for _ in range(3)] for top in tops for _ in range(50)]
    found = tab.evaluate(
        f"cases => {{{source} return cases.map(([a, b, c]) => {{ forget(); SET.a(BigInt(a));"
        f" SET.b(BigInt(b)); SET.c(BigInt(c)); return String(f({number})) }}) }}",
        [[str(value) for value in case] for case in cases],
    )
    assert [int(text) for text in found] == [mixed(*case) for case in cases]
    assert any(int(text) < 0 for text in found)
    assert max(map(abs, map(int, found))) > 2**64


def test_equal_formulas_are_one_and_sums_hold_their_parts() -> None:
    a, b = symbol("a", 5), symbol("b", 7)
    script = Script()
    part, other = script.add(a * b + a + 3), script.add(b * b + 2 * b + 9)
    assert script.add(3 + a + b * a) == part
    total = script.add(2 * (a * b + a + 3) + b * b + 2 * b + 9, [part, other])
    assert f"f({other})" in script.source().split("()=>")[total + 1]
    assert f"2n*f({part})" in script.source().split("()=>")[total + 1]


def test_common_factors_stand_once() -> None:
    d, n = symbol("d_model", 8), symbol("n", 2)
    source, _ = javascript(n * d * 4 + n * d * d * 2 + n, {"d_model": "d"})
    assert "()=>n*(2n*d*(2n+d)+1n)" in source


def test_a_quotient_is_a_quotient_though_it_happens_to_be_whole() -> None:
    whole, broken = symbol("d", 8), symbol("d", 9)
    assert javascript(whole // 4)[0] == javascript(broken // 4)[0]
    up, down = ceil_div(whole, 4), whole // 4  # type: ignore[arg-type]
    script = Script()
    assert script.add(up) != script.add(down)


@pytest.mark.parametrize("name", ["floor", "F", "SET", "if", "9 lives", "a;alert(1)", "é", ""])
def test_no_name_becomes_code(name: str) -> None:
    source, _ = javascript(symbol(name, 3) + 1)
    line = next(line for line in source.splitlines() if line.startswith("let "))
    variable = line.removeprefix("let ").removesuffix("=0n;")
    assert variable.replace("$", "_").isidentifier()
    assert variable.isascii()
    assert variable not in ("floor", "F", "SET", "if")


def test_names_of_one_spelling_stay_apart_and_inert() -> None:
    script = Script({"a.x": "x", "b.x": "x"})
    number = script.add(symbol("a.x", 3) * symbol("b.x", 4) + symbol("</script>", 1))
    source = script.source()
    assert "x$2" in source
    assert "</script" not in source
    assert number == 0


def test_formulas_that_differ_in_order_alone_add_up(tab: Any) -> None:
    """Terms in another order inside a maximum or a quotient: the same variable twice."""
    a, b, c = (symbol(name, value) for name, value in zip("abc", (5, 7, 11), strict=True))
    one: Any = lift(maximum(a + b, c)) * (a + b // c) + (a + b) // c  # type: ignore[arg-type]
    other: Any = lift(maximum(b + a, c)) * (b // c + a) + (b + a) // c  # type: ignore[arg-type]
    source, number = javascript((one + other) * ((b + a) // c))
    given = "SET.a(50n); SET.b(70n); SET.c(11n);"
    found = tab.evaluate(f"() => {{{source} {given} return String(f({number})) }}")
    assert int(found) == 2 * (120 * (50 + 6) + 10) * 10


def test_the_largest_of_many(tab: Any) -> None:
    found: Any = 0
    for i in range(300):
        found = maximum(found, symbol("n", 2) * (i * (299 - i)) + i)  # type: ignore[arg-type]
    source, number = javascript(found)
    text = tab.evaluate(f"() => {{{source} SET.n(10n); return String(f({number})) }}")
    assert int(text) == max(10 * i * (299 - i) + i for i in range(300))


def test_a_number_alone() -> None:
    assert "()=>-7n" in javascript(-7)[0]
    assert "()=>0n" in javascript(lift(0))[0]
    assert isinstance(symbol("a", 1), Formula)
