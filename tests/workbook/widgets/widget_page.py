"""A page without a kernel that shows one widget."""

from pathlib import Path

import nbformat

from cselab.workbook.browser import WIDGET_MIME
from cselab.workbook.headless.page import write_page


def write_widget_page(stem: Path, widget) -> Path:
    """The page of a notebook that shows a widget, as a headless run writes it."""
    data = {WIDGET_MIME: widget.saved()}
    output = nbformat.v4.new_output("display_data", data)
    cell = nbformat.v4.new_code_cell("widget", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), stem.with_suffix(".ipynb"))
    write_page(stem.with_suffix(".ipynb"), stem.with_suffix(".html"), "T")
    return stem.with_suffix(".html")
