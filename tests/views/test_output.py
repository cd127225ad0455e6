"""What goes to standard error: whole into a pipe, broken between words on a terminal."""

from __future__ import annotations

import io
import sys

import pytest

from paramcalc.views.output import say

LINE = "note: " + "model.layers.0.mlp.experts.gate_up_proj is one of many words here; " * 3


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_line_is_broken_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe, terminal = io.StringIO(), Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", pipe)
    say(LINE)
    assert pipe.getvalue() == f"paramcalc: {LINE}\n"
    monkeypatch.setattr(sys, "stderr", terminal)
    say(LINE)
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 60
    assert " ".join(terminal.getvalue().split()) == f"paramcalc: {LINE}".strip()
