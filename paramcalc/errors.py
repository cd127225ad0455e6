"""Exceptions: one tree, one line each.

``ParamcalcError`` is the root. The command line prints any of them as one line on standard error
and leaves with exit code 2.
"""

from __future__ import annotations

from collections.abc import Iterable


class ParamcalcError(Exception):
    """Root of everything this package raises on purpose."""


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
