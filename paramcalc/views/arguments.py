"""Arguments of a call from Python: what a person may pass, read as the command line reads it."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any

from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.quantities.asked import whole
from paramcalc.sources.loading import load
from paramcalc.spelling import TOKEN_FIELDS, parse_size, shown
from paramcalc.sweep.axes import MOST_VALUES

if TYPE_CHECKING:
    from paramcalc.deploy.hardware import Accelerator

Size = int | str
"""A whole number, or a text that spells one: ``8k`` tokens are 8,192, ``1T`` of others 10^12."""
Texts = str | Iterable[str]
"""One text, or several."""
Value = str | int | bool | Iterable[str | int | bool]
"""An axis of a grid."""


def size(name: str, value: Size, least: int = 1, *, tokens: bool = False) -> int:
    """Return a size of at least ``least``; in a text of ``tokens`` 1k is 1,024, as it is for
    fields that count them. Raises ``InputError``."""
    if isinstance(value, str):
        try:
            read = parse_size(value, tokens=tokens or name in TOKEN_FIELDS)
        except ValueError as error:
            raise InputError(f"{name} = {shown(value)}: {error}") from None
        if read < least:
            raise InputError(f"{name} = {shown(value)}: must be at least {least}; raise it")
        return read
    found = None if isinstance(value, bool) else _index(value)
    return whole(name, value if found is None else found, least)


def optional(name: str, value: Size | None, *, tokens: bool = False) -> int | None:
    """Return ``size``, or None for None. Raises ``InputError``."""
    return None if value is None else size(name, value, tokens=tokens)


def texts(name: str, value: Texts | os.PathLike[str]) -> tuple[str, ...]:
    """Return the texts that one, or a list of them, stands for; a path is a text too.

    Raises ``InputError``.
    """
    if isinstance(value, str | os.PathLike):
        value = [value]  # type: ignore[list-item]  # a path is made a text below
    found = [
        os.fspath(each) if isinstance(each, str | os.PathLike) else None
        for each in _listed(name, value, "text, or a list of texts")
    ]
    if not all(isinstance(each, str) for each in found):
        raise InputError(f"{name} = {shown(value)}: must be text, or a list of texts")
    return tuple(each for each in found if each is not None)


def model(value: str | Model) -> Model:
    """Return the model of a name, a path or fields, or itself. Raises ``InputError``."""
    return value if isinstance(value, Model) else load(value)


def models(value: str | Model | Iterable[str | Model]) -> list[str | Model]:
    """Return the models that one, or a list of them, names. Raises ``InputError``."""
    if isinstance(value, str | Model | Mapping | os.PathLike):
        return [value]  # type: ignore[list-item]  # load takes fields and paths too
    return _listed("models", value, "a model, or a list of them")


def gpu(name: str, files: Sequence[str], price: str | float | None) -> Accelerator:
    """Return a kind of GPU at a price. Raises ``InputError``."""
    from paramcalc.deploy import hardware
    from paramcalc.deploy.hardware_file import priced

    found = hardware.find(name, files)
    return found if price is None else priced(found, str(price))


def axis(name: str, value: Value) -> str:
    """Return the values of an axis as they would be typed. Raises ``InputError``."""
    if isinstance(value, range) and value.step > 0 and value:
        return f"{value[0]}:{value[-1]}:{value.step}"
    one = _typed(value)
    if one is not None:
        return one
    listed: list[Any] = _listed(name, value, "a whole number, a word or a list of them")
    typed = [_typed(each) for each in listed]
    if None in typed:
        wrong = listed[typed.index(None)]
        raise InputError(f"{name} = {shown(wrong)}: must be a whole number or a word; change it")
    return ",".join(each for each in typed if each is not None)


def _typed(value: object) -> str | None:
    """One value as it would be typed; None for what is none."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    found = _index(value)
    return None if found is None else str(found)


def _index(value: Any) -> int | None:
    """A whole number, numpy's too, as an int; None for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def _listed(name: str, value: Any, what: str) -> list[Any]:
    """Several values as a list, refused before they are walked where they are too many."""
    if isinstance(value, bytes | bytearray | Mapping):
        raise InputError(f"{name} = {shown(value)}: must be {what}")
    if isinstance(value, Sized) and len(value) > MOST_VALUES:
        raise InputError(f"{name}: {len(value):,} values, over {MOST_VALUES:,}; thin them out")
    try:
        found = list(islice(value, MOST_VALUES + 1))
    except TypeError:
        raise InputError(f"{name} = {shown(value)}: must be {what}") from None
    if len(found) > MOST_VALUES:  # a generator, which need not end
        raise InputError(f"{name}: over {MOST_VALUES:,} values; thin them out")
    return found
