"""The workbook's figures are those of ``paramcalc serve`` and ``fit`` at the settings it names."""

from __future__ import annotations

import json
from typing import Any

import openpyxl
import pytest

from paramcalc.cli.main import main
from tests.views.book_cells import LINES

MODELS = ("llama3-8b", "gpt-oss-20b", "gemma3-27b")
CONTEXT, BATCH = 12_345, 10
SHARED = ["--gpu", "h100", "--gpus", "4", "--tp", "2", "--price", "2.49"]
SERVED = {
    "tokens": "tokens_per_second",
    "tokens_request": "tokens_per_second_request",
    "tokens_gpu": "tokens_per_second_gpu",
    "step_weights": "decode_weight_bytes",
    "step_cache": "decode_cache_bytes",
    "cost_million": "cost_per_million_tokens",
}


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("served") / "plan.xlsx"
    asked = ["--context", str(CONTEXT), "--batch", str(BATCH)]
    assert main(["sheet", *MODELS, "-o", str(path), *asked, *SHARED]) == 0
    return openpyxl.load_workbook(path, data_only=True)["Deployment"]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[dict[str, Any], Any]:
    assert main([*arguments, *SHARED, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    return {name: figure["value"] for name, figure in data["figures"].items()}, data


@pytest.mark.parametrize("place", range(len(MODELS)))
def test_it_is_what_the_commands_give(
    place: int, sheet: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(key: str) -> Any:
        return sheet.cell(LINES[key], 4 + place).value

    batch = ("--batch", str(BATCH))
    model = MODELS[place]
    served, _ = answer(
        capsys, "serve", model, "--prompt", str(CONTEXT - 1), "--output", "2", *batch
    )
    assert {key: shown(key) for key in SERVED} == {k: served[name] for k, name in SERVED.items()}
    assert -(-shown("step_time") // 1000) == served["step_time"]
    first, _ = answer(capsys, "serve", model, "--prompt", str(CONTEXT), *batch)
    assert -(-shown("first_time") // 1000) == first["time_to_first_token"]
    assert shown("cost_prompt") == first["cost_per_million_prompt_tokens"]
    fitted, data = answer(capsys, "fit", model, "--context", str(CONTEXT), *batch)
    assert shown("budget") == fitted["budget_bytes"]
    assert shown("free") == data["gap_bytes"]
    assert shown("fits") == ("fits" if data["fits"] else "does not fit")


def test_it_names_the_settings(sheet: Any) -> None:
    notes = {cell.value for row in sheet for cell in row if isinstance(cell.value, str)}
    assert "as paramcalc serve --prompt (CONTEXT - 1) --output 2" in notes
