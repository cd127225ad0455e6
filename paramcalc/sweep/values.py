"""What values a field or a size of a deployment can take."""

from __future__ import annotations

from paramcalc import rules
from paramcalc.errors import InputError
from paramcalc.spec import ModelSpec


def check_load(name: str, values: tuple[int, ...]) -> None:
    """Refuse a size of a deployment that is beyond all use."""
    most = rules.MOST_TOKENS if name == "context" else rules.MOST_SIZE
    for value in (min(values), max(values)):
        if not 1 <= value <= most:
            raise InputError(f"{name} = {value}: must be from 1 to {most:,}; change it")


def check_values(spec: ModelSpec, name: str, values: tuple[int, ...]) -> None:
    """Refuse a value outside what the field can take, through the field's own validator."""
    from pydantic import ValidationError

    from paramcalc import spelling
    from paramcalc.errors import SpecError

    for value in {min(values), max(values)}:
        data = spec.model_dump(exclude_unset=True)
        try:
            spelling.place(data, name, value)
            type(spec).model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            if first["type"] != "value_error" or _is_about(str(first["ctx"]["error"]), name):
                raise SpecError(spelling.explain(error)) from None
        except ValueError as error:
            raise SpecError(str(error)) from None


def _is_about(message: str, name: str) -> bool:
    """Whether a broken rule concerns an inner section's own field, not how fields fit together."""
    return "." in name and message.startswith(name) and ": must be at" in message
