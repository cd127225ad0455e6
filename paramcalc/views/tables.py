"""Tables that can be shown in more than one way: a terminal, Markdown.

A cell is an int (grouped digits for a person, raw for a machine), a ``Share``, a ``Size`` in bytes,
text, or None for an empty one.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class Share(NamedTuple):
    """A part of a whole, shown in percent; ``signed`` for a change."""

    value: Fraction
    signed: bool = False

    def __str__(self) -> str:
        if not self.signed and 0 < self.value < Fraction(1, 2000):
            return "<0.1%"
        percent = float(self.value * 100)
        text = f"{percent:+.1f}%" if self.signed else f"{percent:.1f}%"
        return text if self.value else "0%"


class Change(NamedTuple):
    """A difference, shown with its sign; ``size`` shows bytes as GB."""

    value: int
    size: bool = False

    def __str__(self) -> str:
        if self.size:
            return ("-" if self.value < 0 else "+") + str(Size(abs(self.value), brief=True))
        return f"{self.value:+,}"


class Size(NamedTuple):
    """Bytes, shown to a person in GB (10^9) and GiB (2^30), or in smaller units of both kinds.

    ``brief`` shows the first only.
    """

    value: int
    brief: bool = False

    def __str__(self) -> str:
        if self.value == 0:
            return "0 B"
        units = ((3, "GB", "GiB"), (2, "MB", "MiB"), (1, "kB", "KiB"))
        power, ten, two = next(u for u in units if abs(self.value) >= 1000 ** u[0] or u[0] == 1)
        text = f"{self.value / 1000**power:,.2f} {ten}"
        return text if self.brief else f"{text} {self.value / 1024**power:>10,.2f} {two}"


class Measure(NamedTuple):
    """A number in a unit: ``text`` for a person, the raw integer and its unit for a machine."""

    value: int
    unit: str
    text: str

    def __str__(self) -> str:
        return self.text


class Bar(NamedTuple):
    """A horizontal bar for a share of a whole; left out where there is no screen."""

    value: Fraction


Cell = int | str | Share | Change | Size | Measure | Bar | None


class Section:
    """A titled table: ``columns`` are (heading, alignment), ``strong`` the numbers of rows that are
    sums, ``notes`` lines under it. A column headed ``bar`` holds bars.

    Where a screen is too narrow, ``paths`` says that the first column holds dotted names, which may
    be grouped and broken; with ``keys`` a table may be parted, so many first columns in each part.
    """

    def __init__(
        self,
        title: str,
        columns: list[tuple[str, str]],
        *,
        paths: bool = False,
        keys: int | None = None,
    ) -> None:
        self.title = title
        self.paths = paths
        self.keys = keys
        self.columns = columns
        self.rows: list[tuple[Cell, ...]] = []
        self.strong: set[int] = set()
        self.notes: list[str] = []

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
    if isinstance(cell, Measure):
        return f"{cell.value} {cell.unit}".strip()
    return str(cell.value if isinstance(cell, Size | Change) else cell)


_UNITS = {"GB and GiB": "bytes"}


def markdown(sections: list[Section]) -> str:
    """Return the sections as Markdown tables with raw integers."""
    blocks = []
    for section in sections:
        keep = [i for i, (name, _) in enumerate(section.columns) if name != "bar"]
        lines = [f"### {section.title}", ""]
        heads = [section.columns[i] for i in keep]
        lines.append("| " + " | ".join(_UNITS.get(name, name) for name, _ in heads) + " |")
        lines.append("|" + "|".join("---:" if a == "right" else "---" for _, a in heads) + "|")
        for row in section.rows:
            cells = [machine(row[i]) if i < len(row) else "" for i in keep]
            lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
        lines += ["\n" + note.strip().replace("* ", "\\* ", 1) for note in section.notes]
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


GAP = 2
INDENT = 2
ACCENT = "magenta"
"""The one colour used, readable on black and on white."""


def terminal(console: Console, sections: list[Section], *, head: bool = True) -> None:
    """Print the sections as rich tables, with a line before each (the first, if ``head``).

    On a screen, and where COLUMNS is set, tables are made to fit. One that still is wider is
    printed whole: digits are never cut.
    """
    import os
    from textwrap import wrap

    from rich.console import Group
    from rich.text import Text

    if console.is_terminal or "COLUMNS" in os.environ:
        from paramcalc.views.narrow import fitted

        sections = [part for section in sections for part in fitted(section, console.width)]
    items: list[Any] = []
    width = widest = console.width
    lead = " " * INDENT
    for number, section in enumerate(sections):
        table, needed = _table(section, width, console.encoding)
        widest = max(widest, needed)
        title = Text(fit(section.title, console.encoding), style=f"bold {ACCENT}")
        items += [*([""] if number or head else []), title, table]
        notes = [
            line
            for note in section.notes
            for line in wrap(
                fit(note, console.encoding),
                max(20, width),
                initial_indent=lead,
                subsequent_indent=lead,
                break_on_hyphens=False,
            )
        ]
        if notes:
            items.append(Text("\n".join(notes), style="dim"))
    console.width = widest
    console.print(Group(*items), no_wrap=True, crop=False)
    console.width = width


def _table(section: Section, width: int, encoding: str) -> tuple[Table, int]:
    """Return a section as a rich table, and the width it needs.

    Widths are set here, gaps included, which spares rich measuring every cell.
    """
    from rich.table import Table
    from rich.text import Text

    bars = {i for i, (name, _) in enumerate(section.columns) if name == "bar"}
    heads = [
        "" if i in bars else fit(name, encoding) for i, (name, _) in enumerate(section.columns)
    ]
    texts = [
        ["" if i in bars else fit(person(c), encoding) for i, c in enumerate(row)]
        for row in section.rows
    ]
    sizes = [
        max(len(part) for row in [heads, *texts] if i < len(row) for part in row[i].split("\n"))
        for i in range(len(heads))
    ]
    taken = INDENT + sum(sizes) + GAP * (len(sizes) - 1)
    room = min(BAR_WIDTH, max(0, width - taken))
    ascii_only = not encoding.lower().startswith("utf")
    table = Table(box=None, padding=0, header_style="dim", show_header=any(heads[1:] or heads))
    leads = [" " * (GAP if i else INDENT) for i in range(len(heads))]
    for i, (_, align) in enumerate(section.columns):
        justify: Any = align
        size = room if i in bars else sizes[i]
        table.add_column(
            leads[i] + heads[i].replace("\n", "\n" + leads[i]),
            justify=justify,
            no_wrap=True,
            width=len(leads[i]) + size,
            style=ACCENT if i in bars else "",
        )
    for number, row in enumerate(section.rows):
        cells = [
            leads[i]
            + (
                draw_bar(cell.value, room, ascii_only=ascii_only)
                if isinstance(cell, Bar)
                else texts[number][i].replace("\n", "\n" + leads[i])
            )
            for i, cell in enumerate(row)
        ]
        table.add_row(*map(Text, cells), style="bold" if number in section.strong else "")
    return table, taken + room


_ASCII = str.maketrans(
    {"·": "*", "×": "x", "⁰": "^0", "²": "^2", "³": "^3", "⁴": "^4", "…": "...", "→": "->"}
)


def fit(text: str, encoding: str) -> str:
    """Return text that an encoding can hold: plain signs where it has no others."""
    if encoding.lower().startswith("utf"):
        return text
    return text.translate(_ASCII).encode("ascii", "replace").decode()


def flow(items: list[str], width: int) -> list[str]:
    """Return items joined by dots in lines of at most ``width``, none broken inside."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 3 + len(item) <= width:
            lines[-1] += f" · {item}"
        else:
            lines.append(item)
    return lines
