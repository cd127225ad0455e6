"""Axes: the values that a field takes, as typed on a command line.

``8,32`` is a list, ``16:96:8`` a range with both ends in it, ``4k:128k:x2`` a geometric one, and
``d/128`` or ``ceil(3.5*d, 256)`` an expression of other fields. Items may be mixed with commas.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from paramcalc.errors import InputError
from paramcalc.spelling import TOKEN_FIELDS, canonical, parse_size, shown

MOST_VALUES = 10_000_000
"""Values one axis may have."""

_NUMBER = re.compile(r"\d[\d_]*(?:\.\d+)?(?:[eE]\d+)?[kKmMbBgGtT]?")
_FLAGS = {"true": True, "false": False, "yes": True, "no": False, "on": True, "off": False}


class Axis(NamedTuple):
    """A field and its values, or the expression that gives one for each row.

    ``values`` are ints, or whatever a switch takes (formats, flags, kinds of norm).
    """

    field: str
    values: tuple[Any, ...] | None
    expression: str | None = None


def parse(field: str, text: str) -> Axis:
    """Return the axis that a text means for a field. Raises ``InputError`` with one line."""
    name, text = canonical(field), text.strip()
    if not text:
        raise InputError(f"{name}: no values; write {name}=8,32 or 16:96:8")
    items = _split(text)
    if all(_NUMBER.fullmatch(part) for item in items for part in item.split(":")[:2]):
        values: list[int] = []
        for item in items:
            values += _item(name, item)
            if len(values) > MOST_VALUES:
                raise InputError(
                    f"{name} = {shown(text)}: over {MOST_VALUES:,} values; widen the step"
                )
        if len(set(values)) != len(values):
            raise InputError(f"{name} = {shown(text)}: a value stands twice; keep one")
        return Axis(name, tuple(values))
    return Axis(name, None, text)


def switch(field: str, text: str) -> Axis:
    """Return an axis of words: formats, flags, kinds. Raises ``InputError``."""
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise InputError(f"{field} = {shown(text)}: an empty value; remove the comma")
    if len(set(words)) != len(words):
        raise InputError(f"{field} = {shown(text)}: a value stands twice; keep one")
    return Axis(field, tuple(_FLAGS.get(word.lower(), word) for word in words))


def _split(text: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    items, depth, start = [], 0, 0
    for i, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            items.append(text[start:i].strip())
            start = i + 1
    return [*items, text[start:].strip()]


def _item(name: str, item: str) -> list[int]:
    parts = item.split(":")
    if len(parts) == 1:
        return [_size(name, item, item)]
    if len(parts) not in (2, 3):
        raise InputError(f"{name} = {shown(item)}: a range is first:last:step; as 16:96:8")
    first, last = _size(name, parts[0], item), _size(name, parts[1], item)
    if first > last:
        raise InputError(f"{name} = {shown(item)}: the first value is above the last; swap them")
    step = parts[2] if len(parts) == 3 else "1"
    if step[:1] in ("x", "*"):
        factor = _size(name, step[1:], item)
        if factor < 2 or first < 1:
            raise InputError(
                f"{name} = {shown(item)}: a factor of 2 or more from 1 or more; as 4k:128k:x2"
            )
        values = [first]
        while values[-1] * factor <= last:
            values.append(values[-1] * factor)
        return values
    width = _size(name, step, item)
    if width < 1:
        raise InputError(f"{name} = {shown(item)}: a step of at least 1; as 16:96:8")
    if (last - first) // width >= MOST_VALUES:
        raise InputError(f"{name} = {shown(item)}: over {MOST_VALUES:,} values; widen the step")
    return list(range(first, last + 1, width))


def _size(name: str, text: str, item: str) -> int:
    try:
        return parse_size(text, tokens=name in TOKEN_FIELDS)
    except ValueError as error:
        raise InputError(f"{name} = {shown(item)}: {error}") from None
