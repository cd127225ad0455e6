"""Tables for narrow screens: shorter ways to say the same, tried in turn until one fits.

Dotted names are grouped under what they share, shapes written closely, headings and then names
and texts broken into lines, columns that repeat another one left out, and what is still too wide
parted into tables under each other. No digit is ever cut.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import wrap

from paramcalc.views.tables import GAP, INDENT, Section, person

_TIMES = " × "
_LEAST_NAME = 24
"""Letters that a broken name is given at least."""
_LEAST_HEAD = 7
_LEAST_TEXT = 12
_HEAD = re.compile(r"^(?:.*?(?:\{i\}|\*)|encoder|decoder)\.(?=.)")


def fitted(section: Section, width: int) -> list[Section]:
    """Return a section as one that fits in ``width`` columns, or as several under each other."""
    if needed(section) <= width:
        return [section]
    ways: tuple[Callable[[Section], Section], ...] = ()
    if section.paths:
        ways = (_grouped, _close, lambda s: _folded(s, width))
        if section.columns[-1][1] == "left":
            ways = (*ways, lambda s: _wrapped(s, width))
    elif section.keys is not None:
        ways = (_without_repeats, _broken_heads)
    elif section.columns[-1][1] == "left":
        ways = (lambda s: _wrapped(s, width),)
    for way in ways:
        section = way(section)
        if needed(section) <= width:
            return [section]
    return [section] if section.keys is None else _parted(section, section.keys, width)


def needed(section: Section) -> int:
    """Return the columns of a terminal that a section takes, bars left out."""
    own = [_size(section, i) for i, (name, _) in enumerate(section.columns) if name != "bar"]
    return INDENT + sum(own) + GAP * (len(own) - 1)


def _size(section: Section, column: int) -> int:
    cells = [person(row[column]) for row in section.rows if column < len(row)]
    texts = [section.columns[column][0], *cells]
    return max(len(line) for text in texts for line in text.split("\n"))


def _like(section: Section, columns: list[tuple[str, str]]) -> Section:
    """An empty section of the same kind."""
    found = Section(section.title, columns, paths=section.paths, keys=section.keys)
    found.notes = list(section.notes)
    return found


def _grouped(section: Section) -> Section:
    """Names under the layer they stand in: ``model.layers.{i}.`` once, then what is in it."""
    found, last = _like(section, section.columns), ""
    for number, row in enumerate(section.rows):
        name = str(row[0])
        head = _HEAD.match(name)
        place = head[0] if head else ""
        if place and place != last:
            found.add(place)
        last = place
        own = f"  {name[len(place) :]}" if place else name
        found.add(own, *row[1:], strong=number in section.strong)
    return found


def _close(section: Section) -> Section:
    """Shapes without spaces: 4096×7168."""
    found = _like(section, section.columns)
    for number, row in enumerate(section.rows):
        cells = (c.replace(_TIMES, "×") if isinstance(c, str) else c for c in row[1:])
        found.add(row[0], *cells, strong=number in section.strong)
    return found


def _folded(section: Section, width: int) -> Section:
    """Names broken behind their dots, what follows set in."""
    room = max(_LEAST_NAME, width - (needed(section) - _size(section, 0)))
    found = _like(section, section.columns)
    for number, row in enumerate(section.rows):
        found.add(_fold(str(row[0]), room), *row[1:], strong=number in section.strong)
    return found


def _fold(name: str, room: int) -> str:
    lead = " " * (len(name) - len(name.lstrip()) + 2)
    lines = [""]
    for part in re.findall(r"[^.\s]*[.\s]*|\s+", name):
        if len((lines[-1] + part).rstrip()) > room and lines[-1].strip():
            lines.append(lead)
        lines[-1] += part
    return "\n".join(line.rstrip() for line in lines)


def _wrapped(section: Section, width: int) -> Section:
    """The text of the last column broken between words."""
    last = len(section.columns) - 1
    room = width - (needed(section) - _size(section, last))
    if room < _LEAST_TEXT:
        return section
    found = _like(section, section.columns)
    for number, row in enumerate(section.rows):
        if len(row) <= last:  # a title that spans
            found.add(*row, strong=number in section.strong)
            continue
        lines = wrap(person(row[last]), room, break_long_words=False, break_on_hyphens=False)
        found.add(*row[:last], "\n".join(lines), strong=number in section.strong)
    return found


def _without_repeats(section: Section) -> Section:
    """Leave out columns of figures that are in every row those of an earlier one, and say so."""
    keys, kept = section.keys or 0, list[int]()
    notes: list[str] = []
    for i, (name, align) in enumerate(section.columns):
        same = [
            section.columns[j][0]
            for j in kept
            if i >= keys <= j and align == "right" and all(row[i] == row[j] for row in section.rows)
        ]
        if same:
            notes.append(f"{name}: in every row equal to {same[0]}")
        else:
            kept.append(i)
    found = _only(section, kept)
    found.notes = notes + section.notes
    return found


def _only(section: Section, columns: list[int]) -> Section:
    found = _like(section, [section.columns[i] for i in columns])
    for number, row in enumerate(section.rows):
        found.add(*(row[i] for i in columns), strong=number in section.strong)
    return found


def _broken_heads(section: Section) -> Section:
    """Headings broken behind underscores where the figures under them are shorter."""
    columns = []
    for i, (name, align) in enumerate(section.columns):
        room = max(_LEAST_HEAD, *(len(person(row[i])) for row in section.rows))
        lines = [""]
        for part in re.findall(r"[^_]*_?", name):
            if lines[-1] and part and len(lines[-1] + part) > room:
                lines.append("")
            lines[-1] += part
        columns.append(("\n".join(lines), align))
    found = _like(section, columns)
    found.rows, found.strong = section.rows, section.strong
    return found


def _parted(section: Section, keys: int, width: int) -> list[Section]:
    """Several sections, the columns that name a row in front of each."""
    first = list(range(keys))
    parts: list[list[int]] = [[]]
    for i in range(keys, len(section.columns)):
        if parts[-1] and needed(_only(section, [*first, *parts[-1], i])) > width:
            parts.append([])
        parts[-1].append(i)
    found = [_only(section, [*first, *own]) for own in parts]
    for part in found[:-1]:
        part.notes = []
    for part in found[1:]:
        part.title = "the same rows, further columns"
    return found
