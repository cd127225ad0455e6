"""The screens of ``paramcalc serve`` at 80 and 120 columns."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.views.conftest import Screen

SCREENS = [
    "llama3.1-8b --gpu h100",
    "gpt-oss-120b --gpu h100 --tp 2 --batch 64 --price 2.49",
    "deepseek-v3 --gpu h200 --dp 8 --ep 8 --batch 256",
    "llama3.1-405b --gpu h100 --tp 8 --pp 2 --price 2.49",
    "t5-small --gpu a100 --output 64",
    "llama3.1-405b --gpu h100",
    "gpt2 --gpu t4 --dtype fp16 --markdown --prompt 512",
]


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("line", SCREENS)
def test_screen(line: str, columns: str, screen: Screen, snapshot: SnapshotAssertion) -> None:
    lines = screen(f"serve {line}", columns)
    if "--markdown" not in line:
        assert max(map(len, lines)) <= int(columns)
    assert lines == snapshot
