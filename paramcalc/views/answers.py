"""Answers: a model's quantities at one context and batch, and what they were before overrides."""

from __future__ import annotations

from paramcalc import formats
from paramcalc.model import Model
from paramcalc.numbers import Num
from paramcalc.quantities.catalogue import CATALOGUE, At, Known, evaluate


class Answers:
    """``values`` by stable name; ``before`` holds those of ``base``, the model without overrides.

    Raises ``InputError`` for a ``kv_dtype`` that no cache has.
    """

    def __init__(self, model: Model, base: Model | None, batch: int, kv_dtype: str) -> None:
        self.model = model
        self.base = base
        self.kv_dtype = formats.kv_format(kv_dtype)
        self.at = At(model.context, batch, self.kv_dtype.bits)
        self.values = evaluate(model.ledger, self.at)
        self.before: dict[str, Num | None] = {}
        if base is not None:
            self.before = evaluate(base.ledger, self.at._replace(n=base.context))

    @property
    def assumed_context(self) -> bool:
        """Whether the context is a default and not the model's or the user's."""
        return self.model.spec.context is None

    def change(self, key: str) -> int | None:
        """Return by how much a quantity changed; None if it did not or is not known."""
        now, then = self.values[key], self.before.get(key)
        return None if now is None or then is None or now == then else now - then

    def known(self, key: str) -> Known:
        """Return how a quantity is known; what rests on a default context is assumed, and
        everything where the model was read by assumption."""
        quantity = CATALOGUE[key]
        if self.model.assumed:
            return "assumed"
        return "assumed" if self.assumed_context and quantity.needs_context else quantity.known
