"""Tables for a notebook: the terminal's, as HTML without scripts, readable on light and dark."""

from __future__ import annotations

import re
from html import escape

from paramcalc.errors import printable
from paramcalc.views.tables import Bar, Cell, Measure, Section, Size, person

_LINE = "1px solid rgba(128,128,128,.35)"
_STYLE = {
    "all": "color:inherit;font-variant-numeric:tabular-nums;overflow-x:auto",
    "title": "font-weight:600;margin:.6em 0 .2em",
    "words": "opacity:.75;margin:0 0 .4em",
    "table": "border-collapse:collapse;margin:.2em 0;background:none;color:inherit",
    "caption": "caption-side:top;text-align:left;font-weight:600;padding:.5em 0 .3em;color:inherit;"
    "white-space:nowrap",
    "note": "opacity:.75;font-size:.9em",
    "bar": "height:.7em;background:#b5418f;border-radius:2px;min-width:1px",
}
_FIGURE = "\u2007"
"""A space as wide as a digit."""
_CELL = "padding:.15em .7em;white-space:pre;background:none;border:0"


def html(sections: list[Section], *, title: str = "", words: list[str] | None = None) -> str:
    """Return sections as HTML under a title and a line of words; every text is escaped."""
    parts = [_div("title", title)] if title else []
    if words:
        parts.append(_div("words", " · ".join(words)))
    parts += [_table(section) for section in sections]
    return f'<div class="paramcalc" style="{_STYLE["all"]}">{"".join(parts)}</div>'


def _div(kind: str, text: str) -> str:
    return f'<div style="{_STYLE[kind]}">{_text(text)}</div>'


def _text(text: str) -> str:
    return escape("\n".join(printable(line) for line in text.split("\n")))


def _table(section: Section) -> str:
    aligns = [align for _, align in section.columns]
    heads = ["" if name == "bar" else name for name, _ in section.columns]
    lines = []
    if any(heads):
        cells = "".join(
            f'<th scope="col" style="{_CELL};text-align:{align};font-weight:600;'
            f'border-bottom:{_LINE}">{_text(head)}</th>'
            for head, align in zip(heads, aligns, strict=True)
        )
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    for number, row in enumerate(section.rows):
        weight = ";font-weight:600" if number in section.strong else ""
        filled: list[Cell] = [*row, *[None] * (len(aligns) - len(row))]
        cells = "".join(
            f'<td style="{_CELL};text-align:{align}{weight}">{_cell(cell)}</td>'
            for cell, align in zip(filled, aligns, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    lines.append("</tbody>")
    caption = f'<caption style="{_STYLE["caption"]}">{_text(section.title)}</caption>'
    notes = "".join(_div("note", note.strip()) for note in section.notes)
    return f'<table style="{_STYLE["table"]}">{caption}{"".join(lines)}</table>{notes}'


def _cell(cell: Cell) -> str:
    if isinstance(cell, Bar):
        share = min(max(float(cell.value), 0), 1)
        return f'<div style="{_STYLE["bar"]};width:{share * 10:.2f}em"></div>'
    text = _text(person(cell))
    if isinstance(cell, Size | Measure):  # both units of bytes stand under each other
        text = re.sub(" {2,}", lambda gap: _FIGURE * len(gap[0]), text)
    return text
