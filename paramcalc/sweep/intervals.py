"""Bounds: what a formula or a condition can be over a box of shapes, in Python ints.

Every count grows with every dimension, so the two corners bound a term; what does not (a ratio, a
difference) is bounded by its parts. A bound may be wider than need be and is never narrower.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from paramcalc.numbers import fixed_power
from paramcalc.sweep.expressions import Expression, compare
from paramcalc.symbols import Atom, Formula

Span = tuple[Any, Any]
"""The smallest and the largest value."""


def formula_span(formula: Formula, names: Mapping[str, Span]) -> Span:
    """Return the bounds of a formula where ``names`` gives those of its symbols."""
    low = high = 0
    cache: dict[Atom, Span] = {}
    for product, count in formula.terms.items():
        span: Span = (count, count)
        for atom, power in product:
            for _ in range(power):
                span = _times(span, _atom_span(atom, names, cache))
        low, high = low + span[0], high + span[1]
    return low, high


def divides(formula: Formula, names: Mapping[str, Span]) -> bool:
    """Whether no divisor in a formula can be below 1."""
    atoms = {atom for product in formula.terms for atom, _ in product}
    return all(
        (atom.name not in ("floor", "ceil") or formula_span(atom.parts[1], names)[0] >= 1)
        and all(divides(part, names) for part in atom.parts)
        for atom in atoms
    )


def _atom_span(atom: Atom, names: Mapping[str, Span], cache: dict[Atom, Span]) -> Span:
    if not atom.parts:
        return names[atom.name]
    if atom not in cache:
        a, b, *more = (formula_span(part, names) for part in atom.parts)
        if atom.name in ("min", "max"):
            lows, highs = zip(a, b, *more, strict=True)
            pick = min if atom.name == "min" else max
            cache[atom] = pick(lows), pick(highs)
        elif atom.name == "power":  # falls with the exponent; rounding adds up
            slack = 2 * int(b[1])
            low, high = fixed_power(a[0], b[1]), fixed_power(a[1], b[0])
            cache[atom] = max(0, low - slack), high + slack
        else:
            least = [max(1, y) for y in b]  # in any one row a divisor is at least 1
            corners = [_divide(atom.name, x, y) for x in a for y in least]
            cache[atom] = min(corners), max(corners)
    return cache[atom]


def _divide(name: str, a: int, b: int) -> int:
    return a // b if name == "floor" else -(-a // b)


def _times(a: Span, b: Span) -> Span:
    if a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], a[1] * b[1]
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def decide(condition: Expression, names: Mapping[str, Span]) -> bool | None:
    """Return whether a condition holds everywhere (True), nowhere (False) or cannot be told."""
    return _decide(condition.tree, names)


def _decide(node: ast.expr, names: Mapping[str, Span]) -> bool | None:
    match node:
        case ast.BoolOp(op=op, values=values):
            found = [_decide(value, names) for value in values]
            stop = isinstance(op, ast.Or)
            if stop in found:
                return stop
            return None if None in found else not stop
        case ast.UnaryOp(operand=operand):
            inner = _decide(operand, names)
            return None if inner is None else not inner
        case ast.Compare(left=left, ops=ops, comparators=rights):
            result: bool | None = True
            a = _span(left, names)
            for comparison, right in zip(ops, rights, strict=True):
                b = _span(right, names)
                one = None if a is None or b is None else _ordered(comparison, a, b)
                if one is False:
                    return False
                result = None if one is None else result
                a = b
            return result
    return None


def _ordered(op: ast.cmpop, a: Span, b: Span) -> bool | None:
    if isinstance(op, ast.Eq | ast.NotEq):
        if a[1] < b[0] or b[1] < a[0]:
            return isinstance(op, ast.NotEq)
        same = a[0] == a[1] == b[0] == b[1]
        return isinstance(op, ast.Eq) if same else None
    upward = isinstance(op, ast.Lt | ast.LtE)
    surely = compare(op, a[1], b[0]) if upward else compare(op, a[0], b[1])
    maybe = compare(op, a[0], b[1]) if upward else compare(op, a[1], b[0])
    return True if surely else None if maybe else False


def _span(node: ast.expr, names: Mapping[str, Span]) -> Span | None:
    """The bounds of an expression; None where they cannot be told."""
    match node:
        case ast.Constant(value=int() | float() as number):
            exact = Fraction(str(number))
            return exact, exact
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(operand=operand):
            inner = _span(operand, names)
            return None if inner is None else (-inner[1], -inner[0])
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _span(left, names), _span(right, names)
            if a is None or b is None:
                return None
            if isinstance(op, ast.Add):
                return a[0] + b[0], a[1] + b[1]
            if isinstance(op, ast.Sub):
                return a[0] - b[1], a[1] - b[0]
            if isinstance(op, ast.Mult):
                return _times(a, b)
            if isinstance(op, ast.Div) and b[0] > 0:
                corners = [Fraction(x) / y for x in a for y in b]
                return min(corners), max(corners)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=args):
            spans = [_span(arg, names) for arg in args]
            found = [s for s in spans if s is not None]
            if len(found) == len(spans):
                pick = min if name == "min" else max
                return pick(s[0] for s in found), pick(s[1] for s in found)
    return None
