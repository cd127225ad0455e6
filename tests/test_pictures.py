"""The pictures of the README, drawn from the program: ``--snapshot-update`` keeps the new ones.

LibreOffice computes and prints the workbook, Chromium shows the page. Fonts differ from machine to
machine, so a picture is held to its size and to not being empty, not to its pixels.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageChops

from paramcalc.cli.main import main
from paramcalc.sources import presets
from paramcalc.views.page import page
from tests import office
from tests.browser import chromium
from tests.conftest import ROOT, preset

PICTURES = ROOT / "docs" / "pictures"
PIXELS = 130
"""An inch of a printed sheet."""
MARGIN = 12
SHEET = (
    "paramcalc sheet llama3-8b gpt-oss-20b gemma3-27b -o plan.xlsx"
    " --gpu h100 --gpus 2 --tp 2 --batch 16 --price 2.49"
)
"""The command that the captions print; the pictures are of what it writes."""
TITLES = {"workbook-deployment.png": "Deployment", "workbook-summary.png": "Summary"}
"""Pictures of the first page of a sheet; of Summary without the list of every kind of GPU."""
LIST = "Free"
"""The word that its heading begins with."""
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
    path = tmp_path / "plan.xlsx"
    assert main([str(path) if word == path.name else word for word in SHEET.split()[1:]]) == 0
    office.Package(path).save(tmp_path / "bare.xlsx")
    (printed,) = office.convert([tmp_path / "bare.xlsx"], tmp_path, "pdf")
    for name, title in TITLES.items():
        number, below = found(printed, title)
        command = ["pdftoppm", "-r", str(PIXELS), "-png", "-singlefile", "-f", str(number)]
        command += ["-l", str(number), str(printed), str(tmp_path / "page")]
        subprocess.run(command, check=True)
        cut(tmp_path / "page.png", below).save(tmp_path / name, optimize=True)
        held(tmp_path / name)


def found(printed: Path, title: str) -> tuple[int, float]:
    """The first page that begins with a title, and the share of its height above the list of GPUs,
    or above what stands at its foot."""
    text = subprocess.run(
        ["pdftotext", "-bbox", str(printed), "-"], check=True, capture_output=True, text=True
    ).stdout
    for number, own in enumerate(text.split("<page ")[1:], start=1):
        words = re.findall(r'yMin="([\d.]+)"[^>]*>([^<]*)</word>', own)
        if words and words[0][1] == title:
            height = float(re.findall(r'height="([\d.]+)"', own)[0])
            ends = [float(y) for y, word in words if word in (LIST, "page")]
            return number, min(ends) / height
    raise AssertionError(title)


def test_the_captions_print_the_command() -> None:
    for path in (ROOT / "README.md", ROOT / "docs" / "spreadsheet.md"):
        assert SHEET in " ".join(path.read_text(encoding="utf-8").split()), path


def test_the_page(tmp_path: Path, held: Held) -> None:
    file = tmp_path / "calc.html"
    file.write_text(page([preset(name) for name in presets.names()]), encoding="utf-8")
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1200, "height": 1130})
        tab.goto(f"{file.as_uri()}#{STATE}")
        tab.screenshot(path=str(tmp_path / "page.png"))
    held(tmp_path / "page.png")


def cut(path: Path, below: float) -> Image.Image:
    """A printed page above a share of its height, without its empty margins."""
    image = Image.open(path).convert("RGB")
    image = image.crop((0, 0, image.width, int(below * image.height)))
    box = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    assert box is not None
    left, top, right, bottom = box
    end = min(bottom + MARGIN, image.height)
    return image.crop((left - MARGIN, top - MARGIN, right + MARGIN, end)).quantize(64)
