"""Calls from Python against the models, the sweep and the commands."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.cli.main import main
from paramcalc.deploy.fit import Deployment
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.views import calls
from tests.conftest import preset


def values(result: paramcalc.Result, key: str = "key") -> dict[str, Any]:
    return {row[key]: row["value"] for row in result.rows}


def test_report_and_compare() -> None:
    found = values(paramcalc.report("llama3-8b", context=100, batch=3), "quantity")
    model = preset("llama3-8b")
    assert found["params"] == model.params.total
    assert found["kv_bytes"] == model.memory.kv_bytes(100, batch=3)
    pair = paramcalc.compare("llama3-8b", preset("qwen3-8b"), context=1000)
    rows = {row["quantity"]: row for row in pair.rows}
    assert rows["flops_per_token"]["qwen3-8b"] == preset("qwen3-8b").flops.per_token(1000)
    assert len(paramcalc.compare("gpt2", "gpt2-medium", "gpt2-large").sections) == 2


def test_a_grid_is_the_sweep() -> None:
    wide = preset("llama3-8b").with_(d_ff=8192)
    found = paramcalc.grid(
        ["llama3-8b", wide], layers="8:32:8", kv=[8, 32], columns=["model", "n_layers", "params"]
    )
    assert len(found) == 16
    assert found.columns["params"].dtype == np.int64
    row = found.rows[15]
    assert row["params"] == wide.params.total + 32 * (32 - 8) * 128 * 2 * 4096
    assert type(row["params"]) is int
    few = paramcalc.grid("llama3-8b", L="1:100", where="params < 8e9", columns=["n_layers"])
    assert few.rows == [{"n_layers": n} for n in range(1, 32)]
    best = paramcalc.grid(
        "gpt2", L=[1, 2, 3], by="params", top=1, descending=True, columns=["n_layers"]
    )
    assert best.rows == [{"n_layers": 3}]
    front = paramcalc.grid("gpt2", L=[1, 2, 3], pareto=["-params"], columns=["n_layers"])
    assert front.rows == [{"n_layers": 3}]
    assert "and 80 more; to_pandas() has them" in repr(paramcalc.grid("gpt2", L="1:100"))


def test_beyond_int64_and_no_rows() -> None:
    huge = paramcalc.grid("gpt2", context=10**12, columns=["context", "training_flops"])
    exact = preset("gpt2").with_(context=10**12).flops.training(10**12)
    assert huge.rows == [{"context": 10**12, "training_flops": exact}]
    none = paramcalc.grid("gpt2", L=[1], where="params > 1e12")
    assert (len(none), none.rows) == (0, [])
    assert none._repr_html_()


def test_deployments() -> None:
    fit = paramcalc.fit("llama3-70b", "h100", gpus=8, context=8192, kinds=["h200"])
    deployment = Deployment(preset("llama3-70b"), Layout(tp=8))
    assert values(fit)["gpu_weight_bytes"] == deployment.stages[0].weights
    assert fit.sections[-1].title == "Fewest GPUs of each kind"
    small = paramcalc.fit("gpt2", "l40s")  # 256 requests a step
    assert values(small)["workspace_bytes"] == 256 * 50_257 * 39
    serve = paramcalc.serve("llama3-8b", "h100", tp=2, gpus=4, price=2.49)
    assert "tp 2 x dp 2" in serve.words
    train = paramcalc.train(
        "llama3-8b", "h100", gpus=64, tokens=10**12, mfu=Fraction(1, 2), optimizer="lion"
    )
    assert "lion" in train.words
    assert "dp 4" in paramcalc.train("gpt2", "h100", gpus=4, tp=1).words


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "": ("fit", {}),
    "--gpus 8 --dp 2 --context 8k --batch 4 --kinds nvidia --price 2.49": (
        "fit",
        {"gpus": 8, "dp": 2, "context": "8k", "batch": 4, "kinds": "nvidia", "price": 2.49},
    ),
    "--utilization 95% --page 32 --reserve 1G --max-seqs 64 --max-batched-tokens 4k": (
        "fit",
        {
            "utilization": 0.95,
            "page": 32,
            "reserve": 10**9,
            "max_seqs": 64,
            "max_batched_tokens": 4096,
        },
    ),
    "--tp 2 --max-seqs 8 --hop 5.5 --flops-efficiency 50%": (
        "serve",
        {"tp": 2, "max_seqs": 8, "hop": 5.5, "flops_efficiency": 0.5},
    ),
    "--kv-dtype fp8": ("serve", {"kv_dtype": "fp8"}),
    "--gpus 16 --cp 2 --tokens 1T --tokens-per-second 90k --pue 1.2 --reserve 1G --chinchilla": (
        "train",
        {
            "gpus": 16,
            "cp": 2,
            "tokens": "1T",
            "tokens_per_second": 90_000,
            "pue": 1.2,
            "reserve": "1G",
            "chinchilla": True,
        },
    ),
}


@pytest.mark.parametrize("line", OPTIONS)
def test_a_call_is_its_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same options and defaults: every cell of every table."""
    name, options = OPTIONS[line]
    assert main([name, "llama3-8b", "--gpu", "h100", *line.split(), "--markdown"]) == 0
    screen = capsys.readouterr()
    result = getattr(paramcalc, name)("llama3-8b", "h100", **options)
    assert main([name, "llama3-8b", "--gpu", "h100", *line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["figures"]
    told = {row["key"]: {key: row[key] for key in found[row["key"]]} for row in result.rows}
    assert found == told
    titles = [title for title in screen.out.splitlines() if title.startswith("#")]
    assert all(s.title in t for s, t in zip(result.sections, titles[1:], strict=True))
    noted = [f"paramcalc: note: {note}" for note in result.notes]
    assert screen.err.splitlines() == noted


def test_names_and_defaults_are_those_of_the_command() -> None:
    for name in ("fit", "serve"):
        command = import_module(f"paramcalc.cli.{name}")
        typed = inspect.signature(getattr(command, name)).parameters
        passed = inspect.signature(getattr(paramcalc, name)).parameters
        shown = {"like", "arch", "json", "csv", "markdown"}
        assert passed.keys() == typed.keys() - shown


BAD: dict[str, Callable[[], object]] = {
    "models = 1: a comparison needs two or more": lambda: paramcalc.compare("gpt2"),
    "context = 0: must be a whole number": lambda: paramcalc.report("gpt2", context=0),
    "batch = 1.5: must be a whole": lambda: paramcalc.report("gpt2", batch=1.5),  # type: ignore[arg-type]
    "colour: no field of a model": lambda: paramcalc.grid("gpt2", colour=[1, 2]),
    "grid: no possible shape": lambda: paramcalc.grid("llama3-8b", kv=[3, 5]),
    "top and by: one needs the other": lambda: paramcalc.grid("gpt2", top=3),
    "gpus = 6: dp 4 must divide": lambda: paramcalc.fit("gpt2", "h100", gpus=6, dp=4),
    "gpus = 6: tp 4 must divide it": lambda: paramcalc.fit("gpt2", "h100", gpus=6, tp=4),
    "flops_efficiency = 1.01: must be above 0 and at most 1": lambda: paramcalc.serve(
        "gpt2", "h100", flops_efficiency=1.01
    ),
    "kinds = 7: must be text": lambda: paramcalc.fit("gpt2", "h100", kinds=7),  # type: ignore[arg-type]
    "sero: no setting of a recipe (did you mean zero": lambda: paramcalc.train(
        "gpt2", "h100", sero=1
    ),
    "lama: no such preset": lambda: paramcalc.fit("lama", "h100"),
}


@pytest.mark.parametrize("start", BAD)
def test_bad_input(start: str) -> None:
    with pytest.raises(InputError) as error:
        BAD[start]()
    assert str(error.value).startswith(start)
    assert "\n" not in str(error.value)


def test_an_answer_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST_CELLS", 100)
    with pytest.raises(InputError, match="1,000 rows: too many at once"):
        paramcalc.grid("gpt2", context="1:1000")


def test_files_may_be_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("d: 512\nL: 2\nH: 8\nV: 100\n")
    assert values(paramcalc.report(str(path)), "quantity")["params"] == 6_396_416
