"""Presets: the models that ship with the package, and the spellings that find them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from paramcalc.errors import UnknownPreset, did_you_mean, printable

_HUB = re.compile(r"^\s+- ([\w.-]+/[\w.-]+)\s*$", re.MULTILINE)
_SUFFIX = re.compile(
    r"-(hf|instruct|it|pt|chat|chat-hf|text|fp8|bf16|\d{4}|v0\.1|16e|128e|instruct-\d{4})$"
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
_WORDS = re.compile(r"(\d+(?:\.\d+)?)(?:([mb])(\d*))?|(\D+)")


def _family_order(name: str) -> tuple[str, float, list[tuple[int, float, str]]]:
    """Family, version, then sizes as numbers: gemma-2b, gemma2-2b, gemma2-27b."""
    head, _, tail = name.partition("-")
    family = head.rstrip("0123456789.")
    version = float(head[len(family) :] or 0)
    order: list[tuple[int, float, str]] = []
    for number, unit, tenths, text in _WORDS.findall(tail):
        size = float(f"{number}.{tenths}" if tenths else number or 0) * _UNITS.get(unit, 1)
        order.append((0, size, "") if number else (1, 0.0, text))
    return family, version, order


MOST_LETTERS = 200
"""Of a name that is looked up: more is no model's."""


def key(name: str) -> str:
    """Return a spelling without its owner, case, separators and the words for a tuned variant."""
    plain = name[-MOST_LETTERS:].lower().rpartition("/")[2].replace("_", "-").replace(" ", "-")
    plain = plain.removeprefix("meta-").removeprefix("openai-")
    while (shorter := _SUFFIX.sub("", plain)) != plain:
        plain = shorter
    return plain.replace("-", "")


class Found(NamedTuple):
    """A preset's file, and the hub id that named it (None if its own name or spelling did)."""

    path: Path
    hub: str | None = None


def find(name: str) -> Found:
    """Return the preset that a spelling names. Raises ``UnknownPreset``.

    Tried in turn: the name itself, the hub ids listed in the presets (with or without their
    owner), the spelling without owner, case and separators.
    """
    if re.fullmatch(r"[a-z0-9.-]{1,80}", name):
        exact = folder() / f"{name}.yaml"
        if exact.is_file():
            return Found(exact)
    wanted, lower = key(name), name.lower()
    last = name.strip().rpartition("/")[2]
    spelled = last[:1].isalnum() and last[-1:].isalnum()  # -gpt2 is a formula, or an option
    loose: Path | None = None
    for path in sorted(folder().glob("*.yaml")):
        for hub in _HUB.findall(path.read_text(encoding="utf-8")):
            if lower in (hub.lower(), hub.lower().rpartition("/")[2]):
                return Found(path, hub)
        if spelled and key(path.stem) == wanted:
            loose = path
    if loose is not None:
        return Found(loose)
    raise UnknownPreset(
        f"{shown(name)}: no such preset or file{_near(name)}; paramcalc list shows all presets"
    )


def _near(name: str) -> str:
    """Suggest what starts with the name, else what looks like it."""
    short = name.lower().rpartition("/")[2][:80]
    same = [n for n in names() if short and n.startswith(short)]
    if not same and key(short):
        same = [n for n in names() if key(n).startswith(key(short))]
    return f" (did you mean {', '.join(same[:5])}?)" if same else did_you_mean(short, names())


def shown(name: str) -> str:
    """Return a name as printable text of a sensible length."""
    text = printable(name)
    return text if len(text) <= 80 else text[:77] + "..."


def read(name: str) -> tuple[Found, dict[str, Any]]:
    """Return a preset and its fields, with the context of the hub id that named it.

    Raises ``UnknownPreset``.
    """
    from paramcalc.sources import yaml_file

    found = find(name)
    fields = yaml_file.read(found.path)
    contexts = fields.get("about", {}).pop("contexts", {})
    if found.hub in contexts:
        fields["context"] = contexts[found.hub]
    return found, fields
