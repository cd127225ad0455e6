"""The pictures of the README, drawn from the program: ``--snapshot-update`` keeps the new ones.

LibreOffice computes and prints the workbook, Chromium shows the page. Fonts differ from machine to
machine, so a picture is held to its size and to not being empty, not to its pixels.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from paramcalc.deploy import hardware
from paramcalc.sources import presets
from paramcalc.views import workbook
from paramcalc.views.page import page
from tests import office
from tests.browser import chromium
from tests.conftest import ROOT, preset

PICTURES = ROOT / "docs" / "pictures"
PIXELS = 130
"""An inch of a printed sheet."""
MARGIN = 12
MODELS = ("llama3-8b", "gpt-oss-20b", "gemma3-27b")
GPUS = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "b200-180gb", "mi300x-192gb", "l40s")
PAGES = {"workbook-deployment.png": 2, "workbook-summary.png": 4}
STATE = "model=llama3-8b&n_experts=8&top_k=2&context=32768&batch=4&dtype=int4"
Held = Callable[[Path], None]


@pytest.fixture
def held(request: pytest.FixtureRequest) -> Held:
    """Holds a new picture against the one in docs/, or puts it there."""

    def hold(drawn: Path) -> None:
        kept = PICTURES / drawn.name
        if request.config.getoption("update_snapshots"):
            shutil.copy(drawn, kept)
        with Image.open(drawn) as new, Image.open(kept) as old:
            for a, b in zip(new.size, old.size, strict=True):
                assert 0.8 < a / b < 1.25, (new.size, old.size)
            assert len(new.convert("RGB").getcolors(1 << 24) or []) > 16

    return hold


@office.needs_office
@pytest.mark.skipif(
    shutil.which("pdftoppm") is None, reason="needs pdftoppm (Debian's package poppler-utils)"
)
def test_the_workbook(tmp_path: Path, held: Held) -> None:
    units = [hardware.find(name) for name in GPUS]
    wish = workbook.wish(units[1], batch=16, gpus=2, tp=2, price=2_490_000)
    workbook.write(tmp_path / "plan.xlsx", [preset(name) for name in MODELS], units, wish)
    office.Package(tmp_path / "plan.xlsx").save(tmp_path / "bare.xlsx")
    (printed,) = office.convert([tmp_path / "bare.xlsx"], tmp_path, "pdf")
    for name, number in PAGES.items():
        command = ["pdftoppm", "-r", str(PIXELS), "-png", "-singlefile", "-f", str(number)]
        command += ["-l", str(number), str(printed), str(tmp_path / "page")]
        subprocess.run(command, check=True)
        cut(tmp_path / "page.png").save(tmp_path / name, optimize=True)
        held(tmp_path / name)


def test_the_page(tmp_path: Path, held: Held) -> None:
    file = tmp_path / "calc.html"
    file.write_text(page([preset(name) for name in presets.names()]), encoding="utf-8")
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1200, "height": 1130})
        tab.goto(f"{file.as_uri()}#{STATE}")
        tab.screenshot(path=str(tmp_path / "page.png"))
    held(tmp_path / "page.png")


def cut(path: Path) -> Image.Image:
    """A printed page without its empty margins."""
    image = Image.open(path).convert("RGB")
    box = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    assert box is not None
    left, top, right, bottom = box
    return image.crop((left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN)).quantize(64)
