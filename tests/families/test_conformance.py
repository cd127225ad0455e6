"""Every model type of the golden facts: parameters, tensors, FLOPs, caches."""

from __future__ import annotations

from runpy import run_path
from typing import Any

import pytest

import paramcalc
from paramcalc.model import Model
from tests.conftest import ROOT
from tests.families import conformance as c

TYPES, RELEASED, VARIED = c.rows("types"), c.rows("configs"), c.rows("varied")
CHANGED = c.rows("changed")
EVERY = [*TYPES, *RELEASED, *VARIED]

NO_DEFAULTS = {"dots1"}
"""The class's own defaults lack sizes, and it cannot be built from them."""


@pytest.mark.parametrize("row", EVERY, ids=c.label)
def test_parameters_and_tensors_are_exact(row: dict[str, Any]) -> None:
    model = c.model_of(row)
    assert model.params.total == c.published_params(row)
    assert c.shapes_of(model) == c.golden_shapes(row)


@pytest.mark.parametrize(
    "row", [r for r in TYPES if r["model_type"] not in NO_DEFAULTS], ids=c.label
)
def test_absent_keys_take_the_type_s_defaults(row: dict[str, Any]) -> None:
    model = paramcalc.load({"model_type": row["model_type"]}, arch=row["arch"])
    assert model.params.total == row["params"]


@pytest.mark.parametrize("model_type", sorted({row["model_type"] for row in CHANGED}))
def test_changed_keys_beside_defaults_are_exact(model_type: str) -> None:
    for row in (r for r in CHANGED if r["model_type"] == model_type):
        config = {**row["changed"], "model_type": model_type}
        model = paramcalc.load(config, arch=row["arch"])
        assert model.params.total == row["params"], row["changed"]
        assert c.digest(c.shapes_of(model)) == row["shapes"], row["changed"]


@pytest.mark.parametrize("row", [*TYPES, *RELEASED], ids=c.label)
def test_flops_are_exact_or_explained_to_the_last_one(row: dict[str, Any]) -> None:
    for work in c.work_of(row, c.model_of(row)):
        assert work.accounted, (work.n, work.framework - work.ours - work.explained)


TIED_NAME = {"camembert", "xlm-roberta"}
"""The framework calls their tied table by the head's name, a release by the embedding's."""


@pytest.mark.parametrize("row", TYPES, ids=c.label)
def test_tensors_have_the_framework_s_names(row: dict[str, Any]) -> None:
    if row["model_type"] not in TIED_NAME:
        assert c.names_of(c.model_of(row)) == c.golden_names(row)


NO_CACHE = {"gemma4_unified_assistant": "reads the cache of the model that it assists"}


def uncached(row: dict[str, Any], model: Model) -> bool:
    """Whether a class keeps no cache: it reads both ways, or reads another model's."""
    return not model.spec.causal or row["model_type"] in NO_CACHE


@pytest.mark.parametrize("row", TYPES, ids=c.label)
def test_what_generates_keeps_a_cache(row: dict[str, Any]) -> None:
    model = c.model_of(row)
    kinds = model.memory.cache_by_kind(1024)
    assert bool(kinds) is not uncached(row, model)
    assert sum(kind.elements for kind in kinds) * 2 == model.memory.kv_bytes(1024)
    layers = model.memory.cache_by_layer(1024)
    assert sum(layer.elements for layer in layers) == sum(kind.elements for kind in kinds)


def test_the_table_in_the_docs_is_what_the_script_makes(capsys: pytest.CaptureFixture[str]) -> None:
    run_path(str(ROOT / "tools" / "conformance.py"), run_name="__main__")
    page = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out == page
