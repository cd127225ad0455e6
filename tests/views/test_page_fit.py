"""The page's verdicts on every GPU in a browser: those of ``paramcalc fit`` on one GPU."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc import formats
from paramcalc.deploy import hardware
from paramcalc.deploy.engine import Engine, for_gpu
from paramcalc.deploy.fit import Deployment, Load
from paramcalc.deploy.fitting import Fit, serves
from paramcalc.deploy.parallel import Layout
from paramcalc.model import Model
from paramcalc.views.page import page, units
from tests.browser import Watch, chromium
from tests.conftest import preset
from tests.views.test_page import CHOOSE, READ, SET
from tests.views.test_page_figures import possible

NAMES = (
    *("llama3-8b", "gpt2-xl", "bert-base", "t5-small", "mixtral-8x7b", "gemma2-9b"),
    *("mimo-v2-flash", "llama4-scout", "deepseek-v3", "deepseek-v3.2", "kimi-k2"),
    *("gpt-oss-20b", "gpt-oss-120b", "attention-only-2l", "qwen3-0.6b"),
)
VERDICTS = """() => [...document.querySelectorAll('#fit li')].map(
  item => [item.dataset.unit, item.dataset.fits, item.dataset.gap])"""
PARTS = """() => Object.fromEntries([...document.querySelectorAll('#parts td[data-part]')].map(
  cell => [`${cell.dataset.part} ${cell.dataset.engine}`, cell.dataset.value]))"""
PICK = """([id, name]) => {
  const list = document.getElementById(id);
  list.value = name;
  list.dispatchEvent(new Event('change', { bubbles: true }));
  return list.value;
}"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tmp_path_factory.mktemp("fit") / "calc.html"
    path.write_text(page([preset(name) for name in NAMES]), encoding="utf-8")
    with chromium() as browser:
        found = browser.new_page()
        watch = Watch(found)
        found.goto(path.as_uri())
        yield found
        assert watch.messages == []


def expected(model: Model, load: Load, dtype: str, kv_dtype: str) -> list[list[str]]:
    """The verdict and the bytes to spare on one GPU of each kind, by the program."""

    @cache
    def deployment(engine: Engine) -> Deployment:
        return Deployment(model, Layout(), dtype, kv_dtype, engine)

    found = []
    for unit in hardware.all():
        fit = Fit(deployment(for_gpu(unit)), unit, load)
        verdict = "yes" if fit.fits else "no"
        if not serves(unit, fit.deployment.format):
            verdict = "none"
        found.append([unit.label, verdict, str(fit.gap)])
    return found


def parts(model: Model, load: Load, dtype: str, kv_dtype: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for place, engine in enumerate((Engine(), for_gpu(hardware.find("l4")))):
        one = Deployment(model, Layout(), dtype, kv_dtype, engine)
        stage = one.stages[0]
        numbers = {
            "weights": stage.weights,
            "cache": one.cache_paged(stage, load),
            "workspace": stage.workspace,
            "reserve": stage.reserve,
            "need": one.need(load),
        }
        found |= {f"{key} {place}": str(value) for key, value in numbers.items()}
    return found


def test_labels_tell_units_apart() -> None:
    labels = [unit.label for unit in hardware.all()]
    assert len(set(labels)) == len(labels)
    assert {for_gpu(unit) for unit in hardware.all()} == {Engine(), for_gpu(hardware.find("l4"))}


@pytest.mark.parametrize("name", NAMES)
def test_a_model_as_it_opens(tab: Any, name: str) -> None:
    tab.evaluate(CHOOSE, name)
    model = preset(name)
    asked = Load(model.context), model.released_format, "bf16"
    assert tab.input_value("#dtype") == model.released_format
    assert tab.evaluate(VERDICTS) == expected(model, *asked)
    assert tab.evaluate(PARTS) == parts(model, *asked)
    shown = tab.evaluate(READ)
    for own in ("fp8-block", "mxfp4"):
        row = f"weight_bytes_{own}"
        assert (shown[row] != "null") == tab.locator(f"#row-{row}").is_visible()
        assert shown[row] in ("null", str(model.memory.weight_bytes(own)))


@pytest.mark.parametrize("name", NAMES)
def test_batches_contexts_formats_and_shapes(tab: Any, name: str) -> None:
    dice = random.Random(f"fit {name}")
    for step in range(4):
        fields, model = possible(name, dice) if step else ({}, preset(name))
        batch, context = dice.choice((1, 3, 64, 900)), dice.randint(1, 200_000)
        dtype = dice.choice([*formats.FORMATS, units.released(preset(name))])
        kv_dtype = dice.choice(list(formats.KV_FORMATS))
        tab.evaluate(CHOOSE, name)
        assert tab.evaluate(PICK, ["dtype", dtype]) == dtype
        tab.evaluate(PICK, ["kv", kv_dtype])
        flags = [(k, v) for k, v in fields.items() if isinstance(v, bool)]
        boxes = [(k, str(v)) for k, v in fields.items() if not isinstance(v, bool)]
        load = Load(fields.get("context", context), batch)
        model = model.with_(context=load.context)  # learned positions follow the page's context
        tab.evaluate(SET, [[("context", str(context)), *boxes, ("batch", str(batch))], flags])
        assert tab.evaluate(VERDICTS) == expected(model, load, dtype, kv_dtype), (fields, load)
        assert tab.evaluate(PARTS) == parts(model, load, dtype, kv_dtype)


def test_formats_that_a_model_is_released_in() -> None:
    card = {"d": 64, "L": 2, "H": 4, "V": 100, "context": 32}
    for name, opens in (("gptq-g32", "gptq-g32"), ("Q4_K_M", "bf16")):
        model = paramcalc.load(card | {"about": {"source": "a test", "weights": name}})
        text = page([model])
        assert f'"dtype":"{opens}"' in text
        assert ("released as Q4_K_M, which is no formula" in text) == (name == "Q4_K_M")


def test_words(tab: Any) -> None:
    tab.evaluate(CHOOSE, "llama3-8b")
    unit = hardware.find("t4")
    item = tab.locator(f"li[data-unit='{unit.label}']")
    assert item.inner_text().split("\n")[-1] == "no bf16 arithmetic"
    tab.evaluate(PICK, ["dtype", "int8"])
    assert item.inner_text().split("\n")[-1].endswith("of its budget")
    tab.evaluate(SET, [[("batch", "16")], []])
    assert item.inner_text().split("\n")[-1].startswith("short by ")
