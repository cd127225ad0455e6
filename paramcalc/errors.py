"""Exceptions: one tree, one line each.

``ParamcalcError`` is the root. The command line prints any of them as one line on standard error
and leaves with exit code 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_LONG = re.compile(r"(\S{100})\S{200,}(\S{100})")
"""A word that no name or path is; its ends are shown."""
_LINE_END = re.compile(r"[\r\n\t]+")


class ParamcalcError(Exception):
    """Root of everything this package raises on purpose: one printable line of sensible length."""

    def __init__(self, message: str) -> None:
        # what it repeats of an input may hold line ends, and be of any length
        line = _LINE_END.sub(" ", _LONG.sub(r"\1...\2", message))
        super().__init__(printable(line))


class InputError(ParamcalcError, ValueError):
    """Something given by the user cannot be used; the message names field, value, rule and fix."""


class UnknownPreset(InputError):
    """No preset, file or known spelling answers to the name; the message suggests the nearest."""


class SpecError(InputError):
    """A model specification breaks a rule."""


class FileError(InputError):
    """A file cannot be read as a model specification."""


class ConfigError(InputError):
    """A config.json has a value that its family cannot take."""


class UnknownType(ConfigError):
    """No family reads the ``model_type``; the message says what can be read."""


def did_you_mean(name: str, known: Iterable[str], *, most: int = 3) -> str:
    """Return `` (did you mean a, b?)`` for the nearest known names, or an empty string."""
    import difflib

    near = difflib.get_close_matches(name, list(known), n=most, cutoff=0.6)
    return f" (did you mean {', '.join(near)}?)" if near else ""


def printable(text: str) -> str:
    """Return a text with ? for each letter that a terminal would act on instead of showing."""
    return "".join(c if c.isprintable() else "?" for c in text)
