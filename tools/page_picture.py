"""Draw the README's picture of the page: ``python tools/page_picture.py``.

Needs Chromium and playwright.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import paramcalc
from paramcalc.views.page import page

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "page.png"
STATE = "model=llama3-8b&n_experts=8&top_k=2&context=32768&batch=4&dtype=int4"


def main() -> int:
    path = shutil.which("chromium")
    if path is None:
        sys.stderr.write("needs chromium\n")
        return 2
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        file = Path(folder) / "calc.html"
        file.write_text(page([paramcalc.load(n) for n in paramcalc.preset_names()]), "utf-8")
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 1200, "height": 1130})
        tab.goto(f"{file.as_uri()}#{STATE}")
        tab.screenshot(path=str(PICTURE))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
