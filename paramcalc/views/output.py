"""Writing to standard output: a console, JSON, CSV."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

    from paramcalc.views.tables import Section


def show(
    sections: list[Section],
    *,
    markdown_way: bool,
    title: str = "",
    words: list[str] | None = None,
) -> None:
    """Write sections to the terminal or as Markdown, under a title and a line of words."""
    from paramcalc.views import tables

    if markdown_way:
        first = f"## {title}\n\n{' · '.join(words or [])}\n\n" if title else ""
        sys.stdout.write(first + tables.markdown(sections) + "\n")
        return
    screen = console()
    with plain_when_piped(screen):
        if title:
            screen.print(tables.fit(title, screen.encoding), style="bold")
        for line in tables.flow(words or [], screen.width):
            screen.print(tables.fit(line, screen.encoding))
        tables.terminal(screen, sections, head=bool(title))


@contextmanager
def plain_when_piped(screen: Console) -> Iterator[None]:
    """Keep the spaces that fill rich's lines out of files and pipes."""
    if screen.is_terminal:
        yield
        return
    with screen.capture() as capture:
        yield
    for line in capture.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def console() -> Console:
    """Return a console that drops colours when piped or told NO_COLOR, as rich does."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, markup=False, soft_wrap=False)


def say(line: str) -> None:
    """Write a line to standard error under the program's name: whole into a file or pipe, on a
    terminal broken between words."""
    text, stream = f"paramcalc: {line}", sys.stderr
    if stream.isatty():
        from textwrap import wrap

        lines = wrap(
            text,
            _width(stream),
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        text = "\n".join(lines)
    encoding = stream.encoding or "ascii"
    stream.write(f"{text}\n".encode(encoding, "replace").decode(encoding))


def _width(stream: TextIO) -> int:
    """The columns of the terminal behind a stream; 80 where it does not say."""
    try:
        own = os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        own = 0
    return max(20, int(os.environ.get("COLUMNS", 0)) or own or 80)


def write_json(value: Any) -> None:
    """Write one JSON document with raw integers."""
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def write_csv(rows: list[dict[str, Any]]) -> None:
    """Write rows as CSV under the columns of the first; None is an empty cell."""
    import csv

    names = list(rows[0]) if rows else []
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([_safe(name) for name in names])
    writer.writerows([_safe(row[name]) for name in names] for row in rows)


def _safe(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula is quoted with an apostrophe."""
    return (
        f"'{value}"
        if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r")
        else value
    )
