"""Read a specification from YAML, treating the file as something a stranger wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from paramcalc.errors import FileError
from paramcalc.sources.files import read_text

try:
    from yaml import CSafeLoader as _Base
except ImportError:  # PyYAML without libyaml
    from yaml import SafeLoader as _Base  # type: ignore[assignment]

MOST_BYTES = 262_144
"""A specification is a page; anything near this is something else."""
MOST_BRACKETS = 2_000


class _Loader(_Base):
    """The safe loader, refusing a key that stands twice in one mapping."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in seen:
            what = "stands twice" if isinstance(key, yaml.ScalarNode) else "is no field's name"
            raise yaml.constructor.ConstructorError(
                None, None, f"{str(key.value)[:40]} {what}", key.start_mark
            )
        seen.add(key.value)
    return dict(loader.construct_pairs(node, deep=True))


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    """Decimal only: YAML 1.1 would read 010 as 8 and 1:30 as 90."""
    text = str(loader.construct_scalar(node))
    if not re.fullmatch(r"[-+]?(0|[1-9][0-9_]*)", text):
        raise yaml.constructor.ConstructorError(
            None, None, f"{text[:40]}: write whole numbers in decimal", node.start_mark
        )
    return int(text.replace("_", ""))


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


class _AsWritten(_Loader):
    """Leaves fractions and dates as the text that stands there."""


def _text(loader: _AsWritten, node: yaml.ScalarNode) -> str:
    return str(loader.construct_scalar(node))


_AsWritten.add_constructor("tag:yaml.org,2002:float", _text)
_AsWritten.add_constructor("tag:yaml.org,2002:timestamp", _text)

EXAMPLE = "d_model: 4096"


def read(path: Path, *, as_written: bool = False, example: str = EXAMPLE) -> dict[str, Any]:
    """Return the fields in a YAML file. Raises ``FileError`` with one line."""
    return parse(read_text(path, MOST_BYTES), str(path), as_written=as_written, example=example)


def parse(
    text: str, where: str, *, as_written: bool = False, example: str = EXAMPLE
) -> dict[str, Any]:
    """Return the fields in YAML text; ``where`` names it in messages. Raises ``FileError``.

    ``as_written`` keeps fractions and dates as text, so that no float rounds them; ``example`` is a
    line that messages show.
    """
    if _too_deep(text):
        raise FileError(f"{where}: nested too deeply for a specification")
    try:
        aliased = "*" in text and _has_alias(text)
        data = None if aliased else yaml.load(text, Loader=_AsWritten if as_written else _Loader)
    except yaml.YAMLError as error:
        raise FileError(f"{where}: {_one_line(error)}") from None
    except (ValueError, RecursionError) as error:
        raise FileError(f"{where}: broken YAML: {error}") from None
    except (TypeError, LookupError, AttributeError):  # PyYAML on a tag and a text that do not fit
        raise FileError(
            f"{where}: broken YAML: a !!tag does not fit its value; remove it"
        ) from None
    if aliased:
        raise FileError(f"{where}: YAML aliases (*name) are not read; write the fields out")
    if data is None:
        raise FileError(f"{where}: empty; write fields such as {example}")
    if not isinstance(data, dict):
        raise FileError(f"{where}: holds {type(data).__name__}, not fields; write {example}")
    return data


def _too_deep(text: str) -> bool:
    """Whether brackets or dashes could nest deeper than the C parser's stack is safe for."""
    if text.count("[") + text.count("{") > MOST_BRACKETS:
        return True
    return any(len(line) - len(line.lstrip(" -?:")) > 400 for line in text.splitlines())


def _has_alias(text: str) -> bool:
    return any(isinstance(e, yaml.AliasEvent) for e in yaml.parse(text, Loader=_Base))


def _one_line(error: yaml.YAMLError) -> str:
    problem = getattr(error, "problem", None) or str(error)
    mark = getattr(error, "problem_mark", None)
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"broken YAML: {place}{' '.join(str(problem).split())}"
