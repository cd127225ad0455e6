"""Overrides of a model that was read from a config.json: its keys change, and it is read again."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from paramcalc.errors import ConfigError, SpecError, did_you_mean
from paramcalc.families import Reading, read
from paramcalc.families.config import LengthError
from paramcalc.spelling import canonical, parse_size, shown

if TYPE_CHECKING:
    from paramcalc.spec import ModelSpec

_FREE = frozenset({"context", "name", "about", "count_mtp", "tie_embeddings"})
"""Fields that no block is built from."""


def changed(reading: Reading, fields: Mapping[str, Any]) -> tuple[Reading, dict[str, Any]]:
    """Return a reading with the keys changed that feed some fields, and the fields left over.

    A name that is no field is a key of the config.json itself (``layer_types``,
    ``vision_config.hidden_size``). Raises ``ConfigError``.
    """
    from paramcalc.spec import ModelSpec

    data, rest = deepcopy(dict(reading.data)), {}
    inner = data
    for key in reading.inside:
        inner = inner[key]
    known = reading.known | data.keys() | inner.keys()
    for name, value in fields.items():
        full = canonical(name)
        *way, last = name.split(".")
        if full in reading.keys:
            inner[reading.keys[full]] = value
        elif full.partition(".")[0] in ModelSpec.model_fields:
            rest[full] = value
        elif name in known or (way and way[0] in known):
            _section(data if way or name in data else inner, name, way)[last] = _sized(last, value)
        else:
            near = did_you_mean(name[:80], [*ModelSpec.model_fields, *sorted(known)])
            raise ConfigError(f"{shown(name)}: no such field, nor a key of its config.json{near}")
    try:
        return read(data, like=reading.like, arch=reading.asked), rest
    except LengthError as error:
        both = f"-L {error.n} --set '{error.key}=[...]'"
        raise ConfigError(f"{error.what}; give both: {both}") from None


def _section(data: dict[str, Any], name: str, way: list[str]) -> dict[str, Any]:
    for key in way:
        data = data.setdefault(key, {})
        if not isinstance(data, dict):
            raise ConfigError(f"{shown(name)}: {key} is no section; check the name")
    return data


def _sized(key: str, value: Any) -> Any:
    """A value typed as a size (8k) as its number; any other as it is."""
    if not isinstance(value, str) or not value[:1].isdigit():
        return value
    try:
        return parse_size(value, tokens=any(word in key for word in ("position", "window", "len")))
    except ValueError:
        return value


def reachable(spec: ModelSpec, fields: Mapping[str, Any]) -> None:
    """Raise ``SpecError`` for a field that a model with blocks of its own cannot take."""
    from paramcalc.sections import has_blocks

    own = has_blocks(spec)
    for name in sorted(fields.keys() - _FREE):
        if own:
            raise SpecError(
                f"{name}: its layers are not built from this field; set a key of its config.json"
            )
