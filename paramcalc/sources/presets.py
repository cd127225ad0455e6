"""Presets: the models that ship with the package, and the spellings that find them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from paramcalc.errors import UnknownPreset, did_you_mean

_HUB = re.compile(r"^\s+- ([\w.-]+/[\w.-]+)\s*$", re.MULTILINE)
_SUFFIX = re.compile(
    r"-(hf|instruct|it|pt|chat|base|chat-hf|text|fp8|bf16|\d{4}|v0\.1|16e|128e|instruct-\d{4})$"
)


def folder() -> Path:
    """Return the folder of preset files: in the installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / "presets"
    return (inside if inside.is_dir() else package.parent / "presets") / "models"


def names() -> list[str]:
    """Return the names of all presets, sorted so that sizes of a family follow each other."""
    return sorted((p.stem for p in folder().glob("*.yaml")), key=_family_order)


_UNITS = {"m": 1e6, "b": 1e9}


def _family_order(name: str) -> tuple[str, float, list[tuple[int, float, str]]]:
    """Family, version, then sizes as numbers: gemma-2b, gemma2-2b, gemma2-27b."""
    head, _, tail = name.partition("-")
    family = head.rstrip("0123456789.")
    version = float(head[len(family) :] or 0)
    words = re.findall(r"(\d+(?:\.\d+)?)([mb]\b)?|(\D+)", tail)
    return (
        family,
        version,
        [
            (1, float(number) * _UNITS.get(unit, 1), "") if number else (0, 0.0, text)
            for number, unit, text in words
        ],
    )


def key(name: str) -> str:
    """Return a spelling without its owner, case, separators and the words for a tuned variant."""
    plain = name.lower().rpartition("/")[2].replace("_", "-").replace(" ", "-")
    plain = plain.removeprefix("meta-").removeprefix("openai-")
    while (shorter := _SUFFIX.sub("", plain)) != plain:
        plain = shorter
    return plain.replace("-", "")


def path_of(name: str) -> Path:
    """Return the file of the preset that a spelling names. Raises ``UnknownPreset``.

    Tried in turn: the name itself, the hub ids listed in the presets (with or without their
    owner), the spelling without owner, case and separators.
    """
    if re.fullmatch(r"[a-z0-9.-]{1,80}", name):
        exact = folder() / f"{name}.yaml"
        if exact.is_file():
            return exact
    wanted, lower = key(name), name.lower()
    loose: Path | None = None
    for path in sorted(folder().glob("*.yaml")):
        for hub in _HUB.findall(path.read_text(encoding="utf-8").lower()):
            if lower in (hub, hub.rpartition("/")[2]):
                return path
        if key(path.stem) == wanted:
            loose = path
    if loose is not None:
        return loose
    near = did_you_mean(name.lower().rpartition("/")[2][:80], names())
    raise UnknownPreset(
        f"{shown(name)}: no such preset or file{near}; paramcalc list shows all presets"
    )


def shown(name: str) -> str:
    """Return a name as printable text of a sensible length."""
    text = "".join(c if c.isprintable() else "?" for c in name)
    return text if len(text) <= 80 else text[:77] + "..."


def read(name: str) -> tuple[str, dict[str, Any]]:
    """Return a preset's proper name and its fields. Raises ``UnknownPreset``."""
    from paramcalc.sources import yaml_file

    path = path_of(name)
    return path.stem, yaml_file.read(path)
