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
    """Bytes, shown to a person in GB (10^9) and GiB (2^30), or in smaller units of both kinds.

    ``brief`` shows the first only.
    """

    value: int
    brief: bool = False

    def __str__(self) -> str:
        units = ((3, "GB", "GiB"), (2, "MB", "MiB"), (1, "kB", "KiB"))
        power, ten, two = next(u for u in units if self.value >= 1000 ** u[0] or u[0] == 1)
        text = f"{self.value / 1000**power:,.2f} {ten}"
        return text if self.brief else f"{text} {self.value / 1024**power:>10,.2f} {two}"


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


BAR_WIDTH = 16
"""Cells of a full bar where there is room; fewer where there is not."""


_EIGHTHS = " ▏▎▍▌▋▊▉"


def draw_bar(value: Fraction, width: int, *, ascii_only: bool) -> str:
    """Return a bar of at most ``width`` cells, to an eighth of one."""
    eighths = round(min(max(value, Fraction(0)), Fraction(1)) * width * 8)
    if ascii_only:
        return "#" * (eighths // 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def terminal(console: Console, sections: list[Section]) -> None:
    """Print the sections as rich tables. A table wider than the console is printed whole: digits
    are never cut."""
    from rich.padding import Padding

    for section in sections:
        console.print()
        console.print(fit(section.title, console.encoding), style="bold cyan")
        table, width = _table(section, console.width, console.encoding)
        console.print(table, width=max(width, console.width), no_wrap=True, crop=False)
        for note in section.notes:
            text = fit(note, console.encoding)
            console.print(Padding(text, (0, 0, 0, 2), expand=False), style="dim")


_GAP = 2
_INDENT = 2


def _table(section: Section, width: int, encoding: str) -> tuple[Table, int]:
    """Return a section as a rich table, and the width it needs."""
    from rich.table import Table
    from rich.text import Text

    texts = [
        [fit(person(c), encoding) if not isinstance(c, Bar) else "" for c in row]
        for row in section.rows
    ]
    heads = [fit(name, encoding) if name != "bar" else "" for name, _ in section.columns]
    sizes = [
        max(len(line[i]) for line in [heads, *texts] if i < len(line)) for i in range(len(heads))
    ]
    taken = _INDENT + sum(sizes) + _GAP * (len(sizes) - 1)
    bar = min(BAR_WIDTH, max(0, width - taken))
    ascii_only = not encoding.lower().startswith("utf")
    table = Table(
        box=None,
        pad_edge=False,
        padding=(0, _GAP, 0, 0),
        header_style="dim",
        show_header=any(heads[1:]),
    )
    for i, (name, align) in enumerate(section.columns):
        justify: Any = align
        indent = " " * _INDENT if i == 0 else ""
        table.add_column(
            indent + heads[i], justify=justify, no_wrap=True, style="cyan" if name == "bar" else ""
        )
    for number, row in enumerate(section.rows):
        cells = [
            Text(draw_bar(c.value, bar, ascii_only=ascii_only))
            if isinstance(c, Bar)
            else Text((" " * _INDENT if i == 0 else "") + texts[number][i])
            for i, c in enumerate(row)
        ]
        table.add_row(*cells, style="bold" if number in section.strong else "")
    return table, taken + bar


_ASCII = str.maketrans(
    {"·": "*", "×": "x", "⁰": "^0", "²": "^2", "³": "^3", "⁴": "^4", "…": "...", "→": "->"}
)


def fit(text: str, encoding: str) -> str:
    """Return text that an encoding can hold: plain signs where it has no others."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(_ASCII).encode("ascii", "replace").decode()
