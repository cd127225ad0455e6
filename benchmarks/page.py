"""The page's size, what writing it costs, and how soon a slider's answer stands.

A slider's answer is timed in Chromium from its event until the page is laid out, on the first
preset of each structure; the median and the slowest of 80 moves. Needs chromium and playwright.
Run: ``python benchmarks/page.py``.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import paramcalc
from paramcalc.views.page import page
from paramcalc.views.page.figures import signature

MOVE = """name => {
  const list = document.getElementById('model');
  list.value = name;
  list.dispatchEvent(new Event('change', { bubbles: true }));
  const slider = document.querySelector('[data-slider=d_model]');
  const own = Number(slider.value), found = [];
  for (let i = -40; i < 40; i++) {
    slider.value = own + i;
    const began = performance.now();
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.getBoundingClientRect();
    found.push(performance.now() - began);
  }
  return found;
}"""


def main() -> int:
    path = shutil.which("chromium")
    if path is None:
        sys.stderr.write("needs chromium\n")
        return 2
    from playwright.sync_api import sync_playwright

    models = [paramcalc.load(name) for name in paramcalc.preset_names()]
    began = time.process_time()
    text = page(models)
    spent = time.process_time() - began
    print(
        f"{len(models)} presets  {len(text.encode()) / 1000:.0f} kB (must < 300)  {spent:.1f} s CPU"
    )
    began = time.process_time()
    page(models[:1])
    print(f"1 preset  {time.process_time() - began:.2f} s CPU")
    structures: dict[str, str] = {}
    for model in models:
        structures.setdefault(signature(model), model.name)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        file = Path(folder) / "calc.html"
        file.write_text(text, encoding="utf-8")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page()
        tab.goto(file.as_uri())
        found: dict[str, Any] = {name: tab.evaluate(MOVE, name) for name in structures.values()}
        browser.close()
    middle = {name: statistics.median(times) for name, times in found.items()}
    slow = max(middle, key=lambda name: middle[name])
    moves = sorted(time for times in found.values() for time in times)
    print(f"a slider's answer, {len(found)} structures  median {statistics.median(moves):.1f} ms")
    print(f"  slowest structure, {slow}  {middle[slow]:.1f} ms (must < 16)")
    print(f"  slowest move  {moves[-1]:.1f} ms")
    within = sum(time < 16 for time in moves) / len(moves)
    print(f"  within a frame of 16 ms: {within:.1%} of {len(moves):,} moves")
    return 0


if __name__ == "__main__":
    sys.exit(main())
