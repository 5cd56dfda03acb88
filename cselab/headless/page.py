"""HTML page of an executed notebook: one file, which opens without a network."""

import html
import json
import os
import re
from collections.abc import Collection
from pathlib import Path

import nbformat
from latex2mathml.converter import convert as to_mathml
from nbconvert import HTMLExporter
from plotly.offline import get_plotlyjs
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
MARKDOWN = "text/markdown"
TEXT = "text"
"""The tag of cells that compute a text: their page shows the text alone."""
STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_MATH = re.compile(
    r"(?s)(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^\s$](?:(?:[^$\n]|\n(?!\n))*[^\s$])?)\$"
)
_LINK = re.compile(r"<a href=([\"'])([^\"'#:]+)\1")
"""A link to a file of the project."""


def write_page(notebook: Path, target: Path, title: str, beside: Collection[str] = ()) -> None:
    """Export an executed notebook as an HTML page, atomically.

    beside: stems of the notebooks that have a page in the same folder. Links lead to them; what
        other files of the project are called stays as text.
    """
    nb = nbformat.read(notebook, as_version=4)
    figures = 0
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = _MATH.sub(_equation, cell.source)
        for output in cell.get("outputs", []):
            if PLOTLY in output.get("data", {}):
                output.data = {"text/html": _figure(output.data[PLOTLY], f"figure-{figures}")}
                figures += 1
            elif WIDGET in output.get("data", {}):  # would need a kernel and scripts of the network
                text = output.data.get("text/plain", "an interactive widget, in JupyterLab")
                output.data = {"text/plain": text}
            elif MARKDOWN in output.get("data", {}):
                output.data[MARKDOWN] = _MATH.sub(_equation, output.data[MARKDOWN])
    # shows only the last state of a progress bar
    config = Config(
        {
            "CoalesceStreamsPreprocessor": {"enabled": True},
            "TagRemovePreprocessor": {"enabled": True, "remove_input_tags": {TEXT}},
        }
    )
    exporter = HTMLExporter(
        config, template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True
    )
    body, _ = exporter.from_notebook_node(nb)
    body = _LINK.sub(lambda link: _to_page(link[2], beside), body)
    scripts = f"<script>{get_plotlyjs()}</script>" if figures else ""
    write_html(target, title, f"<main class='notebook'>{body}</main>", scripts)


def write_html(target: Path, title: str, body: str, scripts: str = "") -> None:
    """Write a page around `body`, with its style, atomically."""
    style = STYLE + HtmlFormatter(style="default").get_style_defs(".highlight")
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style>{scripts}</head>"
        f"<body>{body}</body></html>"
    )
    work = target.with_suffix(".tmp")
    work.write_text(page, encoding="utf-8")
    os.replace(work, target)


def _to_page(file: str, beside: Collection[str]) -> str:
    stem = file.removesuffix(".ipynb")
    return f"<a href='{stem}.html'" if stem in beside else "<a"


def _figure(figure: dict, name: str) -> str:
    """A div and a script that draws the figure; `</` is escaped, as it could end the script."""
    parts = {key: figure[key] for key in ("data", "layout", "frames") if key in figure}
    parts["config"] = {"responsive": True, "displaylogo": False}
    data = json.dumps(parts).replace("</", "<\\/")
    return f"<div id='{name}'></div><script>Plotly.newPlot('{name}', {data})</script>"


def _equation(match: re.Match) -> str:
    code, display, inline = match.groups()
    if code:
        return code
    return to_mathml(display or inline, display="block" if display else "inline").replace("\n", "")
