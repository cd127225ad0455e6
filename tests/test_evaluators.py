"""One formula, several kinds of number: ints, int64 arrays, sympy symbols, our own symbols."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import sympy
from hypothesis import given, settings

import paramcalc
from paramcalc.build import ledger_of, plan
from paramcalc.layout import is_literal
from paramcalc.ledger import Ledger
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sources import presets
from paramcalc.spec import ModelSpec
from paramcalc.symbolic import NAMES, symbolic
from paramcalc.symbols import lift
from tests.conftest import preset
from tests.strategies import specs

SOLVED = "attention_equals_matmuls_at"
FOLDS = [key for key in CATALOGUE if key != SOLVED]
SOME = [
    "llama3-8b",
    "gpt2",
    "deepseek-v3.2",
    "gemma3-27b",
    "t5-small",
    "albert-base",
    "llama4-maverick",
    "modernbert-base",
    "gpt-oss-20b",
    "opt-350m",
    "bert-base",
]


def ints(spec: ModelSpec, n: int) -> dict[str, int]:
    ledger, at = ledger_of(plan(spec)), At(n, 3, 16)
    return {key: cast(int, CATALOGUE[key].of(ledger, at)) for key in FOLDS}


def swapped(section: Any, make: Any, path: str = "") -> Any:
    """A copy of a section whose numbers are what ``make`` gives for them."""
    update: dict[str, Any] = {}
    for field in type(section).model_fields:
        value = getattr(section, field)
        if field in NAMES and type(value) is int and not is_literal(value, 0):
            update[field] = make(f"{path}{field}", value)
        elif field in ("mla", "encoder") and value is not None:
            update[field] = swapped(value, make, f"{path}{field}_")
        elif field in ("layers", "pattern") and value is not None:
            update[field] = tuple(swapped(v, make, f"{path}{i}_") for i, v in enumerate(value))
    return section.model_copy(update=update)


def folded(spec: ModelSpec, n: Any) -> dict[str, Any]:
    ledger: Ledger = ledger_of(plan(spec))
    return {key: CATALOGUE[key].of(ledger, At(n, 3, 16)) for key in FOLDS}


def check_arrays(spec: ModelSpec, n: int) -> None:
    arrays = swapped(spec, lambda _, value: np.array([[value], [value]], dtype=np.int64))
    for key, value in folded(arrays, np.array([n, n, n], dtype=np.int64)).items():
        exact = ints(spec, n)[key]
        if abs(exact) < 2**63:
            assert np.all(np.asarray(value) == exact), key


def check_symbols(spec: ModelSpec, n: int) -> None:
    symbols, context = symbolic(spec, n)
    for key, value in folded(symbols, context).items():
        assert lift(value).value == ints(spec, n)[key], key


@pytest.mark.parametrize("name", presets.names())
def test_presets_on_arrays_and_symbols(name: str) -> None:
    model = preset(name)
    n = min(model.context, 4096)
    check_arrays(model.spec, n)
    check_symbols(model.spec, n)


@pytest.mark.parametrize("name", SOME)
def test_presets_on_sympy(name: str) -> None:
    spec, n = preset(name).spec, 100
    values: dict[Any, int] = {}

    def make(path: str, value: int) -> Any:
        made = sympy.Symbol(path, integer=True, positive=True)
        values[made] = value
        return made

    found = folded(swapped(spec, make), make("n_seen", n))
    exact = ints(spec, n)
    for key, formula in found.items():
        assert int(sympy.sympify(formula).subs(values)) == exact[key], key


@settings(deadline=None)
@given(specs())
def test_random_shapes_on_arrays_and_symbols(fields: dict[str, Any]) -> None:
    spec = paramcalc.load(fields).spec
    check_arrays(spec, fields["context"])
    check_symbols(spec, fields["context"])


def test_arrays_broadcast_over_factored_axes() -> None:
    base = preset("llama3-8b").spec
    d = np.array([2048, 4096], dtype=np.int64)[:, None]
    kv = np.array([4, 8, 32], dtype=np.int64)[None, :]
    grid = base.model_copy(update={"d_model": d, "n_kv_heads": kv})
    total = np.asarray(CATALOGUE["params"].of(ledger_of(plan(grid)), At(1)))
    for i, width in enumerate((2048, 4096)):
        for j, heads in enumerate((4, 8, 32)):
            exact = preset("llama3-8b").with_(d=width, kv=heads).params.total
            assert total[i, j] == exact
