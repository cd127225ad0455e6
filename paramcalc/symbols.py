"""Symbols: numbers that remember how they were made.

A ``Symbol`` stands where an int would and carries its value along. Counting code that runs on
symbols yields its own formula: as text with names, as text with numbers, and as the integer. A
formula is kept as a sum of products (a polynomial), whose factors may be floors, minima and maxima.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakValueDictionary

from paramcalc.numbers import fixed_power

Factor = tuple["Atom", int]
Product = tuple[Factor, ...]

_ORDER = ["L", "E", "k", "B", "n", "V", "H", "H_kv", "d_h", "d_v", "d", "d_ff", "d_e", "d_s"]


class _Made:
    """A way of making an atom, known by itself: to compare two takes no look inside them."""

    __slots__ = ("__weakref__",)


_MADE: WeakValueDictionary[Any, _Made] = WeakValueDictionary()
"""Each way that some atom is made, by the atom's name and parts."""


class Atom:
    """A named number, or a ``floor``, ``ceil`` or ``power`` of two formulas, or the ``min`` or
    ``max`` of two or more.

    Atoms made in the same way are equal, whatever their values, so that like terms meet.
    """

    def __init__(self, name: str, value: int, parts: tuple[Formula, ...] = ()) -> None:
        self.name = name
        self.value = value
        self.parts = parts
        self._made = _MADE.setdefault((name, parts), _Made())
        self._hash = hash(self._made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self._made is other._made

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def key(self) -> tuple[int, str]:
        """What orders factors inside a product, the same for equal atoms: the card's order, then
        a text that no value and no order of terms changes."""
        if self.parts:
            return len(_ORDER), f"{self.name}({', '.join(map(_plain, self.parts))})"
        base = self.name.partition("[")[0]
        return _ORDER.index(base) if base in _ORDER else len(_ORDER), self.name

    def text(self, show: Show) -> str:
        """Return the atom as text, its named numbers shown by ``show``.

        A quotient that is whole for these values is written without floor or ceil.
        """
        if not self.parts:
            return show(self)
        texts = [part.text(show) for part in self.parts]
        if self.name in ("min", "max", "power"):
            return f"{self.name}({', '.join(texts)})"
        a, b = texts
        wrap = "({})" if len(self.parts[0].terms) > 1 else "{}"
        fraction = f"{wrap.format(a)}/{b if b.isidentifier() or b.isdigit() else f'({b})'}"
        exact = self.parts[0].value % self.parts[1].value == 0
        return f"({fraction})" if exact else f"{self.name}({fraction})"


Show = Callable[[Atom], str]
"""What a named number is written as."""


class Formula:
    """A sum of products with its value. Arithmetic with ints and other formulas gives formulas."""

    def __init__(self, terms: dict[Product, int], value: int) -> None:
        self.terms = terms if all(terms.values()) else {p: c for p, c in terms.items() if c}
        self.value = value

    def __add__(self, other: Any) -> Formula:
        other = lift(other)
        if not other.terms:
            return self
        terms = dict(self.terms)
        for product, count in other.terms.items():
            terms[product] = terms.get(product, 0) + count
        return Formula(terms, self.value + other.value)

    __radd__ = __add__

    def __neg__(self) -> Formula:
        return Formula({p: -c for p, c in self.terms.items()}, -self.value)

    def __sub__(self, other: Any) -> Formula:
        return self + -lift(other)

    def __rsub__(self, other: Any) -> Formula:
        result: Formula = lift(other) + -self
        return result

    def __mul__(self, other: Any) -> Formula:
        times = other if type(other) is int else lift(other).constant
        if times == 1:
            return self
        if times is not None:
            return Formula({p: c * times for p, c in self.terms.items()}, self.value * times)
        if len(self.terms) == len(other.terms) == 1:
            ((a, m),) = self.terms.items()
            ((b, n),) = other.terms.items()
            return Formula({_multiply(a, b): m * n}, self.value * other.value)
        terms: dict[Product, int] = {}
        for a, m in self.terms.items():
            for b, n in other.terms.items():
                product = _multiply(a, b)
                terms[product] = terms.get(product, 0) + m * n
        return Formula(terms, self.value * other.value)

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Formula:
        other = lift(other)
        divisor = other.constant
        if divisor and all(c % divisor == 0 for c in self.terms.values()):
            terms = {p: c // divisor for p, c in self.terms.items()}
            return Formula(terms, self.value // divisor)
        moving = [c for p, c in self.terms.items() if p]
        if moving and all(c < 0 for c in moving):
            value = -(self.value // other.value)
            return -_of(Atom("ceil", value, (-self, other)))
        return _of(Atom("floor", self.value // other.value, (self, other)))

    def __rfloordiv__(self, other: Any) -> Formula:
        return lift(other) // self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula | int) and self.terms == lift(other).terms

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(frozenset(self.terms.items()))

    @property
    def constant(self) -> int | None:
        """The number this is if no symbol is in it, else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    def _choice(self, which: int) -> tuple[Formula, ...]:
        """What this is the minimum (0) or maximum (1) of: its parts if it is one, else itself."""
        if len(self.terms) == 1:
            ((product, count),) = self.terms.items()
            if count == 1 and len(product) == 1 and product[0][1] == 1:
                atom = product[0][0]
                if atom.name == ("min", "max")[which] and atom.parts:
                    return atom.parts
        return (self,)

    @staticmethod
    def min_or_max(a: Any, b: Any, which: int) -> Formula:
        """Minimum (0) or maximum (1), called by ``paramcalc.numbers``.

        One of the same kind inside is taken apart, so that many together are no deep nest.
        """
        x, y = lift(a), lift(b)
        for one, other in ((x, y), (y, x)):
            if which == 0 and one.constant in (0, 1) and other.constant is None:
                return one  # a size is at least 1
            if set(one._choice(which)) <= set(other._choice(which)):
                return other
        value = (min, max)[which](x.value, y.value)
        parts = tuple(dict.fromkeys((*x._choice(which), *y._choice(which))))
        return _of(Atom(("min", "max")[which], value, parts))

    @staticmethod
    def fixed_power(base: Any, exponent: Any) -> Formula:
        """A share to a whole power in units of 2^-30, called by ``paramcalc.numbers``."""
        x, y = lift(base), lift(exponent)
        return _of(Atom("power", fixed_power(x.value, y.value), (x, y)))

    def text(self, show: Show = lambda atom: atom.name) -> str:
        """Return the formula with names, or with whatever ``show`` gives for a named number."""
        parts: list[str] = []
        for product, count in self.terms.items():
            factors = [atom.text(show) + _power(power) for atom, power in product]
            size = abs(count)
            if size != 1 or not factors:
                factors.insert(0, f"{size:,}")
            sign = ("-" if count < 0 else "") if not parts else (" - " if count < 0 else " + ")
            parts.append(sign + "·".join(factors))
        text = "".join(parts) or "0"
        return text[1:-1] if len(self.terms) == 1 and _wrapped(text) else text

    def numbers(self) -> str:
        """Return the formula with each named number written as its value."""
        return self.text(lambda atom: f"{atom.value:,}")


def symbol(name: str, value: int) -> Formula:
    """Return a named number."""
    return _of(Atom(name, value))


def lift(value: Any) -> Formula:
    """Return an int as a formula; a formula stays as it is."""
    if isinstance(value, Formula):
        return value
    return Formula({(): int(value)}, int(value))


def _of(atom: Atom) -> Formula:
    return Formula({((atom, 1),): 1}, atom.value)


def _plain(formula: Formula) -> str:
    """A formula as text that tells it from others and is the same for equal ones."""
    return "+".join(
        sorted(
            f"{count}*" + "*".join(f"{atom.key[1]}^{power}" for atom, power in product)
            for product, count in formula.terms.items()
        )
    )


def _wrapped(text: str) -> bool:
    """Whether one pair of brackets holds the whole text."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return sign == ")" and place == len(text) - 1
    return False


def _power(power: int) -> str:
    return "" if power == 1 else "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(digit)] for digit in str(power))


def _multiply(a: Product, b: Product) -> Product:
    if not a or not b:
        return a or b
    if a[-1][0].key < b[0][0].key:  # in order as they are
        return a + b
    powers = dict(a)
    for atom, power in b:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: item[0].key))
