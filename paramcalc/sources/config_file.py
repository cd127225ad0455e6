"""Read a framework's config.json, treating the file as something a stranger wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from paramcalc.errors import FileError
from paramcalc.sources.files import read_text

MOST_BYTES = 8_388_608
"""Lists of quantized modules make some configs long; anything past this is something else."""
MARKS = frozenset({"model_type", "architectures", "hidden_size", "num_hidden_layers", "n_embd"})
"""Keys by which a file is known as a framework's: no field of ours has these names."""
MOST_DIGITS = 30


def read(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file. Raises ``FileError`` with one line."""
    return parse(read_text(path, MOST_BYTES), str(path))


def parse(text: str, where: str) -> dict[str, Any]:
    """Return the mapping in JSON text; ``where`` names it in messages. Raises ``FileError``."""
    try:
        data = json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=_mapping, parse_int=_integer
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise FileError(f"{where}: broken JSON: {place}: {error.msg.lower()}") from None
    except RecursionError:
        raise FileError(f"{where}: nested too deeply for a configuration") from None
    except ValueError as error:
        raise FileError(f"{where}: broken JSON: {error}") from None
    if not isinstance(data, dict):
        raise FileError(f"{where}: holds {type(data).__name__}, not a configuration's keys")
    return data


def is_config(data: dict[str, Any]) -> bool:
    """Whether a mapping is a framework's configuration and not a specification of ours."""
    return bool(data.keys() & MARKS)


def is_spec(data: dict[str, Any]) -> bool:
    """Whether a mapping is a specification of ours, or a preset that keeps a configuration."""
    return "config" in data or bool(
        data.keys() & {"d_model", "d"} and data.keys() & {"n_layers", "L"}
    )


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key[:40]} stands twice; keep one of them")
        found[key] = value
    return found


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:20]}... has {len(text):,} digits; no size has more than 12")
    return int(text)
