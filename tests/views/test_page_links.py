"""The page's address, its way to the results, its print, its words and ticks, and shapes whose
crossing is never."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paramcalc.views.page import page
from tests.browser import Watch, chromium
from tests.conftest import preset
from tests.views.test_page import CHOOSE, SET, exact, shown, until

NAMES = ("llama3-8b", "gpt2", "gemma3-27b", "gemma2-9b", "gpt-oss-20b", "llama4-scout")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "calc.html"
    path.write_text(page([preset(name) for name in NAMES]), encoding="utf-8")
    return path


@pytest.fixture
def tab(browser: Any, file: Path) -> Iterator[Any]:
    found = browser.new_page()
    watch = Watch(found)
    found.goto(file.as_uri())
    yield found
    assert watch.messages == []
    found.close()


LINKS = {
    "model=no-such&d_model=2048&gpt2=1&kv_dtype=fp8": (
        ["model = no-such: is not on this page; llama3-8b is shown as it is"],
        "",
    ),
    "model=gpt2&gated_ffn=2&tie_embeddings=false": (
        [
            "gated_ffn = 2: must be 0 or 1; 0 is taken",
            "tie_embeddings = false: must be 0 or 1; 1 is taken",
        ],
        "",
    ),
    "model=gpt2&dtype=fp17&kv_dtype=constructor": (
        [
            "dtype = fp17: is no format of gpt2 here; bf16 is taken",
            "kv_dtype = constructor: is no format of gpt2 here; bf16 is taken",
        ],
        "",
    ),
    "model=gpt2&dtype=mxfp4": (["dtype = mxfp4: is no format of gpt2 here; bf16 is taken"], ""),
    "model=gpt2&window=9&__proto__=1": (
        [
            "window: is nothing to change in gpt2 here; left out",
            "__proto__: is nothing to change in gpt2 here; left out",
        ],
        "",
    ),
    "model=gpt2&d_model=%3Cb%3E&d_model=64": (
        ["d_model: is given twice; the first is taken"],
        "d_model = <b>: must be a whole number; write it as 4096 or 8k",
    ),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_link_that_says_what_is_not_there(tab: Any, file: Path, link: str) -> None:
    lines, problem = LINKS[link]
    tab.goto("about:blank")
    tab.goto(f"{file.as_uri()}#{link}")
    after = shown(tab)
    assert tab.inner_text("#unread").split("\n") == lines
    assert tab.get_attribute("#unread", "role") == "alert"
    assert after.pop("problem") == problem
    name = "llama3-8b" if "no-such" in link else "gpt2"
    assert after.items() <= exact(preset(name)).items()
    assert [tab.input_value("#kv"), tab.input_value("#dtype")] == [
        "bf16",
        preset(name).released_format,
    ]
    tab.evaluate(SET, [[("n_layers", "2"), ("d_model", "768")], []])
    assert not tab.is_visible("#unread")


def test_the_way_to_the_results_changes_nothing_else(tab: Any) -> None:
    tab.evaluate(CHOOSE, "gpt2")
    tab.evaluate(SET, [[("n_layers", "7")], []])
    now = shown(tab)
    until(tab, "location.hash.includes('n_layers')")
    address_ = tab.evaluate("location.href")
    tab.evaluate("document.querySelector('.skip').focus()")
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "results"
    tab.evaluate("location.hash = 'results'")  # by the address, as a link from elsewhere may
    tab.wait_for_timeout(400)
    assert shown(tab) == now == exact(preset("gpt2").with_(n_layers=7))
    assert address_.endswith("#model=gpt2&n_layers=7")


@pytest.mark.parametrize(
    ("name", "layers"),
    [
        ("gemma3-27b", 1),
        ("gemma3-27b", 5),
        ("gemma2-9b", 1),
        ("gpt-oss-20b", 1),
        ("llama4-scout", 2),
    ],
)
def test_few_layers_that_all_have_windows(tab: Any, name: str, layers: int) -> None:
    tab.evaluate(CHOOSE, name)
    tab.evaluate(SET, [[("n_layers", str(layers))], []])
    assert shown(tab) == exact(preset(name).with_(n_layers=layers))
    assert shown(tab)["crossing"] == "null"
    assert tab.inner_text("#crossing") == "Attention never costs as much as the matmuls."


def test_a_print_says_what_was_counted_in_light_colours(browser: Any, file: Path) -> None:
    context = browser.new_context(color_scheme="dark", viewport={"width": 1280, "height": 900})
    found = context.new_page()
    found.goto(f"{file.as_uri()}#model=gpt2&n_layers=7&gated_ffn=1&kv_dtype=fp8")
    found.evaluate("document.documentElement.dataset.theme = 'dark'")
    assert not found.is_visible("#counted")
    found.emulate_media(media="print", color_scheme="dark")
    said = found.inner_text("#counted")
    for words in ("gpt2 · d_model 768", "layers 7", "heads 12", "KV heads 12", "d_ff 2,048"):
        assert words in said
    for words in ("context 1,024", "batch 1", "Gated FFN", "weights bf16", "KV cache fp8"):
        assert words in said
    assert "experts" not in said
    paper, ink = (
        found.evaluate(f"getComputedStyle(document.body).{what}")
        for what in ("backgroundColor", "color")
    )
    assert sum(map(int, re.findall(r"\d+", paper)[:3])) > 700
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 150
    assert not found.is_visible("#controls")
    wide = found.evaluate("document.getElementById('results').getBoundingClientRect().width")
    assert wide > 1000
    context.close()


TICKS = """() => [...document.querySelectorAll('#curve .tick')].map(text => {
  const { left, right } = text.getBoundingClientRect();
  return [text.textContent, left, right];
})"""


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("context", [1, 8_192, 131_072, 4_194_304, 10**9])
def test_ticks_are_round_and_apart(browser: Any, file: Path, width: int, context: int) -> None:
    found = browser.new_page(viewport={"width": width, "height": 900})
    found.goto(f"{file.as_uri()}#model=llama3-8b&context={context}")
    ticks = found.evaluate(TICKS)
    sizes = [int(text.replace(",", "")) for text, _, _ in ticks]
    assert 3 <= len(sizes) <= 6
    step = sizes[1]
    assert sizes == [step * place for place in range(len(sizes))]
    assert str(step).strip("0") in ("1", "2", "5")
    box = found.locator("#curve").bounding_box()
    ends = [box["x"] - 1, *(edge for _, *edges in ticks for edge in edges), box["x"] + box["width"]]
    assert ends == sorted(ends), ticks
    assert "context, tokens" in found.locator("#curve").text_content()
    found.close()


def test_two_sums_of_attention_have_two_names(tab: Any) -> None:
    words = " ".join(tab.inner_text("#flops").split())
    assert "one token: attention scores and values 4,294,967,296" in words
    words = " ".join(tab.inner_text("#flops-parts").split())
    assert "attention with its projections 6,979,321,856" in words
    assert tab.locator("#parts thead th").all_inner_texts() == [
        "GPUs from 70 GiB",
        "smaller GPUs and A100",
    ]
    footer = tab.inner_text("footer")
    assert "exact integers" in footer
    assert "rounded" in footer
    assert "Every figure" not in footer
