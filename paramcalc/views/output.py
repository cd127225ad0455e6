"""Writing to standard output: a console, JSON, CSV."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def console() -> Console:
    """Return a console that drops colours when piped or told NO_COLOR, as rich does."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False, soft_wrap=False)


def write_json(value: Any) -> None:
    """Write one JSON document with raw integers."""
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_csv(rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV under the columns of the first; None is an empty cell."""
    import csv

    writer = csv.DictWriter(sys.stdout, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _safe(value) for key, value in row.items()} for row in rows)


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula is quoted with an apostrophe."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value
