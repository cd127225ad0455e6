"""The arithmetic that is the same for ints, NumPy arrays and symbols.

Counting code uses ``+ - * //`` and the three functions here, and never an ``if`` on the size of a
dimension. To the type checker a ``Num`` is an ``int``, which is what callers get; an integer array
or a symbol (``paramcalc.symbols``, sympy) may stand in its place at run time.

Nothing is imported for the operands: a NumPy or sympy value brings its own module with it, which
keeps both libraries out of programs that count with plain ints.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

Num: TypeAlias = int

_NAMES = {"numpy": ("minimum", "maximum"), "sympy": ("Min", "Max")}


def _choose(a: Any, b: Any, which: int) -> Any:
    """Return min (which=0) or max (which=1) of two numbers that are not both ints."""
    for operand in (a, b):
        kind = type(operand)
        own = getattr(kind, "min_or_max", None)
        if own is not None:
            return own(a, b, which)
        package = kind.__module__.partition(".")[0]
        if package in _NAMES:
            return getattr(sys.modules[package], _NAMES[package][which])(a, b)
    raise TypeError(f"no minimum or maximum of {type(a).__name__} and {type(b).__name__}")


def minimum(a: Num, b: Num) -> Num:
    """Return the smaller of two numbers, elementwise for arrays."""
    if type(a) is int and type(b) is int:
        return min(b, a)
    result: Num = _choose(a, b, 0)
    return result


def maximum(a: Num, b: Num) -> Num:
    """Return the larger of two numbers, elementwise for arrays."""
    if type(a) is int and type(b) is int:
        return max(b, a)
    result: Num = _choose(a, b, 1)
    return result


def fixed_power(base: Num, exponent: Num) -> Num:
    """Return ``base`` to a power, both the base and the result in units of 2^-30, rounded down.

    For shares from 0 to 1 to a whole power: the chance that n draws all miss. Squares are taken
    and rounded in the same order for every kind of number, so that all of them agree.
    """
    for operand in (base, exponent):
        own = getattr(type(operand), "fixed_power", None)
        if own is not None:
            result: Num = own(base, exponent)
            return result
    power: Any = ONE
    left: Any = exponent
    whole = type(exponent) is int
    square = base
    while left > 0 if whole else (left > 0).any():
        odd = left & 1
        power = power + odd * ((power * square >> BITS) - power)
        square = square * square >> BITS
        left = left >> 1
    found: Num = power
    return found


BITS = 30
ONE = 1 << BITS
"""One, in the units of ``fixed_power``."""


def ceil_div(a: Num, b: Num) -> Num:
    """Return ``a / b`` rounded up to a whole number (floor division of the negated numerator)."""
    return -(-a // b)


def triangle(n: Num) -> Num:
    """Return 1 + 2 + ... + n, the causal pairs of n tokens."""
    return n * (n + 1) // 2
