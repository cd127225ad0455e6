"""Tables in a notebook: the terminal's cells, escaped, and nothing that runs."""

from __future__ import annotations

import re
from fractions import Fraction
from html.parser import HTMLParser

import paramcalc
from paramcalc.views.notebook import html
from paramcalc.views.tables import Bar, Section, Share, Size, person
from tests.conftest import preset

HOSTILE = "<script>alert(1)</script>\"'&\u202e<img src=x onerror=alert(1)>"


class Reader(HTMLParser):
    """Collects tags, attributes and the text of each cell."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.cells: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_every_text_is_escaped() -> None:
    section = Section(HOSTILE, [(HOSTILE, "left"), ("bar", "left"), ("n", "right")])
    section.add(HOSTILE, Bar(Fraction(9, 2)), 1234)
    section.add("x", strong=True)
    section.notes.append(HOSTILE)
    found = Reader(html([section], title=HOSTILE, words=[HOSTILE]))
    assert found.tags <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td"}
    assert found.attributes == {"class", "style", "scope"}
    assert found.cells[0] == HOSTILE.replace("\u202e", "?")
    assert "1,234" in found.cells


def test_a_model_shows_its_report() -> None:
    text = preset("llama3-8b")._repr_html_()
    found = Reader(text)
    assert "8,030,261,248" in found.cells
    assert "script" not in text
    assert "http" not in text
    assert text == paramcalc.report("llama3-8b")._repr_html_()


def test_the_cells_are_the_terminals() -> None:
    for result in (
        paramcalc.report("gemma3-4b"),
        paramcalc.compare("gpt2", "gpt2-xl"),
        paramcalc.grid("llama3-8b", kv=[8, 32]),
        paramcalc.fit("llama3-70b", "h100"),
        paramcalc.serve("llama3-8b", "h100", price="2.49"),
        paramcalc.train("llama3-8b", "h100", gpus=64, tokens=10**9),
    ):
        cells = Reader(result._repr_html_()).cells
        expected = [
            plain(person(cell))
            for section in result.sections
            for row in section.rows
            for cell in row
            if cell is not None and not isinstance(cell, Bar)
        ]
        rest = iter(map(plain, cells))
        assert all(cell in rest for cell in expected)  # each, in this order


def test_both_units_of_bytes_stand_under_each_other() -> None:
    section = Section("", [("", "right")])
    section.add(Size(16_060_522_496))
    section.add(Share(Fraction(1, 3)))
    assert "16.06 GB\u2007\u2007\u2007\u2007\u2007\u200714.96 GiB" in html([section])


def test_a_terminal_shows_the_tables_as_text() -> None:
    text = repr(paramcalc.compare("llama3-8b", "qwen3-8b"))
    assert text.startswith("qwen3-8b against llama3-8b\n")
    assert "  total              8,030,261,248   8,190,735,360     +160,474,112\n" in text
    assert repr(paramcalc.fit("llama3-8b", "h100")).startswith(
        "llama3-8b  fits on h100-sxm-80gb: 54.11 GB to spare\none GPU · weights bf16"
    )
