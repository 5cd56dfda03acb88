"""Figures as PNG files, through a browser: what a page shows is what the file has."""

import io
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import plotly.graph_objects as go
from PIL import Image
from playwright.sync_api import sync_playwright


def draw(figures: Mapping[str, go.Figure], folder: Path) -> None:
    """Write each figure to `<name>.png` in `folder`, 1100 px wide."""
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as pages:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--use-gl=swiftshader"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 500})
        for name, figure in figures.items():
            figure.write_html(Path(pages) / f"{name}.html", full_html=True)
            page.goto(f"file://{pages}/{name}.html")
            page.wait_for_selector(".main-svg")
            page.wait_for_timeout(1500)  # WebGL draws after the page is there
            picture = Image.open(io.BytesIO(page.locator(".plot-container").screenshot()))
            picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(
                folder / f"{name}.png", optimize=True
            )
        browser.close()
