"""Model: a specification with its ledger, and every quantity as an attribute or a method."""

from __future__ import annotations

from copy import deepcopy
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from paramcalc import formats
from paramcalc.build import Plan, ledger_of, plan
from paramcalc.errors import SpecError
from paramcalc.ledger import Ledger
from paramcalc.quantities.asked import Flops, Memory, Params

if TYPE_CHECKING:
    from paramcalc.families import Reading
    from paramcalc.families.names import Stored
    from paramcalc.spec import ModelSpec

DEFAULT_CONTEXT = 2048
"""Tokens assumed where neither the model nor the caller states a context."""


_NOTED = {"assumed": "assumed", "left_out": "not_counted", "unused": "keys_not_used"}
"""What a reading notes, and the names for it in a preset's ``about``."""


class Model:
    """A model that can be asked. Immutable; ``with_`` returns a changed copy."""

    def __init__(
        self,
        spec: ModelSpec,
        *,
        name: str | None = None,
        asked: str | None = None,
        reading: Reading | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name or name or "model"
        self.asked = asked
        """The hub id that found a preset of another name, else None."""
        self.reading = reading
        """What its config.json says, else None."""

    @cached_property
    def plan(self) -> Plan:
        """The blocks and where they stand."""
        return plan(self.spec)

    @cached_property
    def ledger(self) -> Ledger:
        """Every tensor, operation and cache."""
        return ledger_of(self.plan)

    @cached_property
    def stored(self) -> list[Stored]:
        """What a checkpoint holds: fused and stacked as the release does, where that is known."""
        from paramcalc.families.names import stored

        if self.reading is None:
            return stored(self.ledger, {})
        return stored(self.ledger, self.reading.names, bare=self.reading.bare)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the figures rest on that no file states, in words; empty where they are exact."""
        return self._noted("assumed")

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the model has and the count does not, in words."""
        return self._noted("left_out")

    @property
    def unused_keys(self) -> tuple[str, ...]:
        """Keys of its config.json that might change shapes and were not used."""
        return self._noted("unused")

    def _noted(self, what: str) -> tuple[str, ...]:
        """What the reading says, and what a preset keeps of the reading that it was made from."""
        about = getattr(self.spec.about, _NOTED[what], ())
        return tuple(dict.fromkeys((*about, *getattr(self.reading, what, ()))))

    @property
    def released_format(self) -> str:
        """The format its weights are released in: what the preset or the config.json says, else
        bf16."""
        if self.spec.about is not None and self.spec.about.weights is not None:
            return self.spec.about.weights
        stated = self.reading.data.get("quantization_config") if self.reading else None
        return formats.of_config(stated) if isinstance(stated, dict) else "bf16"

    def format(self, name: str) -> formats.AnyFormat:
        """Return a format of weights, laid out for this model. Raises ``InputError``."""
        kind = self.reading.model_type if self.reading else None
        return formats.chosen(name, self.ledger, kind, self.name)

    @property
    def context(self) -> int:
        """Tokens that figures are given for: the spec's context, else 2,048 (assumed)."""
        return self.spec.context or DEFAULT_CONTEXT

    @cached_property
    def params(self) -> Params:
        """Parameter counts."""
        return Params(self.ledger)

    @cached_property
    def flops(self) -> Flops:
        """FLOPs."""
        return Flops(self.ledger, self.context)

    @cached_property
    def memory(self) -> Memory:
        """Bytes."""
        return Memory(self.ledger, self.context, self.format)

    def with_(self, /, **fields: Any) -> Model:
        """Return this model with fields of its spec changed, all rules checked again.

        Fields take their full or short names. A model read from a config.json changes the keys
        that feed the fields, and reads it again. Raises ``SpecError`` or ``ConfigError``.
        """
        if self.reading is None:
            return Model(changed(self.spec, fields), name=self.name, asked=self.asked)
        from paramcalc.families import overrides

        reading, rest = overrides.changed(self.reading, fields)
        overrides.reachable(self.spec, rest)
        stated = {name: getattr(self.spec, name) for name in ("name", "about", "count_mtp")}
        if "context" not in reading.fields and "context" in self.spec.model_fields_set:
            stated["context"] = self.spec.context
        data = {**deepcopy(reading.fields), **{k: v for k, v in stated.items() if v}}
        spec = _placed(data, rest)
        return Model(spec, name=self.name, asked=self.asked, reading=reading)

    def _repr_html_(self) -> str:
        """The report, for a notebook."""
        views: Any = import_module("paramcalc.views.calls")  # by name: views stand above
        return str(views.report(self)._repr_html_())

    def __repr__(self) -> str:
        return f"<paramcalc.Model {self.name}: {self.params.total:,} parameters>"


def changed(spec: ModelSpec, fields: dict[str, Any]) -> ModelSpec:
    """Return a spec with fields changed (dotted names reach inner sections), checked again.

    Raises ``SpecError`` with one line.
    """
    return _placed(spec.model_dump(exclude_unset=True), fields)


def _placed(data: dict[str, Any], fields: dict[str, Any]) -> ModelSpec:
    """The checked spec of fields, some changed. Raises ``SpecError``."""
    from pydantic import ValidationError

    from paramcalc import spelling
    from paramcalc.spec import ModelSpec

    try:
        for name, value in fields.items():
            spelling.place(data, name, value)
        return ModelSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(spelling.explain(error)) from None
    except RecursionError:
        raise SpecError("nested too deeply for a specification; flatten it") from None
    except ValueError as error:
        raise SpecError(str(error)) from None


def spec_of(data: dict[str, Any], where: str) -> ModelSpec:
    """Return the checked spec of a dict of fields. Raises ``SpecError`` naming ``where``."""
    from pydantic import ValidationError

    from paramcalc import spelling
    from paramcalc.spec import ModelSpec

    try:
        return ModelSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{where}: {spelling.explain(error)}") from None
    except RecursionError:
        raise SpecError(f"{where}: nested too deeply for a specification; flatten it") from None
