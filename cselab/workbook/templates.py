"""Jinja templates of pages, reports and cards."""

from pathlib import Path

import jinja2


def templates(folder: Path) -> jinja2.Environment:
    """The Jinja templates of a folder; values are escaped in those of HTML, not in Markdown."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=jinja2.select_autoescape(["html.j2"]),
        keep_trailing_newline=True,
        trim_blocks=True,
    )
