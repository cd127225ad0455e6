"""Writing to standard output: a console, JSON, CSV."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from paramcalc.views.tables import Section


def show(sections: list[Section], *, markdown_way: bool, head: tuple[str, ...] = ()) -> None:
    """Write sections to the terminal or as Markdown, under lines of heading."""
    from paramcalc.views import tables

    if markdown_way:
        first = f"## {head[0]}\n\n" if head else ""
        rest = "".join(f"{line}\n\n" for line in head[1:])
        sys.stdout.write(first + rest + tables.markdown(sections) + "\n")
        return
    screen = console()
    for i, line in enumerate(head):
        screen.print(tables.fit(line, screen.encoding), style="bold" if i == 0 else "")
    tables.terminal(screen, sections)


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
