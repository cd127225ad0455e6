"""Deployments in a sweep: every row against the calculator of one deployment."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.deploy import hardware, serving
from paramcalc.deploy.engine import for_gpu
from paramcalc.deploy.fit import Deployment, Load
from paramcalc.deploy.fitting import Fit
from paramcalc.deploy.hardware_file import priced
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.serving import Service, Workload
from paramcalc.errors import InputError
from paramcalc.sweep import search
from paramcalc.sweep.request import Plan, Request

COLUMNS = (
    "model",
    "gpu",
    "gpus",
    "tp",
    "batch",
    "context",
    "dtype",
    "gpu_bytes",
    "gpu_weight_bytes",
    "gpu_kv_bytes",
    "gpu_bytes_needed",
    "gpu_free_bytes",
    "largest_batch",
    "step_nanoseconds",
    "first_token_nanoseconds",
    "tokens_per_second",
    "tokens_per_second_request",
    "tokens_per_second_gpu",
    "cost_per_hour",
    "cost_per_million_tokens",
)


def table(**request: Any) -> list[dict[str, Any]]:
    plan = Plan(Request(**{"columns": COLUMNS, **request}))
    rows = []
    for found in plan.tables:
        arrays = iter(found.materialise())
        values = [
            [c.text] * found.rows if c.formula is None else [int(x) for x in next(arrays)]
            for c in found.columns
        ]
        rows += [
            dict(zip((c.name for c in found.columns), row, strict=True))
            for row in zip(*values, strict=True)
        ]
    return rows


def check(row: dict[str, Any]) -> None:
    """A row against ``fit`` and ``serve``, which run the same folds on plain ints."""
    model = paramcalc.load(row["model"])
    gpu = priced(hardware.find(row["gpu"]), "2.49")
    layout = Layout(tp=row["tp"], dp=row["gpus"] // row["tp"])
    one = Deployment(model, layout, row["dtype"], engine=for_gpu(gpu))
    load = Load(row["context"], row["batch"])
    stage = one.stages[0]
    assert row["gpu_weight_bytes"] == stage.weights
    assert row["gpu_kv_bytes"] == one.cache_paged(stage, load)
    assert row["gpu_bytes_needed"] == one.need(load)
    assert row["gpu_free_bytes"] == one.budget(gpu.visible_bytes) - one.need(load)
    assert row["largest_batch"] == one.largest_batch(load.context, gpu.visible_bytes)
    machine = serving.machine(gpu, one.format, 60, 80, 10_000)
    service = Service(one, gpu, machine, Workload(row["context"], 1, row["batch"]))
    assert row["step_nanoseconds"] == service.step_time
    assert row["first_token_nanoseconds"] == service.first_token
    assert row["tokens_per_second"] == service.decode_rate
    assert row["tokens_per_second_request"] == 10**9 // service.step_time
    assert row["cost_per_hour"] == 2_490_000 * row["gpus"]
    cost = service.cost_of_all(service.step_time, row["batch"])
    assert row["cost_per_million_tokens"] == cost


@pytest.mark.parametrize("name", ["llama3.1-8b", "qwen3-30b-a3b", "gemma3-4b", "deepseek-v2-lite"])
def test_rows_are_those_of_one_deployment(name: str) -> None:
    rows = table(
        models=(name,),
        axes=(
            ("gpu", "h100,l40s"),
            ("gpus", "1:4:1"),
            ("tp", "1,2,4"),
            ("context", "1k,5000"),
            ("batch", "1,3,64"),
            ("dtype", "bf16,fp8"),
        ),
        price="2.49",
    )
    assert len(rows) == 2 * 7 * 2 * 3 * 2  # gpus-tp: 1-1, 2-1, 2-2, 3-1, 4-1, 4-2, 4-4
    for row in rows[::7]:
        check(row)


def test_without_a_price_no_money_is_shown() -> None:
    assert not any(n.startswith("cost") for n in Plan(Request(axes=(("gpu", "h100"),))).shown)
    for wish in ({"columns": ("cost_per_hour",)}, {"where": ("cost_per_million_tokens < 5",)}):
        with pytest.raises(InputError, match=r"cost_.*h100-sxm-80gb has no price; add --price"):
            Plan(Request(axes=(("gpu", "h100"),), **wish))


def test_layouts_that_do_not_divide_are_dropped() -> None:
    plan = Plan(
        Request(models=("gemma3-1b",), axes=(("gpu", "h100"), ("gpus", "8"), ("tp", "1:8")))
    )
    assert plan.rows == 3  # 4 heads: 1, 2, 4
    assert set(plan.dropped()) == {
        "gpus must be a multiple of tp",
        "tp must divide the heads of attention.q",
    }


@pytest.mark.parametrize("axis", ["gpus", "tp"])
def test_axes_of_a_deployment_need_a_gpu(axis: str) -> None:
    with pytest.raises(InputError, match=f"^{axis}: .*--gpu"):
        Plan(Request(axes=((axis, "1,2"),)))


def test_columns_of_a_deployment_need_a_gpu() -> None:
    with pytest.raises(InputError, match=r"^gpu_free_bytes: .*--gpu"):
        _ = Plan(Request(columns=("gpu_free_bytes",))).tables


def test_unknown_gpus_are_refused() -> None:
    with pytest.raises(InputError, match="unknown accelerator"):
        Plan(Request(axes=(("gpu", "h100,h10000"),)))


def test_minima_that_span_leading_and_trailing_axes() -> None:
    """A window that leads and a context that trails meet in one minimum."""
    axes = (
        ("window", "1k:8k:x2"),
        ("n_layers", "1:96"),
        ("d_ff", "1k:33k:8"),
        ("context", "1k,8k"),
    )
    found = Plan(Request(models=("mistral-7b",), axes=axes, columns=("kv_bytes",))).tables[0]
    kv = found.materialise()[0]
    ff = found.rows // (4 * 96 * 2)
    for w, window in enumerate((1024, 2048, 4096, 8192)):
        for last, context in enumerate((1024, 8192)):
            row = ((w * 96 + 31) * ff + 5) * 2 + last
            assert kv[row] == 32 * 2 * 8 * 128 * 2 * min(window, context)


def test_money_and_times_beyond_int64_stay_exact() -> None:
    rows = table(
        models=("llama3.1-405b",),
        axes=(
            ("gpu", "h100"),
            ("dtype", "bf16"),
            ("gpus", "8"),
            ("tp", "8"),
            ("batch", "1,10M"),
            ("context", "1M,100M"),
        ),
        price="2.49",
    )
    for row in rows:
        check(row)


def test_the_search_finds_what_a_walk_finds() -> None:
    """The cheapest row that fits, and how many do, against every row."""
    axes = (
        ("gpu", "h100,a100"),
        ("gpus", "1:9"),
        ("tp", "1,2,4,8"),
        ("batch", "1:64"),
        ("context", "2k,16k"),
    )
    common = {"models": ("llama3.1-8b", "qwen3-30b-a3b"), "axes": axes, "price": "2"}
    fits = "gpu_free_bytes >= 0 and tokens_per_second_request >= 60"
    by = "cost_per_million_tokens"
    columns = ("gpu_free_bytes", "tokens_per_second_request", by)
    walked = [
        row[by]
        for row in table(**common, columns=columns)
        if row["gpu_free_bytes"] >= 0 and row["tokens_per_second_request"] >= 60
    ]
    searched = Plan(Request(**common, where=(fits,), by=by, top=3, columns=(by,)))
    found = [int(row.table.at(np.array([row.own]))[0][0]) for row in search.best(searched)]
    assert found == sorted(walked)[:3]
    assert search.count(Plan(Request(**common, where=(fits,)))) == len(walked)


KINDS = (
    "gpt2",  # learned positions
    "starcoder-15b",
    "bert-base",
    "opt-125m",
    "bart-large",  # an encoder, learned positions
    "t5-small",
    "llama3-8b",  # rotary
    "gemma3-4b",  # windows
    "deepseek-v2-lite",  # latent attention
    "llama4-scout",  # chunks
    "qwen3-30b-a3b",
)
TOWERS = {"gemma3-4b": 419_816_304, "llama4-scout": 871_932_416}
"""Of their files, what reads images."""
FIGURES = ("context", "gpu_weight_bytes", "gpu_bytes_needed", "gpu_free_bytes")


@pytest.mark.parametrize("name", KINDS)
def test_a_context_is_asked_of_the_deployment_as_in_fit(name: str) -> None:
    """Far beyond a learned table too: it keeps its length, and the weights those published."""
    model, gpu = paramcalc.load(name), hardware.find("h100")
    contexts = (100, 512, 8192, 2_000_000)
    axes = (("gpu", "h100"), ("dtype", "bf16"), ("context", ",".join(map(str, contexts))))
    caches = any(cache.elements(1) for cache in model.ledger.caches)
    columns = (*FIGURES, *(("largest_batch",) if caches else ()))
    rows = table(models=(name,), axes=axes, columns=columns)
    assert [row["context"] for row in rows] == list(contexts)
    one = Deployment(model, Layout(), engine=for_gpu(gpu))
    for row in rows:
        load = Load(row["context"])
        assert row["gpu_weight_bytes"] == one.stages[0].weights
        assert row["gpu_bytes_needed"] == one.need(load)
        assert row["gpu_free_bytes"] == Fit(one, gpu, load).gap
        assert (row["gpu_free_bytes"] >= 0) is one.fits(load, gpu.visible_bytes)
        if caches:
            most = one.largest_batch(load.context, gpu.visible_bytes)
            assert row["largest_batch"] == most
    about = model.spec.about
    assert about is not None
    if isinstance(about.published, int):
        text = about.published - TOWERS.get(name, 0)
        assert {row["gpu_weight_bytes"] for row in rows} == {2 * text}


def test_starcoder_by_hand() -> None:
    """15,517,456,384 parameters (its files hold as many), 40 layers of one K and V head of 128."""
    axes = (("gpu", "h100"), ("context", "8k,2000000"))
    columns = ("gpu_weight_bytes", "gpu_kv_bytes", "params")
    rows = table(models=("starcoder-15b",), axes=axes, columns=columns)
    assert {row["params"] for row in rows} == {15_517_456_384}
    assert {row["gpu_weight_bytes"] for row in rows} == {31_034_912_768}
    assert [row["gpu_kv_bytes"] for row in rows] == [8192 * 20_480, 2_000_000 * 20_480]


def test_without_a_gpu_a_context_is_the_models_field() -> None:
    rows = table(models=("gpt2",), axes=(("context", "1k,3k"),), columns=("params",))
    assert [row["params"] for row in rows] == [124_439_808, 124_439_808 + 2048 * 768]


def test_a_switch_that_adds_a_table_keeps_its_length() -> None:
    """``gpt2`` gives llama3-8b a table of its own 8,192 places, whatever is asked of the GPU."""
    axes = (("gpt2", "true"), ("gpu", "h100"), ("context", "1k,2000000"))
    rows = table(axes=axes, columns=("params", "params_position"))
    assert {row["params_position"] for row in rows} == {8192 * 4096}
    assert len({row["params"] for row in rows}) == 1


def test_a_context_may_be_an_expression_beside_a_table() -> None:
    axes = (("gpu", "h100"), ("batch", "1,4"), ("context", "8192/batch"))
    rows = table(models=("gpt2",), axes=axes, columns=("context", "params", "gpu_kv_bytes"))
    assert [row["context"] for row in rows] == [8192, 2048]
    assert {row["params"] for row in rows} == {124_439_808}
    assert len({row["gpu_kv_bytes"] for row in rows}) == 1
