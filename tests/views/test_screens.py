"""The screens as they are, at 80 and 120 columns; a change shows as a difference to look at."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.views.conftest import Screen

SCREENS = [
    "llama3-8b",
    "llama3-8b --kv 32 -n 128k",
    "deepseek-v3",
    "t5-small",
    "albert-base --batch 4",
    "attention-only-1l --tensors",
    "llama4-maverick --by-layer",
    "gpt2 --markdown",
    "gpt2 --csv",
    "list gemma",
    "compare llama3-8b kimi-k2",
    "compare gpt2 gpt2-medium gpt2-large gpt2-xl",
    "explain gemma2-9b",
    "--help",
    "show --help",
]


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("line", SCREENS)
def test_screen(line: str, columns: str, screen: Screen, snapshot: SnapshotAssertion) -> None:
    assert screen(line, columns) == snapshot
