"""What may be passed from Python, and what may not: whatever it is, an answer or one line."""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.deploy.recipe import Recipe
from paramcalc.errors import InputError
from paramcalc.views import arguments
from tests.conftest import preset

CALLS: dict[str, tuple[Callable[..., object], tuple[str, ...]]] = {
    "report": (paramcalc.report, ("gpt2",)),
    "compare": (paramcalc.compare, ("gpt2", "gpt2-xl")),
    "grid": (paramcalc.grid, ("gpt2",)),
    "fit": (paramcalc.fit, ("gpt2", "h100")),
    "serve": (paramcalc.serve, ("gpt2", "h100")),
    "train": (paramcalc.train, ("gpt2", "h100")),
}
AXES = ("context", "batch", "tie", "dtype", "kv_dtype", "gpu", "gpus", "norm", "n_experts", "L")
WRONG: tuple[Any, ...] = (
    *(None, 1.5, float("nan"), float("inf"), 2 + 0j, -1, 0, True, 10**30),
    *("", "x", "2", "1T", "1\n2", "9" * 10_000, b"x", object(), Path("x")),
    *([], ["x"], [None], [1.5], [b"x"], [[1]], {}, {"x": 1}, (1.5,), ["gpt2"]),
)


def parameters(name: str) -> Iterator[str]:
    call, _ = CALLS[name]
    every = inspect.signature(call).parameters.values()
    yield from (p.name for p in every if p.kind is not p.VAR_KEYWORD)
    yield from {"train": Recipe._fields, "grid": AXES}.get(name, ())


def cases() -> Iterator[tuple[str, str]]:
    for name in CALLS:
        for parameter in parameters(name):
            yield name, parameter


@pytest.mark.parametrize(("name", "parameter"), list(cases()))
def test_whatever_is_passed_gives_an_answer_or_one_line(name: str, parameter: str) -> None:
    call, plain = CALLS[name]
    for value in WRONG:
        given, named = list(plain), {}
        if parameter in ("model", "models"):
            given[0] = value
        elif parameter == "gpu" and name != "grid":
            given[1] = value
        else:
            named[parameter] = value
        if name == "grid" and parameter in ("gpus", "hardware", "price"):
            named["gpu"] = "h100"
        if name == "grid" and parameter in ("by", "top"):
            named = {"by": "params", "top": 1} | named
        try:
            said = type(call(*given, **named)).__name__
        except InputError as error:
            said = str(error)
        assert "\n" not in said
        assert len(said) < 500


@pytest.mark.parametrize("value", [None, 5, 1.5, ["gpt2"], b"gpt2", object()])
def test_what_is_no_model(value: Any) -> None:
    for call in (paramcalc.load, paramcalc.report):
        with pytest.raises(InputError, match="must be a name, a path or fields"):
            call(value)


def test_sizes_are_typed_as_on_the_command_line() -> None:
    assert arguments.size("tokens", "1T") == 10**12
    assert arguments.size("context", "8k") == 8 * 1024
    assert arguments.size("prompt", "0.5k") == 512
    assert arguments.size("seq", "4k", tokens=True) == 4096
    assert arguments.size("gpus", "2") == 2
    assert arguments.size("batch", np.int64(7)) == 7  # type: ignore[arg-type]
    one, other = (paramcalc.fit("gpt2", "h100", context=n) for n in ("1k", 1024))
    assert one.rows == other.rows
    run = paramcalc.train("gpt2", "h100", tokens="1B", seq="1k")
    same = paramcalc.train("gpt2", "h100", tokens=10**9, seq=1024)
    assert run.rows == same.rows


def test_one_text_is_one_item() -> None:
    found = paramcalc.grid("gpt2", columns="params", pareto="params", L=[1, 2])
    assert list(found.columns) == ["params"]
    assert len(found) == 1
    one = paramcalc.fit("gpt2", "h100", kinds="h200")
    listed = paramcalc.fit("gpt2", "h100", kinds=["h200"])
    assert one.sections[-1].rows == listed.sections[-1].rows
    with pytest.raises(InputError, match=r"^none\.yaml: no such file"):
        paramcalc.fit("gpt2", "h100", hardware="none.yaml")
    with pytest.raises(InputError, match=r"^none\.yaml: no such file"):
        paramcalc.train("gpt2", "h100", hardware=Path("none.yaml"))  # type: ignore[arg-type]
    assert arguments.texts("hardware", Path("a.yaml")) == ("a.yaml",)
    fields: Any = {"d": 8}
    assert arguments.models(fields) == [fields]


def test_axes() -> None:
    assert arguments.axis("context", range(1, 9, 3)) == "1:7:3"
    assert arguments.axis("context", np.arange(1, 4)) == "1,2,3"
    assert arguments.axis("context", (n for n in (8, 9))) == "8,9"
    assert arguments.axis("tie", [True, False]) == "true,false"
    assert arguments.axis("gpu", "h100,h200") == "h100,h200"
    own = paramcalc.grid("gpt2", L=range(2, 5), columns="params").columns["params"]
    expected = [preset("gpt2").with_(n_layers=n).params.total for n in (2, 3, 4)]
    assert list(own) == expected


@pytest.mark.parametrize(
    "values",
    [
        range(1, 10_000_002),
        [1] * 10_000_001,
        itertools.count(1),
    ],
    ids=["range", "list", "endless"],
)
def test_too_many_values_are_refused_at_once(values: Any) -> None:
    start = time.process_time()
    with pytest.raises(InputError, match="over 10,000,000") as error:
        paramcalc.grid("llama3-8b", context=values)
    assert len(str(error.value)) < 100
    assert time.process_time() - start < 5


def test_a_long_list_is_not_repeated_in_a_message() -> None:
    for values in ([7] * 1000, ["bf16"] * 1000, [*range(1000), "x"]):
        for name in ("context", "dtype", "norm"):
            axes: dict[str, Any] = {name: values}
            with pytest.raises(InputError) as error:
                paramcalc.grid("gpt2", **axes)
            assert len(str(error.value)) < 400


def test_an_error_is_one_printable_line() -> None:
    assert str(InputError("a\r\n\tb \x1b[31m")) == "a b ?[31m"
    assert str(InputError("x = " + "a" * 1000)) == "x = " + "a" * 100 + "..." + "a" * 100
