"""Expressions over named numbers: a small grammar, parsed with ``ast`` and never run as Python.

Numbers (``4096``, ``3.5``, ``8e9``, ``128k``), names, ``+ - * / // %``, brackets, ``min``, ``max``,
``floor``, ``ceil`` and ``round`` with an optional multiple (``ceil(3.5*d, 256)``); in conditions
``< <= > >= == !=``, ``and``, ``or``, ``not``.

A value is exact: a numerator over a denominator, each an int or an integer array.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from paramcalc.errors import InputError, did_you_mean
from paramcalc.numbers import maximum, minimum

MOST_LETTERS = 1_000
FUNCTIONS = ("min", "max", "floor", "ceil", "round")
_COMPARISONS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_SIZE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)([kKmMbBgGtT])\b")
_POWERS = {"k": 1, "m": 2, "b": 3, "g": 3, "t": 4}


class Ratio(NamedTuple):
    """A number as a numerator over a positive denominator."""

    top: Any
    bottom: Any


class Expression:
    """A parsed expression. ``names`` are those it uses.

    ``where`` names it in messages; ``known`` are the names it may use; ``tokens`` makes 1k 1,024.
    Raises ``InputError`` with one line.
    """

    def __init__(
        self,
        text: str,
        where: str,
        known: Iterable[str],
        *,
        condition: bool = False,
        tokens: bool = False,
    ) -> None:
        self.text = text.strip()
        self.where = where
        self.names: set[str] = set()
        self._known = list(known)
        if not self.text:
            raise InputError(f"{where}: empty; write an expression")
        if len(text) > MOST_LETTERS:
            raise InputError(f"{where}: longer than {MOST_LETTERS:,} letters; shorten it")
        step = 1024 if tokens else 1000
        plain = _SIZE.sub(lambda m: f"({m[1]}*{step ** _POWERS[m[2].lower()]})", self.text)
        try:
            self.tree = ast.parse(plain, mode="eval").body
            self._check(self.tree, condition)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            if isinstance(error, InputError):
                raise
            raise self._refuse("cannot be read", "check its signs and brackets") from None

    def conjuncts(self) -> list[Expression]:
        """Return the conditions that must all hold for this one: it, split at its outer ``and``."""
        if not (isinstance(self.tree, ast.BoolOp) and isinstance(self.tree.op, ast.And)):
            return [self]
        found: list[Expression] = []
        for value in self.tree.values:
            part = copy.copy(self)
            part.tree = value
            used = {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
            part.names = self.names & used
            found += part.conjuncts()
        return found

    def _refuse(self, what: str, fix: str) -> InputError:
        return InputError(f"{self.where} = {self.text}: {what}; {fix}")

    def _check(self, node: ast.expr, condition: bool) -> None:
        match node:
            case ast.BoolOp(values=values) if condition:
                for value in values:
                    self._check(value, True)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if condition:
                self._check(operand, True)
            case ast.Compare(left=left, ops=ops, comparators=rights) if condition:
                if not all(isinstance(op, _COMPARISONS) for op in ops):
                    raise self._refuse("an unknown comparison", "use < <= > >= == !=")
                for side in (left, *rights):
                    self._check(side, False)
            case _ if condition:
                raise self._refuse("is no condition", "compare with < <= > >= == !=")
            case ast.BinOp(left=left, op=op, right=right):
                if not isinstance(op, _OPERATIONS):
                    raise self._refuse("an unknown operation", "use + - * / // %")
                self._check(left, False)
                self._check(right, False)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self._check(operand, False)
            case ast.Constant(value=bool()):
                raise self._refuse("True and False are no numbers", "write a number")
            case ast.Constant(value=int() | float() as number):
                if not abs(number) < 1e30:
                    raise self._refuse("a number is too large", "lower it")
            case ast.Name(id=name):
                if name not in self._known:
                    near = did_you_mean(name, self._known)
                    raise self._refuse(f"unknown name {name}{near}", "use a known name")
                self.names.add(name)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
                least = 2 if name in ("min", "max") else 1
                if not least <= len(args) <= 2:
                    raise self._refuse(f"{name} takes {least} to 2 numbers", "as ceil(x, 256)")
                for arg in args:
                    self._check(arg, False)
            case ast.Call():
                raise self._refuse("calls what cannot be called", f"call {', '.join(FUNCTIONS)}")
            case _:
                raise self._refuse("cannot be read", "use numbers, names and + - * / // %")

    def value(self, names: Mapping[str, Any]) -> Ratio:
        """Return the exact value where ``names`` gives each name an int or an integer array.

        Raises ``InputError`` for a division by zero.
        """
        return self._value(self.tree, names)

    def _value(self, node: ast.expr, names: Mapping[str, Any]) -> Ratio:
        match node:
            case ast.Constant(value=int() | float() as number):
                exact = Fraction(str(number))
                return Ratio(exact.numerator, exact.denominator)
            case ast.Name(id=name):
                return Ratio(names[name], 1)
            case ast.UnaryOp(operand=operand):
                a = self._value(operand, names)
                return Ratio(-a.top, a.bottom)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operate(op, self._value(left, names), self._value(right, names))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [self._value(arg, names) for arg in args])
        raise AssertionError("checked when it was parsed")

    def _operate(self, op: ast.operator, a: Ratio, b: Ratio) -> Ratio:
        if isinstance(op, ast.Add | ast.Sub):
            x, y = times(a.top, b.bottom), times(b.top, a.bottom)
            return Ratio(plus(x, y if isinstance(op, ast.Add) else -y), times(a.bottom, b.bottom))
        if isinstance(op, ast.Mult):
            return Ratio(times(a.top, b.top), times(a.bottom, b.bottom))
        if _any(b.top == 0):
            raise self._refuse("divides by zero", "keep the divisor above 0")
        top, bottom = times(a.top, b.bottom), times(a.bottom, b.top)
        if isinstance(op, ast.Div):
            negative = bottom < 0
            return Ratio(_flip(top, negative), _flip(bottom, negative))
        whole = top // bottom
        if isinstance(op, ast.FloorDiv):
            return Ratio(whole, 1)
        rest = plus(top, -times(whole, bottom))
        return Ratio(rest, times(a.bottom, b.bottom))

    def _call(self, name: str, args: list[Ratio]) -> Ratio:
        a = args[0]
        if name in ("min", "max"):
            b = args[1]
            x, y = times(a.top, b.bottom), times(b.top, a.bottom)
            bottom = times(a.bottom, b.bottom)
            return Ratio((minimum if name == "min" else maximum)(x, y), bottom)
        m = args[1] if len(args) == 2 else Ratio(1, 1)
        if _any(m.top <= 0):
            raise self._refuse(f"{name} to a multiple that is not above 0", "give 1 or more")
        top, bottom = times(a.top, m.bottom), times(a.bottom, m.top)
        if name == "floor":
            count = top // bottom
        elif name == "ceil":
            count = -(-top // bottom)
        else:
            count = plus(times(top, 2), bottom) // times(bottom, 2)
        return Ratio(times(count, m.top), m.bottom)

    def holds(self, names: Mapping[str, Any]) -> Any:
        """Return whether a condition holds, a bool or a bool array."""
        return self._holds(self.tree, names)

    def _holds(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        match node:
            case ast.BoolOp(op=op, values=values):
                result = self._holds(values[0], names)
                for value in values[1:]:
                    other = self._holds(value, names)
                    result = result & other if isinstance(op, ast.And) else result | other
                return result
            case ast.UnaryOp(operand=operand):
                inner = self._holds(operand, names)
                return not inner if isinstance(inner, bool) else ~inner
            case ast.Compare(left=left, ops=ops, comparators=rights):
                result = True
                a = self._value(left, names)
                for comparison, right in zip(ops, rights, strict=True):
                    b = self._value(right, names)
                    result = result & compare(
                        comparison, times(a.top, b.bottom), times(b.top, a.bottom)
                    )
                    a = b
                return result
        raise AssertionError("checked when it was parsed")


def compare(op: ast.cmpop, x: Any, y: Any) -> Any:
    """Return the comparison of two numbers or arrays."""
    if isinstance(op, ast.Lt):
        return x < y
    if isinstance(op, ast.LtE):
        return x <= y
    if isinstance(op, ast.Gt):
        return x > y
    if isinstance(op, ast.GtE):
        return x >= y
    return x == y if isinstance(op, ast.Eq) else x != y


def times(x: Any, y: Any) -> Any:
    """Return a product that never wraps: in Python ints where int64 might not hold it."""
    if type(y) is int and y == 1:
        return x
    if type(x) is int and x == 1:
        return y
    return _wide(x, y) * y if _size(x) * _size(y) >= _ROOM else x * y


def plus(x: Any, y: Any) -> Any:
    """Return a sum that never wraps."""
    return _wide(x, y) + y if _size(x) + _size(y) >= _ROOM else x + y


_ROOM = 2.0**62


def _size(x: Any) -> float:
    """The largest absolute value, as a float that is only compared with a wide margin."""
    if isinstance(x, int):
        return float(abs(x)) if abs(x) < 10**300 else float("inf")
    if x.dtype == object:
        return 0.0  # Python ints hold anything
    return max(abs(float(x.max(initial=0))), abs(float(x.min(initial=0))))


def _wide(x: Any, y: Any) -> Any:
    """x as Python ints, where it or its partner is an array."""
    if hasattr(x, "astype"):
        return x.astype(object)
    if hasattr(y, "astype"):
        return y.astype(object) * 0 + x
    return x


def _any(value: Any) -> bool:
    return bool(value.any()) if hasattr(value, "any") else bool(value)


def _flip(value: Any, negative: Any) -> Any:
    return value * (1 - 2 * negative)
