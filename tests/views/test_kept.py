"""Kept tensors on the screen: their sums are those that autograd was measured to keep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import paramcalc
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training import Plan
from paramcalc.views import kept_view

GOLDEN = json.loads((Path(__file__).parent.parent / "golden/activations.json").read_text())


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_a_layer_of_llama_sums_to_what_was_measured(attention: str) -> None:
    fact = next(r for r in GOLDEN if r["model"] == "llama" and r["attn"] == attention)
    card = {"d_model": 256, "n_layers": 3, "n_heads": 8, "d_ff": 704, "vocab_size": 1000}
    model = paramcalc.load(card | {"gated_ffn": True})
    recipe = Recipe(seq=fact["seq"], micro_batch=fact["batch"], attention=attention)
    plan = Plan(model, Layout(), recipe)
    rows = [row for row in kept_view.rows(plan) if row["where"] == "layers"]
    assert sum(row["bytes_per_layer"] for row in rows) == fact["per_layer_bytes"]
    assert {row["layers"] for row in rows} == {3}
    titles = [section.title for section in kept_view.sections(plan)]
    assert titles == ["Kept in layers, one of 3", "Kept outside the layers", "Kept by the loss"]
