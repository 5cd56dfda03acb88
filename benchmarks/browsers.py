"""A browser for the benchmarks of pages."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from cselab.cli import doctor


@contextmanager
def browser() -> Iterator[Browser]:
    """The installed Chromium or Chrome, headless."""
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=doctor.browser(), args=["--no-sandbox"]
        )
        yield launched
        launched.close()
