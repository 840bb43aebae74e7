"""The pictures of reports in the documentation, taken in chromium.

    python -m accel_oct_bench.studies.report_pictures --data-dir FOLDER --output docs/images

Wine comes with scikit-learn. Segmentation, with seven classes, is read from FOLDER/raw, and left out without a folder.
Needs playwright, matplotlib (for Pillow) and a chromium on the path.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from accel_oct import OptimalTreeClassifier
from accel_oct_bench.studies.common import parser_of

#: Beyond this many bytes a picture is too heavy for a page.
HEAVIEST = 200_000

COLUMNS = [
    "region centroid column",
    "region centroid row",
    "region pixel count",
    "short line density 5",
    "short line density 2",
    "mean of vertical edges",
    "deviation of vertical edges",
    "mean of horizontal edges",
    "deviation of horizontal edges",
    "mean intensity",
    "mean of raw red",
    "mean of raw blue",
    "mean of raw green",
    "mean of excess red",
    "mean of excess blue",
    "mean of excess green",
    "mean value (HSV)",
    "mean saturation (HSV)",
    "mean hue (HSV)",
]
CLASSES = {
    "BRICKFACE": "brick face of a building",
    "CEMENT": "cement pavement",
    "FOLIAGE": "foliage of trees and shrubs",
    "GRASS": "grass, mown or not",
    "PATH": "path through a garden",
    "SKY": "sky, clear or with clouds",
    "WINDOW": "window with its frame",
}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        reports = {"report": wine(Path(folder) / "wine.html")}
        if options.data_dir:
            reports["report-segmentation"] = segmentation(options.data_dir / "raw", Path(folder) / "segmentation.html")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, report in reports.items():
            height = 1000 if name == "report" else 1250
            save(options.output / f"{name}-wide.png", picture(browser, report, 1400, height))
            save(options.output / f"{name}-phone.png", picture(browser, report, 390, 844))
        browser.close()


def wine(path: Path) -> Path:
    """Three cultivars, proven over all splits."""
    data = load_wine(as_frame=True)
    X = data.data.rename(columns=lambda name: name.replace("_", " "))
    y = np.array(["Barolo", "Grignolino", "Barbera"])[data.target]
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    model = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.005).fit(X, y)
    return model.report(path, X, y, test=(X_test, y_test), title="Which cultivar is this wine of?")


def segmentation(raw: Path, path: Path) -> Path:
    """Seven classes at depth 4, proven on an idle machine within half a minute."""
    X, y = read_segmentation(raw / "segmentation.data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = OptimalTreeClassifier(max_depth=4, leaf_penalty=0.002, time_limit=300).fit(X, y)
    test = read_segmentation(raw / "segmentation.test")
    return model.report(path, X, y, test=test, title="Outdoor images: which surface is it?")


def read_segmentation(path: Path) -> tuple[pd.DataFrame, Any]:
    rows = [line.strip().split(",") for line in path.read_text().splitlines() if line.strip()]
    X = pd.DataFrame([list(map(float, row[1:])) for row in rows], columns=COLUMNS)
    return X, np.array([CLASSES[row[0]] for row in rows])


def picture(browser: Browser, report: Path, width: int, height: int) -> bytes:
    """The top of the page; on a wide one a leaf is chosen."""
    phone = width < 600
    context = browser.new_context(
        viewport={"width": width, "height": height}, is_mobile=phone, device_scale_factor=2 if phone else 1
    )
    page = context.new_page()
    page.goto(report.as_uri())
    if phone:
        page.locator(".legend").scroll_into_view_if_needed()
        page.evaluate("document.querySelector('#tree-section').scrollIntoView()")
    else:
        page.locator(".wide .leaf").nth(2).click()
        page.mouse.move(1, 1)
    found = page.screenshot()
    context.close()
    return found


def save(path: Path, screenshot: bytes) -> None:
    """With 256 colours, which flat pictures do not miss."""
    image = Image.open(io.BytesIO(screenshot)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    if size > HEAVIEST:
        raise SystemExit(f"{path} has more than {HEAVIEST:,} bytes")


if __name__ == "__main__":
    main()
