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
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from paramcalc.symbols import Atom, Formula, Product, lift

ROUNDED_ABOVE = 2**53
"""Whole numbers above this are not all doubles."""
PLAIN_BELOW = 2 * 10**14
"""``INT`` of a quotient whose numerator stays below this is the exact floor."""
LONG = 160
"""Letters of a part of a formula that is given a cell of its own where there are cells to give."""
LONG_FACTOR = 1_000
"""Letters of a factor of a product; a longer one is given a cell of its own, too."""
MOST_TEXT = 6_000
"""Letters of one formula; a spreadsheet takes ``MOST_LETTERS``."""
MOST_LETTERS = 8_192
MOST_PARTS = 200
"""Parts of one ``MIN`` or ``MAX``; a spreadsheet takes 255."""

T = TypeVar("T")
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
        if self.hold is not None and len(terms) > 1 and sum(map(len, terms)) > MOST_TEXT:
            terms = self._packed(lift(value))
        first = terms[0]
        if first.startswith("+"):
            first = first[1:]
        return _bare(first + "".join(terms[1:]))

    def _packed(self, formula: Formula) -> list[str]:
        """The terms of a long formula in cells of their own, several together."""
        assert self.hold is not None
        cells = []
        for group in _groups(formula.terms, lambda p: len(self._term(p, formula.terms[p]))):
            terms = {product: formula.terms[product] for product in group}
            part = Formula(terms, sum(c * _value(product) for product, c in terms.items()))
            cells.append(f"+{self.hold(part, self.text(part))}")
        return cells

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
            text = self._made(atom)
            if self.hold is not None and len(text) > LONG_FACTOR:
                text = self.hold(_of(atom), _bare(text))
            self._atoms[atom] = text
        return self._atoms[atom]

    def _made(self, atom: Atom) -> str:
        if atom.name in ("min", "max"):
            return self._choice(atom.name, {self.part(part): part for part in atom.parts})
        if atom.name == "power":
            if self.power is None:
                raise ValueError("a power needs cells of its own")
            return self.power(atom)
        return self._quotient(atom)

    def _choice(self, name: str, parts: dict[str, Formula]) -> str:
        """A minimum or maximum of parts; many of them are taken together in several."""
        joined = ",".join(parts)
        if len(parts) == 1:
            return f"({joined})"
        if len(parts) <= MOST_PARTS and (self.hold is None or len(joined) <= MOST_TEXT):
            return f"{name.upper()}({joined})"
        groups: dict[str, Formula] = {}
        for texts in _groups(parts, len if self.hold is not None else lambda _: 0):
            inside = tuple(parts[text] for text in texts)
            value = (min if name == "min" else max)(part.value for part in inside)
            whole = _of(Atom(name, value, inside))
            text = self._choice(name, {text: parts[text] for text in texts})
            groups[text if self.hold is None else self.hold(whole, _bare(text))] = whole
        return self._choice(name, groups)

    def part(self, value: Any) -> str:
        """Return a number or a formula as text inside another's: where it is long, in a cell of
        its own."""
        formula = lift(value)
        text = self.text(formula)
        if self.hold is not None and len(text) > LONG:
            return self.hold(formula, text)
        return text

    def _quotient(self, atom: Atom) -> str:
        up = atom.name == "ceil"
        top, bottom = atom.parts
        a, b = self.part(top), self.part(bottom)
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


def _of(atom: Atom) -> Formula:
    return Formula({((atom, 1),): 1}, atom.value)


def _groups(items: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """Items in their order, several together while their text stays short."""
    group: list[T] = []
    letters = 0
    for item in items:
        group.append(item)
        letters += size(item)
        if letters > MOST_TEXT // 2 or len(group) == MOST_PARTS:
            yield group
            group, letters = [], 0
    if group:
        yield group


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
