"""Figures and widgets as PNG files, through a browser: what a page shows is what the file has."""

import io
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import plotly.graph_objects as go
from PIL import Image
from playwright.sync_api import Page, sync_playwright

from cselab.cli import doctor
from cselab.workbook.headless.page import write_widget
from cselab.workbook.widgets.widget import Widget

TALLEST = 1000
"""Pixels of a widget's picture; what is below is cut off."""


def draw(figures: Mapping[str, go.Figure], folder: Path) -> None:
    """Write each figure to `<name>.png` in `folder`, 1100 px wide."""
    with _page() as (page, pages):
        for name, figure in figures.items():
            figure.write_html(pages / f"{name}.html", full_html=True)
            page.goto((pages / f"{name}.html").as_uri())
            page.wait_for_selector(".main-svg")
            page.wait_for_timeout(1500)  # WebGL draws after the page is there
            _save(page.locator(".plot-container").screenshot(), folder / f"{name}.png")


def draw_widgets(widgets: Mapping[str, Widget], folder: Path) -> None:
    """Write each widget, as a page without a kernel has it, to `<name>.png` in `folder`."""
    with _page() as (page, pages):
        for name, widget in widgets.items():
            path = write_widget(pages / f"{name}.html", name, widget.saved())
            page.goto(path.as_uri())
            page.wait_for_selector(".cselab svg")
            page.wait_for_timeout(1500)
            box = page.locator(".cselab").bounding_box()
            box["height"] = min(box["height"], TALLEST)
            _save(page.screenshot(clip=box, full_page=True), folder / f"{name}.png")


@contextmanager
def _page() -> Iterator[tuple[Page, Path]]:
    """A browser's page of 1100 px, and a folder for what it opens."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as pages:
        browser = playwright.chromium.launch(
            executable_path=doctor.browser(), args=["--no-sandbox", "--use-gl=swiftshader"]
        )
        yield browser.new_page(viewport={"width": 1100, "height": 500}), Path(pages)
        browser.close()


def _save(png: bytes, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.open(io.BytesIO(png))
    picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(target, optimize=True)
