"""Tables that can be shown in more than one way: a terminal, Markdown.

A cell is an int (grouped digits for a person, raw for a machine), a ``Share``, a ``Size`` in bytes,
text, or None for an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class Share:
    """A part of a whole, shown in percent; ``signed`` for a change; ``digits`` after the point."""

    value: Fraction
    signed: bool = False

    def __str__(self) -> str:
        percent = float(self.value * 100)
        text = f"{percent:+.1f}%" if self.signed else f"{percent:.1f}%"
        return text if self.value or self.signed else "0%"


@dataclass(frozen=True)
class Size:
    """Bytes, shown to a person in GB (10^9) and GiB (2^30), or in smaller units of both kinds."""

    value: int

    def __str__(self) -> str:
        for power, big, small in ((3, "GB", "GiB"), (2, "MB", "MiB"), (1, "kB", "KiB")):
            if self.value >= 1000**power or power == 1:
                ten, two = self.value / 1000**power, self.value / 1024**power
                return f"{ten:,.2f} {big:<2} {two:>9,.2f} {small}"
        raise AssertionError("unreachable")


@dataclass(frozen=True)
class Bar:
    """A horizontal bar for a share of a whole; left out where there is no screen."""

    value: Fraction


Cell = int | str | Share | Size | Bar | None


@dataclass
class Section:
    """A titled table. ``columns`` are (heading, alignment); ``strong`` rows are sums, ``rule`` ones
    are set off by a line above."""

    title: str
    columns: list[tuple[str, str]]
    rows: list[tuple[Cell, ...]] = field(default_factory=list)
    strong: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Cell, strong: bool = False) -> None:
        """Append a row."""
        if strong:
            self.strong.add(len(self.rows))
        self.rows.append(cells)


def person(cell: Cell) -> str:
    """Return a cell as a person reads it."""
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def machine(cell: Cell) -> str:
    """Return a cell with raw integers; bytes are plain numbers."""
    if cell is None or isinstance(cell, Bar):
        return ""
    return str(cell.value if isinstance(cell, Size) else cell)


def markdown(sections: list[Section]) -> str:
    """Return the sections as Markdown tables with raw integers."""
    blocks = []
    for section in sections:
        keep = [i for i, (name, _) in enumerate(section.columns) if name != "bar"]
        lines = [f"### {section.title}", ""]
        heads = [section.columns[i] for i in keep]
        lines.append("| " + " | ".join(name for name, _ in heads) + " |")
        lines.append("|" + "|".join("---:" if a == "right" else "---" for _, a in heads) + "|")
        for row in section.rows:
            cells = [machine(row[i]) if i < len(row) else "" for i in keep]
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        lines += [f"\n{note}" for note in section.notes]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


BAR_WIDTH = 10


def draw_bar(value: Fraction, *, ascii_only: bool) -> str:
    """Return a bar of at most ``BAR_WIDTH`` cells, to an eighth of one."""
    eighths = round(min(max(value, Fraction(0)), Fraction(1)) * BAR_WIDTH * 8)
    if ascii_only:
        return "#" * (eighths // 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def terminal(console: Console, sections: list[Section]) -> None:
    """Print the sections as rich tables, no wider than the console."""
    for section in sections:
        console.print()
        console.print(_table(section, console.encoding.startswith("utf")))
        for note in section.notes:
            console.print(f"  {fit(note, console.encoding)}", style="dim", highlight=False)


def _table(section: Section, wide_characters: bool) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=None, pad_edge=False, padding=(0, 1), header_style="dim", show_edge=False,
        title=section.title, title_justify="left", title_style="bold cyan",
        show_header=any(name not in ("", "bar") for name, _ in section.columns[1:]),
    )
    encoding = "utf-8" if wide_characters else "ascii"
    for i, (name, align) in enumerate(section.columns):
        justify: Any = align
        heading = "" if name == "bar" else fit(name, encoding)
        table.add_column(heading, justify=justify, no_wrap=i > 0, overflow="fold",
                         style="cyan" if name == "bar" else "")
    for number, row in enumerate(section.rows):
        cells = [
            Text(draw_bar(c.value, ascii_only=not wide_characters)) if isinstance(c, Bar)
            else Text(("  " if i == 0 else "") + fit(person(c), encoding))
            for i, c in enumerate(row)
        ]
        table.add_row(*cells, style="bold" if number in section.strong else "")
    return table


_ASCII = str.maketrans({"·": "*", "×": "x", "⁰": "^0", "²": "^2", "³": "^3", "⁴": "^4", "−": "-",
                        "…": "...", "→": "->"})


def fit(text: str, encoding: str) -> str:
    """Return text that an encoding can hold: plain signs where it has no others."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(_ASCII).encode("ascii", "replace").decode()
