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
