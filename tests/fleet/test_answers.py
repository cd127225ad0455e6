"""A row's figures against the calculators of one model and one deployment."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paramcalc.deploy import hardware
from paramcalc.deploy.choices import chosen
from paramcalc.deploy.engine import for_gpu
from paramcalc.deploy.fit import Deployment, Load
from paramcalc.deploy.hardware_file import priced
from paramcalc.deploy.serving import Service, Workload, machine
from paramcalc.errors import InputError
from paramcalc.fleet import answers
from paramcalc.fleet.answers import Fleet
from paramcalc.fleet.figures import FIGURES
from paramcalc.fleet.row import Fault
from paramcalc.sweep.request import Plan, Request
from tests.conftest import preset

GPU_COLUMNS = (
    "gpu_weight_bytes",
    "gpu_kv_bytes",
    "gpu_bytes_needed",
    "gpu_free_bytes",
    "fits",
    "largest_batch",
    "step_nanoseconds",
    "first_token_nanoseconds",
    "tokens_per_second",
    "cost_per_hour",
    "cost_per_million_tokens",
    "cost_per_hour_dollars",
    "cost_per_million_tokens_dollars",
    "tp",
    "pp",
)


def ask(names: tuple[str, ...], **cells: str) -> answers.Answer:
    return Fleet(names, Path(), price="2.49").answer(cells)


@pytest.mark.parametrize(
    ("model", "gpu", "gpus", "context", "batch"),
    [
        ("llama3-8b", "h100", "1", "8k", "4"),
        ("llama3-70b", "h100", "8", "8192", "16"),
        ("deepseek-v3", "h200", "16", "128k", "8"),  # tp 8 x pp 2
        ("gemma3-4b", "l40s", "2", "5,000", "3"),
        ("gpt-oss-20b", "mi300x", "1", "", ""),
    ],
)
def test_figures_are_those_of_fit_and_serve(
    model: str, gpu: str, gpus: str, context: str, batch: str
) -> None:
    cells = {"model": model, "gpu": gpu, "gpus": gpus, "context": context, "batch": batch}
    answer = ask(GPU_COLUMNS, **cells)
    assert answer.error is None
    found = dict(zip(GPU_COLUMNS, answer.figures, strict=True))
    one, kind = preset(model), priced(hardware.find(gpu), "2.49")
    layout = chosen(one, int(gpus))
    d = Deployment(one, layout, one.released_format, engine=for_gpu(kind))
    n = {"8k": 8192, "128k": 131_072, "5,000": 5000, "8192": 8192, "": one.context}[context]
    load = Load(n, int(batch or 1))
    busiest = d.busiest(load)[1]
    assert (found["tp"], found["pp"]) == (layout.tp, layout.pp)
    assert found["gpu_weight_bytes"] == busiest.weights
    assert found["gpu_kv_bytes"] == d.cache_paged(busiest, load)
    assert found["gpu_bytes_needed"] == d.need(load)
    assert found["gpu_free_bytes"] == d.budget(kind.visible_bytes) - d.need(load)
    assert found["fits"] is d.fits(load, kind.visible_bytes)
    assert found["largest_batch"] == d.largest_batch(n, kind.visible_bytes)
    service = Service(
        d, kind, machine(kind, d.format, 60, 80, 10_000), Workload(n, 1, int(batch or 1))
    )
    assert found["step_nanoseconds"] == service.step_time
    assert found["first_token_nanoseconds"] == service.first_token
    million = service.cost_of_all(service.step_time, int(batch or 1))
    assert million is not None
    assert found["tokens_per_second"] == service.decode_rate
    assert found["cost_per_hour"] == 2_490_000 * int(gpus)
    assert found["cost_per_million_tokens"] == million
    assert str(found["cost_per_hour_dollars"]) == f"{249 * int(gpus) / 100:.2f}"
    assert found["cost_per_million_tokens_dollars"] == Decimal(million) / 10**6


def test_the_sweep_has_the_same_names_and_figures() -> None:
    names = ("params", "kv_bytes", "flops_per_token", "gpu_bytes_needed", "tokens_per_second")
    axes = (("gpu", "h100"), ("gpus", "4"), ("tp", "2"), ("context", "5000"), ("batch", "7"))
    plan = Plan(Request(models=("qwen3-8b",), axes=axes, columns=names))
    swept = [int(column[0]) for column in plan.tables[0].materialise()]
    row = {"gpu": "h100", "gpus": "4", "tp": "2", "context": "5000", "batch": "7"}
    assert list(ask(names, model="qwen3-8b", **row).figures) == swept


def test_a_model_alone() -> None:
    names = ("params", "active_params", "weight_bytes", "params_ffn", "context")
    model = preset("deepseek-v3")
    answer = ask(names, model="deepseek-ai/DeepSeek-V3")
    assert answer.figures == (
        671_026_404_352,
        37_552_282_624,
        model.memory.weight_bytes("fp8-block"),  # as released
        model.params.by_component["ffn"],
        163_840,
    )
    dtype = ask(("weight_bytes", "dtype"), model="llama3-8b", dtype=" Q4_K_M ")
    assert dtype.figures == (preset("llama3-8b").memory.weight_bytes("Q4_K_M"), "Q4_K_M")


def test_files_stand_beside_the_table(tmp_path: Path) -> None:
    text = "d: 64\nL: 2\nH: 4\nV: 100\n"
    (tmp_path / "mine.yaml").write_text(text)
    fleet = Fleet(("params",), tmp_path)
    own = fleet.answer({"model": "mine.yaml"}).figures
    assert own == fleet.answer({"model": str(tmp_path / "mine.yaml")}).figures
    assert own[0]
    missing = fleet.answer({"model": "other.yaml"}).error
    assert missing is not None
    assert missing.endswith("other.yaml: no such file or directory; check the path")
    os.mkfifo(tmp_path / "pipe.yaml")  # would be read for ever
    pipe = fleet.answer({"model": "pipe.yaml"}).error
    assert pipe == "model: pipe.yaml: is no file; name a YAML file or a config"


BAD = {
    "model: empty; name a preset": {"model": " "},
    "model: llama3-9b: no such preset or file (did you mean": {"model": "llama3-9b"},
    "model: =cmd|x: no such preset": {"model": "=cmd|x"},
    "model: a formula": {"model": Fault("a formula without a stored value")},
    "gpu: empty, so its figures are left out": {"gpu": ""},
    "gpu = h999: unknown accelerator": {"gpu": "h999"},
    "context = abc: 'abc' is not a number": {"context": "abc"},
    "context = 0: must be from 1 to": {"context": "0"},
    "context = true: 'true' is not a number": {"context": "true"},
    "batch = 1.5: '1.5' is not a whole number": {"batch": "1.5"},
    "gpus = 3: must be a multiple of tp = 2": {"gpus": "3", "tp": "2"},
    "gpus = 997: no tp up to 8 and pp": {"gpus": "997"},
    "tp = 3: must divide the 32 heads": {"gpus": "3", "tp": "3"},
    "dtype = int5: unknown format": {"dtype": "int5"},
    "kv_dtype = int5: unknown format": {"kv_dtype": "int5"},
    "price_per_hour = free: must be dollars": {"price": "free"},
    "model = bert-base: every token sees all others": {"model": "bert-base"},
}


@pytest.mark.parametrize("start", BAD)
def test_a_fault_is_one_line_and_the_rest_is_answered(start: str) -> None:
    cells = {"model": "llama3-8b", "gpu": "h100"} | BAD[start]
    fleet = Fleet(("params", "kv_bytes", "gpu_free_bytes", "tokens_per_second"), Path())
    answer = fleet.answer(cells)
    assert answer.error is not None
    assert answer.error.startswith(start)
    assert "\n" not in answer.error
    assert answer.figures[-1] is None
    if not start.startswith("model"):
        assert answer.figures[0] == 8_030_261_248


def test_every_fault_is_said() -> None:
    fleet = Fleet(("params", "gpu_free_bytes"), Path())
    cells = {"model": "llama3-8b", "gpu": "h999", "context": "abc", "batch": "1.5", "dtype": "x"}
    error = fleet.answer(cells).error
    assert error is not None
    places = [error.index(f"{name} = ") for name in ("gpu", "context", "batch", "dtype")]
    assert places == sorted(places)
    assert error.count("; batch = 1.5: '1.5' is not a whole number") == 1
    long = fleet.answer({"model": "gpt2", "gpu": "h100", "dtype": "very " * 99}).error
    assert long is not None
    assert len(long) <= answers.MOST_LETTERS


ODD = st.sampled_from(
    ["", " ", "?", "0", "-1", "1e9999", "9" * 5000, "\0", "=1+1", "1.5", "true", "\udc80", "a\nb"]
)
CELLS = {
    "model": ["gpt2", "llama3-8b", "bert-base", "mamba-130m", "deepseek-v3", "nosuch", "/", "~x"],
    "gpu": ["h100", "m3-ultra-512gb", "t4", "v100", "h999"],
    "gpus": ["1", "2", "3", "16", "997"],
    "tp": ["1", "2", "3", "64"],
    "context": ["1k", "128k", "1e12"],
    "batch": ["1", "7", "1e12"],
    "dtype": ["bf16", "int8", "Q4_K_M", "nvfp4", "int5"],
    "kv_dtype": ["fp8", "int5"],
    "price": ["2.49", "free"],
}
ROWS = st.fixed_dictionaries(
    {},
    optional={
        role: st.one_of(
            st.sampled_from(some),
            st.sampled_from(some),
            ODD,
            st.text("ak01. ,;:-=~\0\n\u00e9", max_size=6),
            st.just(Fault("a formula without a stored value")),
        )
        for role, some in CELLS.items()
    },
)
EVERY = Fleet(tuple(FIGURES), Path(), price="2.49")
EVERY.known["gpt2"] = preset("gpt2")  # this column is of models, however odd its first names


@settings(max_examples=300)
@given(ROWS)
def test_no_row_is_too_odd_to_answer(cells: dict[str, str | Fault]) -> None:
    answer = EVERY.answer(cells)
    assert len(answer.figures) == len(FIGURES)
    if answer.error is not None:
        assert answer.error.isprintable()
    found = dict(zip(FIGURES, answer.figures, strict=True))
    if None in (found["params"], *(found[name] for name in TIMES_AND_MONEY)):
        assert answer.error or answer.unfit


@pytest.mark.parametrize("model", ["", "nosuch", " "])
@pytest.mark.parametrize("role", CELLS)
def test_a_row_without_a_model_says_so(model: str, role: str) -> None:
    cells = {"model": model} | ({role: CELLS[role][0]} if role != "model" else {})
    answer = Fleet((*FIGURES,), Path(), price="2.49").answer(cells)
    assert answer.error is not None
    assert answer.error.startswith("model: ")
    assert answer.error.count("model: ") == 1


def test_a_price_makes_money_and_none_makes_none() -> None:
    fleet = Fleet(("cost_per_hour",), Path())
    row = {"model": "llama3-8b", "gpu": "h100", "gpus": "2"}
    assert fleet.answer(row | {"price": "2.49"})[:2] == ((4_980_000,), None)
    assert fleet.answer(row | {"price": ""})[:2] == ((None,), None)


def test_dollars_are_exact_to_the_millionth() -> None:
    fleet = Fleet(("cost_per_hour_dollars",), Path())
    row = {"model": "gpt2", "gpu": "h100", "gpus": "3", "tp": "1"}
    for price, hour in (("2.49", "7.47"), ("1", "3.00"), ("0.000001", "0.000003")):
        assert str(fleet.answer(row | {"price": price}).figures[0]) == hour


TIMES_AND_MONEY = (
    "step_nanoseconds",
    "first_token_nanoseconds",
    "tokens_per_second",
    "tokens_per_second_request",
    "tokens_per_second_gpu",
    "cost_per_hour",
    "cost_per_hour_dollars",
    "cost_per_million_tokens",
    "cost_per_million_prompt_tokens_dollars",
)


@pytest.mark.parametrize("gpus", ["1", "16"])  # 16: pipeline stages
def test_what_does_not_fit_has_no_speed_and_no_price(gpus: str) -> None:
    row = {"model": "deepseek-v3", "gpu": "4090", "gpus": gpus}
    answer = ask(("gpu_free_bytes", "fits", *TIMES_AND_MONEY), **row)
    free, fits, *rest = answer.figures
    assert isinstance(free, int)
    assert free < 0
    assert fits is False
    assert rest == [None] * len(TIMES_AND_MONEY)
    assert answer.error is None
    assert answer.unfit
    assert not ask(("fits", "params"), **row).unfit  # nothing was left out
    row |= {"model": "gpt2", "gpus": "1"}
    answer = ask(TIMES_AND_MONEY, **row)
    assert not answer.unfit
    assert None not in answer.figures


def test_a_gpu_without_rates_still_fits() -> None:
    unit = next(unit for unit in hardware.all() if not unit.peaks)
    answer = ask(("fits", "tokens_per_second"), model="gpt2", gpu=unit.name)
    assert answer.figures == (True, None)
    assert answer.error is not None
    assert "no peak is published" in answer.error


def test_columns() -> None:
    gpu = {"model": 0, "gpu": 1}
    plain = answers.columns([], {"model": 0}, priced=False)
    assert plain == ["params", "active_params", "weight_bytes", "kv_bytes", "flops_per_token"]
    assert answers.columns([], gpu, priced=True)[-1] == "cost_per_million_tokens_dollars"
    assert answers.columns([], gpu, priced=False)[-1] == "tokens_per_second"
    for names, why in (
        (["parms"], "columns = parms: unknown column (did you mean params"),
        (["params", "params"], "columns = params: stands twice"),
        (["fits"], "columns = fits: is a figure of a GPU"),
    ):
        with pytest.raises(InputError) as error:
            answers.columns(names, {"model": 0}, priced=False)
        assert str(error.value).startswith(why)
    with pytest.raises(InputError, match="no GPU has a price"):
        answers.columns(["cost_per_hour"], gpu, priced=False)


def test_a_column_of_something_else_is_refused_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "MOST_UNKNOWN", 3)
    fleet = Fleet(("params",), Path())
    fleet.answer({"model": "a1"})
    fleet.answer({"model": "a1"})
    fleet.answer({"model": "a2"})
    with pytest.raises(answers.NoModels, match="3 different names, and none is a model"):
        fleet.answer({"model": "a3"})
