"""An answer in Python: tables in a notebook, text in a terminal, a data frame, raw integers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from paramcalc.views import frames
from paramcalc.views.notebook import html
from paramcalc.views.tables import Section, terminal

WIDTH = 120
"""Columns of the text of an answer."""


class Result:
    """An answer. It shows as the tables of the command line; ``columns`` holds its raw integers
    under stable names, ``rows`` the same row by row, ``notes`` what to know beside it."""

    def __init__(
        self,
        sections: list[Section],
        columns: Mapping[str, Sequence[Any]],
        *,
        title: str = "",
        words: list[str] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.sections = sections
        self.columns = columns
        self.title = title
        self.words = words or []
        self.notes = tuple(notes)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """One dict a row, Python ints in it."""
        plain = [getattr(c, "tolist", lambda c=c: list(c))() for c in self.columns.values()]
        return [dict(zip(self.columns, row, strict=True)) for row in zip(*plain, strict=True)]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def to_pandas(self) -> Any:
        """Return a pandas frame. Raises ``InputError`` where pandas is not installed."""
        return frames.pandas(self.columns)

    def to_polars(self) -> Any:
        """Return a polars frame. Raises ``InputError`` where polars is not installed."""
        return frames.polars(self.columns)

    def to_arrow(self) -> Any:
        """Return an Arrow table. Raises ``InputError`` where pyarrow is not installed."""
        return frames.arrow(self.columns)

    def _repr_html_(self) -> str:
        return html(self._all, title=self.title, words=self.words)

    @property
    def _all(self) -> list[Section]:
        notes = Section("Notes", [("", "left")])
        notes.notes += self.notes
        return [*self.sections, *([notes] if self.notes else [])]

    def __repr__(self) -> str:
        from rich.console import Console

        stream = io.StringIO()
        console = Console(file=stream, width=WIDTH, highlight=False, emoji=False, markup=False)
        lines = [self.title, " · ".join(self.words)]
        terminal(console, self._all, head=bool(self.title))
        tables = (line.rstrip() for line in stream.getvalue().splitlines())
        return "\n".join([*(line for line in lines if line), *tables])
