"""A formula as the text of a spreadsheet cell.

A ``Formula`` (``paramcalc.symbols``) is what the ledger's counting code yields on symbols; each of
its named numbers is called as the cell or defined name that holds it. Only ``INT``, ``MIN``,
``MAX``, ``AND`` and the four operations are written, which LibreOffice and Excel share.

Why ``INT(a/b)`` is the exact floor of two whole numbers: for a < 2^53 the quotient lies at least
1/b below the next whole number, which is more than half the spacing of doubles there (a/b x
2^-53), so the division is never rounded up to it. Spreadsheets do more: ``INT`` first rounds its
argument to 15 digits, which may take a quotient up to the next whole number once a passes
2 x 10^14. Where a numerator may, the quotient is compared with it once more
(``INT(a/b)-(INT(a/b)*b>a)``): products and comparisons of whole numbers are exact up to 2^53.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from paramcalc.symbols import Atom, Formula, Product, lift

ROUNDED_ABOVE = 2**53
"""Whole numbers above this are not all doubles."""
PLAIN_BELOW = 2 * 10**14
"""``INT`` of a quotient whose numerator stays below this is the exact floor."""
LONG = 160
"""Letters of a part of a formula that is given a cell of its own where there are cells to give."""
MOST_TEXT = 6_000
"""Letters of one formula; a spreadsheet takes 8,192."""

_REFERENCE = re.compile(r"[\w!$.]+")
Hold = Callable[[Formula, str], str]
"""Puts a formula, with its text, into a cell of its own and returns the cell's reference."""


class Writer:
    """Writes formulas as text of cells.

    ``limits`` gives the most that a named number may be; without a limit it may be anything up to
    2^53. ``hold`` gives long parts a cell of their own, and ``power`` writes an atom of that name:
    without it a formula that has one raises ``ValueError``.
    """

    def __init__(
        self,
        limits: dict[str, int],
        hold: Hold | None = None,
        power: Callable[[Atom], str] | None = None,
    ) -> None:
        self.limits = limits
        self.hold = hold
        self.power = power
        self._atoms: dict[Atom, str] = {}
        self._bounds: dict[Atom, int] = {}

    def cell(self, value: Any) -> str:
        """Return the text of a cell that holds a number or a formula, ``=`` included."""
        return "=" + self.text(value)

    def text(self, value: Any) -> str:
        """Return a number or a formula as text without ``=``."""
        terms = [self._term(product, count) for product, count in lift(value).terms.items()]
        if not terms:
            return "0"
        if self.hold is not None and sum(map(len, terms)) > MOST_TEXT:
            terms = self._packed(lift(value))
        first = terms[0]
        if first.startswith("+"):
            first = first[1:]
        return _bare(first + "".join(terms[1:]))

    def _packed(self, formula: Formula) -> list[str]:
        """The terms of a long formula in cells of their own, several together."""
        assert self.hold is not None
        cells, terms, size = [], {}, 0
        for product, count in formula.terms.items():
            terms[product] = count
            size += len(self._term(product, count))
            if size > MOST_TEXT // 2:
                cells.append(self._cell_of(terms))
                terms, size = {}, 0
        if terms:
            cells.append(self._cell_of(terms))
        return [f"+{cell}" for cell in cells]

    def _cell_of(self, terms: dict[Product, int]) -> str:
        assert self.hold is not None
        part = Formula(terms, sum(c * _value(product) for product, c in terms.items()))
        return self.hold(part, self.text(part))

    def _term(self, product: Product, count: int) -> str:
        factors = [text for atom, power in product for text in [self._atom(atom)] * power]
        size = abs(count)
        if size != 1 or not factors:
            factors.insert(0, str(size))
        return ("-" if count < 0 else "+") + "*".join(factors)

    def _atom(self, atom: Atom) -> str:
        if not atom.parts:
            return atom.name
        if atom not in self._atoms:
            self._atoms[atom] = self._made(atom)
        return self._atoms[atom]

    def _made(self, atom: Atom) -> str:
        if atom.name in ("min", "max"):
            parts = dict.fromkeys(self._part(part) for part in _flat(atom))
            joined = ",".join(parts)
            return f"{atom.name.upper()}({joined})" if len(parts) > 1 else f"({joined})"
        if atom.name == "power":
            if self.power is None:
                raise ValueError("a power needs cells of its own")
            return self.power(atom)
        return self._quotient(atom)

    def _part(self, formula: Formula) -> str:
        """A formula inside another: long ones in a cell of their own."""
        text = self.text(formula)
        if self.hold is not None and len(text) > LONG:
            return self.hold(formula, text)
        return text

    def _quotient(self, atom: Atom) -> str:
        up = atom.name == "ceil"
        top, bottom = atom.parts
        a, b = self._part(top), self._part(bottom)
        if len(bottom.terms) > 1 or "*" in b:
            b = f"({b})"
        sum_ = len(top.terms) > 1 and ("+" in a[1:] or "-" in a[1:])
        whole = f"-({a})" if up and sum_ else f"-{a}" if up else f"({a})" if sum_ else a
        plain = f"-INT({whole}/{b})" if up else f"INT({whole}/{b})"
        if self.most(top) < PLAIN_BELOW:
            return f"({plain})" if up else plain
        if self.hold is not None:
            a, b = self._held(top, a), self._held(bottom, b)
            plain = f"-INT(-{a}/{b})" if up else f"INT({a}/{b})"
        return f"({plain}+({plain}*{b}<{a}))" if up else f"({plain}-({plain}*{b}>{a}))"

    def _held(self, formula: Formula, text: str) -> str:
        """The reference of a cell that holds a formula: the text itself where it is one."""
        if self.hold is None or _REFERENCE.fullmatch(text):
            return text
        return self.hold(formula, _bare(text))

    def most(self, formula: Formula) -> int:
        """Return a bound that no value of a formula passes while its inputs keep their limits."""
        total = 0
        for product, count in formula.terms.items():
            term = abs(count)
            for atom, power in product:
                term *= self._most_of(atom) ** power
            total += term
        return total

    def _most_of(self, atom: Atom) -> int:
        if not atom.parts:
            return self.limits.get(atom.name, ROUNDED_ABOVE)
        if atom not in self._bounds:
            parts = [self.most(part) for part in atom.parts]
            if atom.name == "power":
                bound = 1 << 30
            elif atom.name in ("min", "max"):
                bound = (min if atom.name == "min" else max)(parts)
            else:
                divisor = atom.parts[1].constant or 1
                bound = -(-parts[0] // abs(divisor))
            self._bounds[atom] = bound
        return self._bounds[atom]


def _value(product: Product) -> int:
    value = 1
    for atom, power in product:
        value *= atom.value**power
    return value


def _flat(atom: Atom) -> list[Formula]:
    """The parts of a minimum or maximum, those of one of the same kind inside it taken apart."""
    found = []
    for part in atom.parts:
        inner = next(iter(part.terms)) if len(part.terms) == 1 else ()
        same = len(inner) == 1 and inner[0][1] == 1 and part.terms[inner] == 1
        if same and inner[0][0].name == atom.name and inner[0][0].parts:
            found += _flat(inner[0][0])
        else:
            found.append(part)
    return found


def _bare(text: str) -> str:
    """A text without a pair of brackets around the whole."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text


class Condition(NamedTuple):
    """A comparison of two formulas, or several that must all hold (``both``), with its truth."""

    left: Formula
    sign: str
    right: Formula
    holds: bool
    both: tuple[Condition, ...] = ()

    def __and__(self, other: Any) -> Condition:
        return self._replace(holds=self.holds and other.holds, both=(*self._all(), other))

    def _all(self) -> tuple[Condition, ...]:
        return self.both or (self,)

    def text(self, writer: Writer) -> str:
        """Return the condition as text."""
        texts = [f"{writer.text(c.left)}{c.sign}{writer.text(c.right)}" for c in self._all()]
        return texts[0] if len(texts) == 1 else f"AND({','.join(texts)})"


class Live:
    """A number for rules: a formula with a remainder, whose comparisons are conditions of cells.

    ``rules.fits`` and ``deploy.columns.fits`` run on it as they do on ints and arrays. To compare
    is all it adds: counting code gets plain formulas.
    """

    def __init__(self, formula: Formula) -> None:
        self.formula = formula

    def __add__(self, other: Any) -> Live:
        return Live(self.formula + _formula(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> Live:
        return Live(self.formula - _formula(other))

    def __rsub__(self, other: Any) -> Live:
        return Live(_formula(other) - self.formula)

    def __neg__(self) -> Live:
        return Live(-self.formula)

    def __mul__(self, other: Any) -> Live:
        return Live(self.formula * _formula(other))

    __rmul__ = __mul__

    def __floordiv__(self, other: Any) -> Live:
        return Live(self.formula // _formula(other))

    def __rfloordiv__(self, other: Any) -> Live:
        return Live(_formula(other) // self.formula)

    def __mod__(self, other: Any) -> Live:
        whole: Live = self // other * other
        return self - whole

    def __rmod__(self, other: Any) -> Live:
        return Live(_formula(other)) % self

    def __gt__(self, other: Any) -> Condition:
        return _compared(self, ">", other)

    def __lt__(self, other: Any) -> Condition:
        return _compared(self, "<", other)

    def __ne__(self, other: Any) -> Condition:  # type: ignore[override]
        return _compared(self, "<>", other)

    def __eq__(self, other: Any) -> Condition:  # type: ignore[override]
        return _compared(self, "=", other)

    __hash__ = None  # type: ignore[assignment]

    @staticmethod
    def min_or_max(a: Any, b: Any, which: int) -> Live:
        """Minimum (0) or maximum (1), called by ``paramcalc.numbers``."""
        return Live(Formula.min_or_max(_formula(a), _formula(b), which))


_HOLDS: dict[str, Callable[[int, int], bool]] = {
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
}


def _compared(a: Any, sign: str, b: Any) -> Condition:
    left, right = _formula(a), _formula(b)
    return Condition(left, sign, right, _HOLDS[sign](left.value, right.value))


def _formula(value: Any) -> Formula:
    return value.formula if isinstance(value, Live) else lift(value)
