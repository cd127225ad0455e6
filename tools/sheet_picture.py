"""Draw the README's pictures of the workbook: ``python tools/sheet_picture.py``.

LibreOffice computes and prints it, so the numbers are its own. Needs soffice and pdftoppm (Debian:
libreoffice-calc, poppler-utils), and Pillow to cut the margins off.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, ImageChops

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import paramcalc  # noqa: E402
from paramcalc.deploy import hardware  # noqa: E402
from paramcalc.views import workbook  # noqa: E402
from tests import office  # noqa: E402

MODELS = ("llama3-8b", "gpt-oss-20b", "gemma3-27b")
GPUS = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb", "b200-180gb", "mi300x-192gb", "l40s")
PAGES = {"workbook-deployment.png": 2, "workbook-summary.png": 4}
PIXELS = 130
"""An inch."""
MARGIN = 12


def main() -> int:
    units = [hardware.find(name) for name in GPUS]
    wish = workbook.wish(units[1], batch=16, gpus=2, tp=2, price=2_490_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workbook.write(folder / "plan.xlsx", [paramcalc.load(n) for n in MODELS], units, wish)
        office.Package(folder / "plan.xlsx").save(folder / "bare.xlsx")
        (printed,) = office.convert([folder / "bare.xlsx"], folder, "pdf")
        for picture, page in PAGES.items():
            png = folder / "page"
            command = ["pdftoppm", "-r", str(PIXELS), "-png", "-singlefile"]
            command += ["-f", str(page), "-l", str(page), str(printed), str(png)]
            subprocess.run(command, check=True)
            cut(png.with_suffix(".png")).save(ROOT / "docs" / "pictures" / picture, optimize=True)
    return 0


def cut(path: Path) -> Image.Image:
    """A page without its empty margins."""
    image = Image.open(path).convert("RGB")
    box = ImageChops.difference(image, Image.new("RGB", image.size, "white")).getbbox()
    assert box is not None
    left, top, right, bottom = box
    whole = (left - MARGIN, top - MARGIN, right + MARGIN, bottom + MARGIN)
    return image.crop(whole).quantize(64)


if __name__ == "__main__":
    sys.exit(main())
