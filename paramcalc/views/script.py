"""Formulas as JavaScript on BigInt, which has no largest integer: every digit is exact.

A ``Formula`` (``paramcalc.symbols``) is what the ledger's counting code yields on symbols. A
``Script`` writes many of them as one list of functions without arguments, over variables that hold
the symbols. What occurs twice is written once: equal formulas, floors and minima, and whole
formulas inside others (a total is written as the sum of its parts).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import reduce
from math import gcd
from typing import Any

from paramcalc.numbers import BITS
from paramcalc.symbols import Atom, Formula, lift

HELPERS = f"""\
const floor=(a,b)=>{{const q=a/b,r=a%b;return r!==0n&&r<0n!==b<0n?q-1n:q}};
const ceil=(a,b)=>-floor(-a,b);
const min=(a,...r)=>{{for(const b of r)if(b<a)a=b;return a}};
const max=(a,...r)=>{{for(const b of r)if(b>a)a=b;return a}};
const power=(a,e)=>{{let p=1n<<{BITS}n;for(;e>0n;e>>=1n){{if(e&1n)p=p*a>>{BITS}n;a=a*a>>{BITS}n}}\
return p}};
"""
"""What the functions call: the same floor, ceiling, minimum, maximum and rounded power as
``paramcalc.numbers``. BigInt's own division rounds towards zero."""

_TAKEN = {
    *("floor", "ceil", "min", "max", "power", "f", "F", "SET", "memo", "forget"),
    *("do", "if", "in", "of", "for", "let", "new", "try", "var"),
}
_MULTIPLIERS = 3
"""Ratios of coefficients that are tried when one formula may hold another."""

Term = tuple[tuple[int, int], ...]
"""A product: (number of an atom, power), in order."""
Sum = dict[Term, int]


class Script:
    """Formulas as one JavaScript text. ``add`` returns the number under which ``f`` gives one.

    A named number becomes a variable; ``names`` says under which short identifier.
    """

    def __init__(self, names: dict[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self._variables: dict[str, str] = {}
        self._atoms: dict[Any, int] = {}
        self._texts: list[str] = []
        """What an atom is called inside a formula."""
        self._sums: list[Sum] = []
        self._numbers: dict[Any, int] = {}
        self._functions: list[str] = []

    def add(self, formula: Any, near: Iterable[int] = ()) -> int:
        """Write a formula or an int and return its number.

        ``near`` are numbers of formulas that it may be written by where that is shorter.
        """
        terms = self._terms(lift(formula))
        key = frozenset(terms.items())
        if key not in self._numbers:
            self._numbers[key] = self._write(self._shortened(terms, near), terms)
        return self._numbers[key]

    def source(self) -> str:
        """Return the script: the variables, ``SET`` (a setter for each name), ``f`` and ``forget``.

        ``f(i)`` is the value of formula i for what is set, kept until ``forget()``.
        """
        variables = ",".join(f"{name}=0n" for name in self._variables.values())
        setters = ",".join(
            f"{_quoted(name)}:x=>{{{variable}=x}}" for name, variable in self._variables.items()
        )
        functions = ",\n".join(f"()=>{text}" for text in self._functions)
        return (
            f"{HELPERS}{f'let {variables};' if variables else ''}\n"
            f"const SET={{{setters}}};\nconst F=[\n{functions}\n];\n"
            "let memo=[];const forget=()=>{memo=[]};\n"
            "const f=i=>memo[i]===undefined?memo[i]=F[i]():memo[i];\n"
        )

    def _write(self, terms: Sum, meaning: Sum) -> int:
        self._functions.append(_sum(terms, self._texts))
        self._sums.append(meaning)
        return len(self._functions) - 1

    def _terms(self, formula: Formula) -> Sum:
        found: Sum = {}
        for product, count in formula.terms.items():
            term = tuple(sorted((self._atom(atom), power) for atom, power in product))
            found[term] = found.get(term, 0) + count
        return found

    def _atom(self, atom: Atom) -> int:
        """The number of an atom: a variable, or a function of its parts that is kept."""
        if atom not in self._atoms:
            text = self._call(atom) if atom.parts else self._variable(atom.name)
            self._atoms[atom] = len(self._texts)
            self._texts.append(text)
        return self._atoms[atom]

    def _call(self, atom: Atom) -> str:
        terms = [self._terms(part) for part in atom.parts]  # may write other functions first
        inside = ",".join(_sum(part, self._texts) for part in terms)
        self._functions.append(f"{atom.name}({inside})")
        self._sums.append({})
        return f"f({len(self._functions) - 1})"

    def _variable(self, name: str) -> str:
        if name not in self._variables:
            stem = re.sub(r"\W", "_", self._names.get(name, name), flags=re.ASCII) or "_"
            stem = f"_{stem}" if stem[0].isdigit() or stem in _TAKEN else stem
            taken, variable, number = set(self._variables.values()), stem, 1
            while variable in taken:
                number += 1
                variable = f"{stem}${number}"
            self._variables[name] = variable
        return self._variables[name]

    def _shortened(self, terms: Sum, near: Iterable[int]) -> Sum:
        """The same formula with whole other ones inside it, each as one more term."""
        others = [n for n in near if len(self._sums[n]) > 1]
        calls: Sum = {}
        while True:
            best, found = len(terms), None
            for number in others:
                other = self._sums[number]
                ratios = Counter(
                    terms[t] // c for t, c in other.items() if t in terms and terms[t] % c == 0
                )
                for ratio, _ in ratios.most_common(_MULTIPLIERS):
                    rest = _minus(terms, other, ratio)
                    if len(rest) + 1 < best:
                        best, found = len(rest) + 1, (number, ratio, rest)
            if found is None:
                return terms | calls
            number, ratio, terms = found
            call = ((self._reference(number), 1),)
            calls[call] = calls.get(call, 0) + ratio

    def _reference(self, number: int) -> int:
        """The atom that stands for another formula."""
        key = ("f", number)
        if key not in self._atoms:
            self._atoms[key] = len(self._texts)
            self._texts.append(f"f({number})")
        return self._atoms[key]


def javascript(formula: Any, names: dict[str, str] | None = None) -> tuple[str, int]:
    """Return one formula as a script of its own, and its number in it (see ``Script``)."""
    script = Script(names)
    number = script.add(formula)
    return script.source(), number


def _minus(terms: Sum, other: Sum, ratio: int) -> Sum:
    rest = dict(terms)
    for term, count in other.items():
        left = rest.get(term, 0) - ratio * count
        if left:
            rest[term] = left
        else:
            rest.pop(term, None)
    return rest


def _sum(terms: Sum, texts: list[str]) -> str:
    """A sum of products, common factors taken out, the most common first."""
    if not terms:
        return "0n"
    uses = Counter(atom for term in terms for atom, _ in term)
    atom, count = max(uses.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
    if count < 2:
        return "".join(
            _signed(_product(term, c, texts), place)
            for place, (term, c) in enumerate(terms.items())
        )
    inside = {_without(term, atom): c for term, c in terms.items() if dict(term).get(atom)}
    rest = {term: c for term, c in terms.items() if not dict(term).get(atom)}
    common = reduce(gcd, inside.values())
    common = -common if all(c < 0 for c in inside.values()) else common
    bracket = _sum({term: c // common for term, c in inside.items()}, texts)
    text = f"{_product(((atom, 1),), common, texts)}*({bracket})"
    return text + "".join(_signed(part, 1) for part in ([_sum(rest, texts)] if rest else []))


def _signed(text: str, place: int) -> str:
    return text if not place or text.startswith("-") else f"+{text}"


def _without(term: Term, atom: int) -> Term:
    return tuple((a, p - (a == atom)) for a, p in term if a != atom or p > 1)


def _product(term: Term, count: int, texts: list[str]) -> str:
    factors = [texts[atom] for atom, power in term for _ in range(power)]
    if not factors:
        return f"{count}n"
    if abs(count) != 1:
        factors.insert(0, f"{abs(count)}n")
    return ("-" if count < 0 else "") + "*".join(factors)


def _quoted(text: str) -> str:
    """A JavaScript string that is inert inside an HTML script too."""
    quoted = json.dumps(text)
    for letter in "<>&":
        quoted = quoted.replace(letter, f"\\u{ord(letter):04x}")
    return quoted
