"""The page in a browser: its integers are the program's, and nothing else happens."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc import formats
from paramcalc.errors import InputError
from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sources import presets
from paramcalc.views.page import page as made
from paramcalc.views.page.fields import values
from paramcalc.views.page.serving import address, serving
from tests.browser import Watch, chromium
from tests.conftest import preset
from tests.views.test_page_figures import possible, structure_of

NAMES = presets.names()
MOST_BYTES = 300_000

READ = """() => {
  const found = {};
  for (const e of document.querySelectorAll('output[data-figure]')) {
    found[e.dataset.figure] = e.dataset.value;
  }
  found.crossing = document.getElementById('crossing').dataset.value;
  found.problem = document.getElementById('problem').textContent;
  return found;
}"""
SET = """([boxes, switches]) => {
  for (const [name, text] of boxes) {
    const box = document.querySelector(`[data-field="${name}"]`);
    box.value = text;
    box.dispatchEvent(new Event('input', { bubbles: true }));
  }
  for (const [name, on] of switches) {
    const box = document.querySelector(`[data-switch="${name}"]`);
    if (box.checked !== on) box.click();
  }
}"""
BOXES = """() => [...document.querySelectorAll('[data-field]')].map(
  box => [box.dataset.field, box.value])"""
WIDER = """() => [...document.querySelectorAll('section')].filter(
  part => part.scrollWidth > part.clientWidth).map(part => part.innerText)"""
NAMELESS = """() => [...document.querySelectorAll('input, select, button')].filter(
  e => !e.labels?.length && !e.getAttribute('aria-label') && !e.textContent.trim()
).map(e => e.outerHTML)"""
CHOOSE = """name => {
  const list = document.getElementById('model');
  list.value = name;
  list.dispatchEvent(new Event('change', { bubbles: true }));
}"""


@pytest.fixture(scope="module")
def text() -> str:
    return made([preset(name) for name in NAMES])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(text: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "calc.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def tab(browser: Any, file: Path) -> Iterator[Any]:
    """The page, freshly opened. At its end nothing was said and nothing else asked for."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    found = context.new_page()
    watch = Watch(found)
    found.goto(file.as_uri())
    yield found
    assert watch.messages == []
    assert {url.partition("#")[0] for url in watch.requests} == {file.as_uri()}
    context.close()


def exact(model: Model, batch: int = 1, kv: str = "bf16") -> dict[str, str]:
    """What the page must show, as text."""
    ledger, at = model.ledger, At(model.context, batch, formats.kv_format(kv).bits)
    keys = [key for key in CATALOGUE if not key.startswith(("buffers", "router", "causal"))]
    found: dict[str, Any] = {key: CATALOGUE[key].of(ledger, at) for key in keys}
    del found["kv_bytes_next_token"]
    crossing = found.pop("attention_equals_matmuls_at")
    found["crossing"] = "null" if crossing is None else crossing
    found |= {f"params_{role}": model.params.by_component.get(role, 0) for role in ROLES}
    return {key: str(value) for key, value in found.items()} | {"problem": ""}


def shown(tab: Any) -> dict[str, str]:
    """What the page shows of the catalogue; ``test_page_fit`` asks for other formats."""
    found: dict[str, str] = tab.evaluate(READ)
    return {
        key: value
        for key, value in found.items()
        if (not key.startswith("flops_") or key == "flops_per_token")
        and (not key.startswith("weight_bytes_") or key in CATALOGUE)
    }


def until(tab: Any, holds: str) -> None:
    """Wait for a condition; the page's policy forbids the driver's own way, which is an eval."""
    for _ in range(100):
        if tab.evaluate(holds):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(holds)


def test_its_size(text: str) -> None:
    assert len(text.encode()) < MOST_BYTES


def test_every_preset(tab: Any) -> None:
    for name in NAMES:
        tab.evaluate(CHOOSE, name)
        assert shown(tab) == exact(preset(name)), name


def test_boxes_and_switches_move_it_to_what_the_program_gives(tab: Any) -> None:
    dice = random.Random(7)
    for name in dice.sample(NAMES, 60):
        fields, model = possible(name, dice)
        batch = dice.randint(1, 9)
        tab.evaluate(CHOOSE, name)
        flags = [(k, v) for k, v in fields.items() if isinstance(v, bool)]
        boxes = [(k, str(v)) for k, v in fields.items() if not isinstance(v, bool)]
        tab.evaluate(SET, [[*boxes, ("batch", str(batch))], flags])
        assert shown(tab) == exact(model, batch), (name, fields)


def test_sliders_move_it_to_what_the_program_gives(tab: Any) -> None:
    dice = random.Random(8)
    for name in ("llama3-8b", "mixtral-8x7b", "gemma2-9b", "t5-small", "deepseek-v3"):
        for _ in range(4):
            tab.evaluate(CHOOSE, name)
            own = [f.name for f in structure_of(name).fields if f.name != "batch"]
            before = dict(zip(own, values(preset(name), own), strict=True))
            for field in dice.sample([n for n in own if n != "top_k"], 4):
                tab.evaluate(
                    """([name, where]) => {
                      const slider = document.querySelector(`[data-slider="${name}"]`);
                      slider.value = Math.round(slider.max * where);
                      slider.dispatchEvent(new Event('input', { bubbles: true }));
                    }""",
                    [field, dice.random()],
                )
            boxes = tab.evaluate(BOXES)
            now = {n: int(v) for n, v in boxes if v and n != "batch"}
            changed = {n: v for n, v in now.items() if v != before[n]}
            assert changed
            assert shown(tab) == exact(preset(name).with_(**changed)), (name, changed)


def test_a_box_that_is_left_out_gets_its_default(tab: Any) -> None:
    tab.evaluate(
        SET, [[("d_ff", ""), ("n_kv_heads", ""), ("d_model", "6k"), ("n_heads", "48")], []]
    )
    model = preset("llama3-8b").with_(d_ff=None, n_kv_heads=None, d_model=6000, n_heads=48)
    assert shown(tab) == exact(model)
    assert tab.locator("[data-field=d_ff]").get_attribute("placeholder") == "16128 (default)"


def test_formats(tab: Any) -> None:
    tab.select_option("#kv", "int4")
    tab.select_option("#dtype", "int4")
    assert shown(tab) == exact(preset("llama3-8b"), kv="int4")
    assert " ".join(tab.inner_text("#part-weights").split()) == "weights int4 5.70 GB 5.70 GB"
    assert tab.locator("#fit .no").count() == 0
    tab.evaluate(SET, [[("batch", "100000")], []])
    assert tab.locator("#fit .yes").count() == 0


@pytest.mark.parametrize(
    ("name", "typed", "says"),
    [
        ("n_kv_heads", "7", "n_kv_heads = 7: n_kv_heads must divide n_heads; take 4 or 8"),
        ("n_heads", "40", "n_heads = 40: n_heads must divide d_model; take 32 or 64"),
        ("d_model", "wide", "d_model = wide: must be a whole number; write it as 4096 or 8k"),
        ("d_model", "-8", "d_model = -8: must be a whole number; write it as 4096 or 8k"),
        ("d_model", "1.5", "d_model = 1.5: must be a whole number; write it as 4096 or 8k"),
        ("d_model", "", "d_model = nothing: must be a whole number; write it as 4096 or 8k"),
        ("d_model", "0", "d_model = 0: must be at least 1; raise it"),
        ("n_layers", "1m", "n_layers = 1,000,000: must be at most 100,000; lower it"),
    ],
)
def test_what_cannot_be(tab: Any, name: str, typed: str, says: str) -> None:
    before = shown(tab)
    tab.evaluate(SET, [[(name, typed)], []])
    after = shown(tab)
    assert after.pop("problem") == says
    del before["problem"]
    assert after == before
    assert "stale" in tab.get_attribute("#results", "class")
    assert tab.is_visible("#problem")
    assert tab.is_visible("#stale")
    with pytest.raises(InputError):
        preset("llama3-8b").with_(
            **{name: typed if typed in ("", "wide") else int(float(typed.replace("m", "e6")))}
        )
    tab.click("#reset")
    assert shown(tab) == exact(preset("llama3-8b"))
    assert not tab.is_visible("#problem")


def test_more_experts_at_work_than_there_are(tab: Any) -> None:
    tab.evaluate(SET, [[("n_experts", "8")], []])
    assert shown(tab) == exact(preset("llama3-8b").with_(n_experts=8, top_k=2))
    tab.evaluate(SET, [[("top_k", "9")], []])
    assert shown(tab)["problem"] == "top_k = 9: top_k cannot exceed n_experts; take 8"


def test_a_link_carries_the_state(tab: Any, file: Path) -> None:
    tab.evaluate(CHOOSE, "gemma2-9b")
    changes = [("n_layers", "30"), ("window", "2k"), ("d_ff", "")]
    tab.evaluate(SET, [changes, [("gpt2", True)]])
    tab.select_option("#kv", "fp8")
    now = shown(tab)
    until(tab, "location.hash.includes('kv_dtype')")
    link = tab.evaluate("location.href")
    tab.goto("about:blank")
    tab.goto(link)
    model = preset("gemma2-9b").with_(n_layers=30, window=2048, d_ff=None, gpt2=True)
    assert shown(tab) == now == exact(model, kv="fp8")
    assert tab.input_value("[data-field=window]") == "2048"


def test_search(tab: Any) -> None:
    tab.fill("#search", "qwen moe")
    found = tab.locator("#model option").all_inner_texts()
    assert found
    assert all("qwen" in name for name in found)
    assert tab.inner_text("#matches") == f"{len(found)} of {len(NAMES)} models"
    tab.select_option("#model", found[0])
    assert shown(tab) == exact(preset(found[0]))


@pytest.mark.parametrize("width", [360, 800, 1280])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_fits_a_screen(browser: Any, file: Path, width: int, theme: str) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=theme)
    found = context.new_page()
    found.goto(f"{file.as_uri()}#model=kimi-k2&context=1m&batch=512")
    assert found.evaluate("document.documentElement.scrollWidth") == width
    assert found.evaluate(WIDER) == []
    paper = found.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, re.findall(r"\d+", paper)[:3])) > 380
    assert light == (theme == "light")
    found.click("#theme")
    assert found.evaluate("getComputedStyle(document.body).backgroundColor") != paper
    context.close()


def test_keyboard_and_screen_reader(tab: Any) -> None:
    assert tab.evaluate(NAMELESS) == []
    assert tab.get_attribute("#problem", "role") == "alert"
    assert tab.get_attribute("#spoken", "aria-live") == "polite"
    tab.focus("[data-slider=n_layers]")
    tab.keyboard.press("ArrowRight")
    assert tab.input_value("[data-field=n_layers]") == "34"
    assert shown(tab) == exact(preset("llama3-8b").with_(n_layers=34))
    assert tab.get_attribute("[data-slider=n_layers]", "aria-valuetext") == "34"
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    tab.focus("[data-switch=tie_embeddings]")
    tab.keyboard.press("Space")
    assert shown(tab) == exact(preset("llama3-8b").with_(n_layers=34, tie_embeddings=True))
    until(tab, "document.getElementById('spoken').textContent.includes('parameters')")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.switch") == "gpt2"


def test_names_are_text(browser: Any, tmp_path: Path) -> None:
    evil = "</script><img src=x onerror=alert(1)>&{{@title@}}"
    model = paramcalc.load({"name": evil, "d": 64, "L": 2, "H": 4, "V": 100, "context": 32})
    path = tmp_path / "evil.html"
    path.write_text(made([model]), encoding="utf-8")
    found = browser.new_page()
    watch = Watch(found)
    found.goto(path.as_uri())
    assert found.locator("#model option").all_inner_texts() == [evil]
    assert evil in found.inner_text("#now")
    assert found.title() == f"{evil}, counted"
    assert found.locator("img").count() == 0
    assert shown(found) == exact(model)
    assert watch.messages == []
    assert len(watch.requests) == 1
    found.close()


def test_the_policy_lets_nothing_else_run(text: str, browser: Any, tmp_path: Path) -> None:
    policy = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert len(policy) == 1
    assert policy[0].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[0]
    assert not re.search(r"\beval\b|new Function|innerHTML|\bstyle=|\bon\w+=\"", text)
    path = tmp_path / "other.html"
    path.write_text(
        text.replace("</body>", "<script>document.title = 'ran'</script></body>"), encoding="utf-8"
    )
    found = browser.new_page()
    found.goto(path.as_uri())
    assert found.title() != "ran"
    found.close()


def test_served_on_loopback(text: str, browser: Any) -> None:
    import threading

    with serving(text) as server:
        assert server.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        found = browser.new_page()
        watch = Watch(found)
        found.goto(address(server))
        assert shown(found) == exact(preset("llama3-8b"))
        assert watch.messages == []
        assert watch.requests == [address(server)]
        found.close()
        server.shutdown()
        thread.join()
