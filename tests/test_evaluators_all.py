"""One formula, every evaluator: int64 arrays, symbols, cells (LibreOffice) and JavaScript
(Chromium) give the integers that plain ints give, for every preset and for random valid shapes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from paramcalc import formats
from paramcalc.deploy import hardware
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sources import presets
from paramcalc.views.page import page
from paramcalc.views.page.figures import UNSHOWN
from tests import office
from tests.browser import Watch, chromium
from tests.conftest import preset
from tests.evaluators import FOLDS, PARTS, SOLVED, folded, on_arrays, on_symbols, random_models
from tests.views.book_cells import same, summary_rows
from tests.views.live_books import BATCH, KV, written

RANDOM = 110
"""Random shapes asked for; a shape that is drawn twice counts once."""
Answers = dict[str, dict[str, Any]]
"""Figures by model and name: whole numbers, and floats from cells. A figure that has no value
(attention never costs as much as the matmuls) is None."""

CHOSEN = """([names, batch, kv]) => names.map(name => {
  const put = (element, value, event) => {
    element.value = value;
    element.dispatchEvent(new Event(event, { bubbles: true }));
  };
  put(document.getElementById('model'), name, 'change');
  put(document.querySelector('[data-field=batch]'), batch, 'input');
  put(document.getElementById('kv'), kv, 'change');
  const found = {
    attention_equals_matmuls_at: document.getElementById('crossing').dataset.value,
    problem: document.getElementById('problem').textContent,
  };
  for (const e of document.querySelectorAll('output[data-figure]')) {
    found[e.dataset.figure] = e.dataset.value;
  }
  return found;
})"""
"""What the page shows of models, one after the other."""


@cache
def models() -> list[Model]:
    return [*map(preset, presets.names()), *random_models(RANDOM)]


def at(model: Model) -> At:
    return At(model.context, BATCH, formats.kv_format(KV).bits)


@cache
def exact() -> Answers:
    """Plain ints: what the others are held against."""
    found = {model.name: folded(model.spec, at(model)) for model in models()}
    for model in models():
        found[model.name][SOLVED] = CATALOGUE[SOLVED].of(model.ledger, at(model))
    return found


def by_arrays(_: pytest.FixtureRequest) -> Answers:
    return {model.name: on_arrays(model.spec, at(model)) for model in models()}


def by_symbols(_: pytest.FixtureRequest) -> Answers:
    return {model.name: on_symbols(model.spec, at(model)) for model in models()}


def by_cells(request: pytest.FixtureRequest) -> Answers:
    if office.PROGRAM is None:
        pytest.skip(office.ABSENT)
    folder: Path = request.getfixturevalue("tmp_path")
    drawn = random_models(RANDOM)
    gpu = [hardware.find("h100")]
    written(folder / "drawn.xlsx", drawn, gpu).save(folder / "bare.xlsx")
    with ThreadPoolExecutor(1) as pool:  # LibreOffice computes while the other book is written
        waited = pool.submit(office.recalculated, [folder / "bare.xlsx"], folder)
        books = request.getfixturevalue("books")
        (own,) = waited.result()
    return {**summed(books.models, books.plain), **summed(drawn, own)}


def summed(there: list[Model], cells: office.Cells) -> Answers:
    """Sheet Summary, under the catalogue's names."""
    rows = summary_rows(cells)
    rows |= {f"weight_bytes_{name}": rows[f"weights {name}"] for name in formats.FORMATS}
    rows |= {f"params_{role}": row for role, row in rows.items() if f"params_{role}" in PARTS}
    found: Answers = {}
    for column, model in enumerate(there, start=2):
        place = office.letters(column)
        own = {key: cells["Summary"].get(f"{place}{rows[key]}") for key in rows}
        found[model.name] = {
            key: own[key] for key in exact()[model.name] if own.get(key) is not None
        }
    return found


def by_javascript(request: pytest.FixtureRequest) -> Answers:
    file: Path = request.getfixturevalue("tmp_path") / "calc.html"
    with chromium() as browser:
        file.write_text(page(models()), encoding="utf-8")
        tab = browser.new_page()
        watch = Watch(tab)
        tab.goto(file.as_uri())
        names = [model.name for model in models()]
        shown = tab.evaluate(CHOSEN, [names, str(BATCH), KV])
        assert watch.messages == []
    found: Answers = {}
    for name, own in zip(names, shown, strict=True):
        assert own["problem"] == "", name
        texts = {key: own[key] for key in exact()[name] if key in own}
        found[name] = {k: None if text == "null" else int(text) for k, text in texts.items()}
    return found


EVALUATORS: dict[str, tuple[Callable[[pytest.FixtureRequest], Answers], set[str]]] = {
    "arrays": (by_arrays, {"params", "flops_per_token", "kv_bytes"}),
    "symbols": (by_symbols, {*FOLDS, *PARTS}),
    "cells": (by_cells, set(FOLDS)),
    "javascript": (by_javascript, {*FOLDS, *PARTS, SOLVED} - (UNSHOWN - {SOLVED})),
}
"""How each answers, and the figures that it gives for every model: arrays end at 2^63, sheet
Summary has the parts that some model has and a crossing where it is a formula of cells."""


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_every_evaluator_gives_what_ints_give(
    evaluator: str, request: pytest.FixtureRequest
) -> None:
    answers, least = EVALUATORS[evaluator]
    found = answers(request)
    assert found.keys() == exact().keys()
    wrong = []
    for name, figures in exact().items():
        assert least <= found[name].keys(), (name, least - found[name].keys())
        for key, value in found[name].items():
            equal = same if isinstance(value, float) else _equal
            if not equal(value, figures[key]):
                wrong.append((name, key, figures[key], value))
    assert not wrong, (len(wrong), wrong[:9])


def _equal(found: Any, own: Any) -> bool:
    return type(found) is type(own) and bool(found == own)


def test_there_are_models_enough() -> None:
    assert len(models()) == len(exact()) >= len(presets.names()) + 100
