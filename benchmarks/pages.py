"""What the benchmarks of pages share: a browser, and a page with one widget."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from cselab.experiments.doctor import BROWSERS
from cselab.headless.page import write_html
from cselab.widgets.widget import Widget


@contextmanager
def browser() -> Iterator[Browser]:
    """The installed Chromium or Chrome, headless."""
    path = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()


def widget_page(path: Path, widget: Widget) -> Path:
    """Write a page without a kernel that has one widget, and return its path."""
    body = "<main class='notebook'><div id='widget-0'></div></main>"
    write_html(path, widget.script, body, widgets=[widget.saved()])
    return path
