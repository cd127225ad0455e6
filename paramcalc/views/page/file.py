"""The page as a file: written beside its name, and renamed when it is whole."""

from __future__ import annotations

from pathlib import Path

from paramcalc.errors import InputError
from paramcalc.writing import beside, free


def checked(out: str, *, force: bool) -> Path:
    """Return the path of a page that may be written. Raises ``InputError``."""
    path = Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"out = {path}: is no page; end it in .html")
    if path.is_dir():
        raise InputError(f"out = {path}: is a directory; name a file in it")
    return free(path, force=force)


def write(path: Path, text: str) -> None:
    """Write a page. Raises ``InputError`` where the file cannot be written."""
    with beside(path) as held:
        held.write_text(text, encoding="utf-8", newline="\n")
