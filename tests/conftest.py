"""What the tests share: golden facts, and models by preset, loaded once."""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc.model import Model

HERE = Path(__file__).parent
ROOT = HERE.parent


@cache
def preset(name: str) -> Model:
    return paramcalc.load(name)


@cache
def golden() -> list[dict[str, Any]]:
    lines = (HERE / "golden" / "released.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="session")
def books(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The workbook of every preset, computed by LibreOffice; it takes most of a minute."""
    from tests.views import live_books

    return live_books.of_presets(tmp_path_factory.mktemp("books"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where everything is installed that a test may need, a test that is skipped has failed."""
    report = yield
    if report.skipped and os.environ.get("PARAMCALC_NO_SKIPS"):
        report.outcome = "failed"
        report.longrepr = f"{report.longrepr}; PARAMCALC_NO_SKIPS is set"
    return report


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TERM"):
        monkeypatch.delenv(name, raising=False)
