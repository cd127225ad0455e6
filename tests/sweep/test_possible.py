"""Rows that a sweep leaves out for what is asked, and axes and options that it refuses."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from paramcalc.cli.main import main
from paramcalc.errors import InputError
from paramcalc.sweep import search, select
from paramcalc.sweep.request import Plan, Request
from paramcalc.views.sweep_notes import remarks

Capture = pytest.CaptureFixture[str]

NO_TIMES = "bert-base writes no tokens, so it has no times of them"


def left_out(**request: Any) -> tuple[int, dict[str, int]]:
    plan = Plan(Request(**request))
    return plan.rows, plan.dropped()


@pytest.mark.parametrize(
    "column",
    [
        "step_nanoseconds",
        "first_token_nanoseconds",
        "tokens_per_second",
        "tokens_per_second_request",
        "tokens_per_second_gpu",
        "cost_per_million_tokens",
        "cost_per_million_prompt_tokens",
    ],
)
@pytest.mark.parametrize("place", ["columns", "where", "by", "pareto"])
def test_what_writes_no_tokens_has_no_times(column: str, place: str) -> None:
    """An encoder (BERT) writes nothing; an encoder with a decoder (T5) does."""
    asked: dict[str, Any] = {"columns": ("gpu_free_bytes",)}
    asked |= {"where": (f"{column} > 0",)} if place == "where" else {}
    asked |= {"by": column, "top": 9} if place == "by" else {}
    asked |= {place: (column,)} if place in ("columns", "pareto") else {}
    models = ("bert-base", "t5-small", "gpt2")
    axes = (("gpu", "h100,a100"), ("batch", "1,2,3"))
    assert left_out(models=models, axes=axes, price="2", **asked) == (12, {NO_TIMES: 6})


def test_what_writes_no_tokens_has_memory_and_a_price() -> None:
    columns = ("gpu_free_bytes", "gpu_kv_bytes", "cost_per_hour", "params")
    axes = (("gpu", "h100"),)
    assert left_out(models=("bert-base",), axes=axes, columns=columns, price="2") == (1, {})


def test_a_model_without_a_cache_has_no_largest_batch() -> None:
    found = left_out(
        models=("bert-base", "gpt2"), axes=(("gpu", "h100"),), columns=("largest_batch",)
    )
    assert found == (1, {"bert-base keeps no cache, so it has no largest batch": 1})


def test_a_gpu_without_the_arithmetic_is_left_out() -> None:
    """Turing and Volta have no BF16 (NVIDIA's datasheets); Apple publishes no rates."""
    axes = (("gpu", "h100,t4,v100-sxm-32gb,m3-ultra-512gb"), ("dtype", "bf16,fp16"), ("tp", "1"))
    rows, why = left_out(axes=axes)
    assert rows == 4  # h100 twice, t4 and v100 in fp16
    assert why == {
        "t4-16gb has no bf16": 1,
        "v100-sxm-32gb has no bf16": 1,
        "m3-ultra-512gb has no published rates": 2,
    }
    memory = left_out(axes=axes, columns=("gpu", "dtype", "gpu_free_bytes"))
    assert memory == (6, {"t4-16gb has no bf16": 1, "v100-sxm-32gb has no bf16": 1})
    assert left_out(axes=axes, columns=("params",)) == (8, {})


def test_every_way_of_asking_agrees(tmp_path: Path, capsys: Capture) -> None:
    grid = ["llama3-8b", "bert-base", "--gpu", "h100,t4", "--tp", "1,2", "--gpus", "2"]
    grid += ["--columns", "model,gpu,tp,gpu_free_bytes,tokens_per_second"]
    said = "left out: 2, t4-16gb has no bf16", f"left out: 4, {NO_TIMES}"

    def out(*more: str) -> str:
        assert main(["sweep", *grid, *more]) == 0
        captured = capsys.readouterr()
        for line in said:
            assert line in " ".join((captured.out + captured.err).split())
        return captured.out

    rows = json.loads(out("--json"))
    assert [(row["gpu"], row["tp"]) for row in rows] == [("h100-sxm-80gb", 1), ("h100-sxm-80gb", 2)]
    assert out("--count") == "2\n"
    assert out("--count", "--where", "tp < 9") == "2\n"
    count = json.loads(out("--count", "--json"))
    assert (count["count"], count["rows"], sum(count["left_out"].values())) == (2, 2, 6)
    assert out("--rows", "9").startswith("2 rows")
    assert sorted(json.loads(out("--top", "9", "--by", "tp", "--json")), key=str) == sorted(
        rows, key=str
    )
    front = json.loads(out("--pareto", "-gpu_free_bytes,-tokens_per_second", "--json"))
    assert all(row in rows for row in front)
    assert list(csv.DictReader(io.StringIO(out("--csv")))) == [
        {name: str(value) for name, value in row.items()} for row in rows
    ]
    out("--out", str(tmp_path / "a.parquet"))
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == rows
    out("--out", f"{tmp_path}/parts/")
    assert pq.read_table(sorted((tmp_path / "parts").glob("*.parquet"))).to_pylist() == rows


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("llama3-8b --gpu t4", "(t4-16gb has no bf16: 1); change an axis or --columns"),
        ("llama3-8b --gpu m3-ultra-512gb", "(m3-ultra-512gb has no published rates: 1)"),
        ("bert-base --gpu h100 --price 2", f"({NO_TIMES}: 1)"),
        ("bert-base --gpu h100 --columns largest_batch", "keeps no cache"),
    ],
)
@pytest.mark.parametrize("way", ["", " --count", " --out a.csv", " --top 1 --by gpu_free_bytes"])
def test_no_row_left_is_a_line(
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    says: str,
    way: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *(line + way).split()]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err.count("\n")) == ("", 1)
    assert captured.err.startswith("paramcalc: sweep: no possible shape")
    assert says in captured.err
    assert not list(tmp_path.iterdir())


def test_searching_and_walking_see_the_same_rows() -> None:
    request = Request(
        ("gpt2", "bert-base"), (("gpu", "h100,t4"), ("batch", "1:9")), where=("batch < 5",)
    )
    plan = Plan(request)
    assert search.count(plan) == sum(len(block.rows) for block in select.kept(plan)) == 4


AXES = {
    "gpu": "h100",
    "gpus": "2",
    "tp": "1,2",
    "batch": "1,2",
    "context": "1k",
    "dtype": "int4,fp8",
    "kv_dtype": "fp8",
}
SETS = [
    chosen
    for size in range(1, len(AXES) + 1)
    for chosen in combinations(AXES, size)
    if "gpu" in chosen or not {"gpus", "tp"} & set(chosen)
]


def test_no_column_comes_twice(tmp_path: Path, capsys: Capture) -> None:
    """Every set of axes, one or two models, read back by Arrow and as CSV."""
    assert len(SETS) == 64 + 15
    for number, chosen in enumerate(SETS):
        words = [w for name in chosen for w in (f"--{name.replace('_', '-')}", AXES[name])]
        models = ["gpt2", "llama3-8b"][: 1 + number % 2]
        path = tmp_path / f"{number}.parquet"
        assert main(["sweep", *models, *words, "--out", str(path)]) == 0
        capsys.readouterr()
        assert main(["sweep", *models, *words, "--csv"]) == 0
        rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
        found = pq.read_table(path)
        assert found.column_names == rows[0]
        assert len(set(rows[0])) == len(rows[0])
        assert set(chosen) <= set(rows[0])
        assert [[str(v) for v in row.values()] for row in found.to_pylist()] == rows[1:]


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ({"price": "2"}, r"^price = 2: is of a GPU-hour; add --gpu h100$"),
        ({"hardware": ("none.yaml",)}, r"^hardware: .*; add --gpu h100$"),
        ({"axes": (("dtype", "Q4_K_M"),)}, r"^dtype = Q4_K_M: file types of llama\.cpp are not in"),
        ({"axes": (("dtype", "bf16,q8_0"),)}, r"^dtype = q8_0: .*; fit, serve and formats have"),
        ({"axes": (("gpu", "h100"), ("batch", "0,4"))}, "^batch = 0: must be from 1 to"),
        ({"axes": (("gpu", "h100"), ("context", "0,4"))}, "^context = 0: must be from 1 to"),
    ],
)
def test_refused(wish: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        assert Plan(Request(**wish)).tables


def test_an_unknown_format_offers_only_what_a_sweep_takes() -> None:
    with pytest.raises(InputError) as error:
        Plan(Request(axes=(("dtype", "Q4"),)))
    assert str(error.value).startswith("dtype = Q4: unknown format")
    assert "llama.cpp" not in str(error.value)


def test_a_context_beyond_the_models_own_is_noted() -> None:
    def said(models: tuple[str, ...], context: str, gpu: str = "h100") -> list[str]:
        axes = (("context", context), *((("gpu", gpu),) if gpu else ()))
        return remarks(Plan(Request(models, axes)))

    table = "context = 2,000,000: beyond its table of 8,192 positions"
    assert said(("starcoder-15b",), "1k,2000000") == [table]
    assert said(("llama3-8b",), "9k") == ["context = 9,216: beyond the model's own 8,192"]
    assert said(("llama3-8b", "llama3.1-8b"), "9k") == said(("llama3-8b",), "9k")
    assert said(("gpt2", "llama3-8b"), "9k") == [
        "context: beyond what these have of their own: gpt2, llama3-8b"
    ]
    assert said(("llama3-8b",), "8k") == said(("gpt2",), "9k", gpu="") == []
