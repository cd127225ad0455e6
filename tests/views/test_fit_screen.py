"""The screens of ``paramcalc fit`` and ``formats`` at 80 and 120 columns."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.views.conftest import Screen

SCREENS = [
    "fit llama3.1-8b --gpu h100 -n 16k --batch 16 --kinds h100,l40s,rtx-4090-24gb --price 2.49",
    "fit qwen3-32b --gpu h100 -n 32k",
    "fit gpt-oss-120b --gpu h100 --utilization 95% --kinds none",
    "fit deepseek-v3 --gpu h100 --gpus 16 -n 128k --batch 32",
    "fit bert-base --gpu t4 --dtype fp16 --kinds t4",
    "fit llama3-8b --gpu rtx-4090-24gb --dtype q4_k_m --kinds none --markdown",
    "formats llama3.1-8b",
    "formats gpt-oss-20b --dtype mxfp4",
    "formats deepseek-v3.2 --dtype q4_k_m",
]


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("line", SCREENS)
def test_screen(line: str, columns: str, screen: Screen, snapshot: SnapshotAssertion) -> None:
    lines = screen(line, columns)
    if "--markdown" not in line:
        assert max(map(len, lines)) <= int(columns)
    assert lines == snapshot
