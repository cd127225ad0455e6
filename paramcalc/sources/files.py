"""Opening what a person names: short text files, with one line for every way it can fail."""

from __future__ import annotations

import os
from pathlib import Path

from paramcalc.errors import FileError


def typed(text: str) -> Path:
    """Return the path that a person typed, ``~`` as a home; as it stands where that is nobody's."""
    try:
        return Path(os.path.expanduser(text))
    except ValueError:  # an embedded null character: reading it says so
        return Path(text)


def read_text(path: Path, most: int) -> str:
    """Return a UTF-8 file of at most ``most`` bytes. Raises ``FileError`` with one line."""
    try:
        with path.open("rb") as file:
            raw = file.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: an embedded null character
        why = getattr(error, "strerror", None) or "cannot be read"
        raise FileError(f"{path}: {why.lower()}; check the path") from None
    if len(raw) > most:
        raise FileError(f"{path}: larger than {most:,} bytes; a specification is a page")
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 at byte {error.start}; save it as UTF-8") from None
