"""Rules as conditions of cells: numbers whose comparisons are text of a spreadsheet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from paramcalc.symbols import Formula, lift
from paramcalc.views.cells import Writer


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
        texts = [f"{writer.part(c.left)}{c.sign}{writer.part(c.right)}" for c in self._all()]
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
