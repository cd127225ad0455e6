"""What the tests of screens share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paramcalc.cli.main import main

Screen = Callable[[str, str], list[str]]
"""A command line and a terminal's columns to the lines that it shows."""


@pytest.fixture
def screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Screen:
    def shown(line: str, columns: str) -> list[str]:
        monkeypatch.setenv("COLUMNS", columns)
        assert main(line.split()) == 0
        return [text.rstrip() for text in capsys.readouterr().out.splitlines()]

    return shown
