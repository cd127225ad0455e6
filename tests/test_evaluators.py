"""One formula, several kinds of number: ints, int64 arrays, sympy symbols, our own symbols.

Cells and JavaScript, and every preset: ``test_evaluators_all.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy
from hypothesis import given, settings

import paramcalc
from paramcalc.build import ledger_of, plan
from paramcalc.quantities.catalogue import CATALOGUE, At
from tests.conftest import preset
from tests.evaluators import folded, on_arrays, on_symbols, swapped
from tests.strategies import specs

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


@pytest.mark.parametrize("name", SOME)
def test_presets_on_sympy(name: str) -> None:
    spec, n = preset(name).spec, 100
    values: dict[Any, int] = {}

    def make(path: str, value: int) -> Any:
        made = sympy.Symbol(path, integer=True, positive=True)
        values[made] = value
        return made

    found = folded(swapped(spec, make), At(make("n_seen", n), 3))
    exact = folded(spec, At(n, 3))
    for key, formula in found.items():
        assert int(sympy.sympify(formula).subs(values)) == exact[key], key


@settings(deadline=None)
@given(specs())
def test_random_shapes_on_arrays_and_symbols(fields: dict[str, Any]) -> None:
    spec, at = paramcalc.load(fields).spec, At(fields["context"], 3)
    exact = folded(spec, at)
    assert on_arrays(spec, at) == exact
    assert on_symbols(spec, at) == exact


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
