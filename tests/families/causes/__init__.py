"""Why the framework's FLOPs differ from ours, type by type, to the last FLOP.

A module here has ``CAUSES``: (model_type, class) -> ``Cause``. ``extra(model, n)`` is the
framework's count minus ours for one sequence of n tokens, in closed form from the model's sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from paramcalc.model import Model


class Cause(NamedTuple):
    """What the framework computes otherwise, in one line, and by how many FLOPs it differs."""

    why: str
    extra: Callable[[Model, int], int]


def all_causes() -> dict[tuple[str, str], Cause]:
    """Return every cause by (model_type, class)."""
    from importlib import import_module
    from pkgutil import iter_modules

    found: dict[tuple[str, str], Cause] = {}
    for module in iter_modules(__path__):
        found |= import_module(f"{__name__}.{module.name}").CAUSES
    return found
