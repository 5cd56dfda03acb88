"""An executed notebook as one HTML file that opens without a network: figures, equations and tables inside."""

import html
import json
import os
import re
from pathlib import Path

import nbformat
from latex2mathml.converter import convert as to_mathml
from nbconvert import HTMLExporter
from plotly.offline import get_plotlyjs
from pygments.formatters import HtmlFormatter
from traitlets.config import Config

PLOTLY = "application/vnd.plotly.v1+json"
WIDGET = "application/vnd.jupyter.widget-view+json"
STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
_MATH = re.compile(r"(?s)(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^\s$](?:[^$\n]*[^\s$])?)\$")


def write_page(notebook: Path, target: Path, title: str) -> None:
    """Export an executed notebook; the file appears whole or not at all."""
    nb = nbformat.read(notebook, as_version=4)
    figures = 0
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = _MATH.sub(_equation, cell.source)
        for output in cell.get("outputs", []):
            if PLOTLY in output.get("data", {}):
                output.data = {"text/html": _figure(output.data[PLOTLY], f"figure-{figures}")}
                figures += 1
            elif WIDGET in output.get("data", {}):  # needs a kernel and scripts from elsewhere
                output.data = {"text/plain": output.data.get("text/plain", "an interactive view, in JupyterLab")}
    config = Config({"CoalesceStreamsPreprocessor": {"enabled": True}})  # a progress bar is its last state
    exporter = HTMLExporter(config, template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    body, _ = exporter.from_notebook_node(nb)
    scripts = f"<script>{get_plotlyjs()}</script>" if figures else ""
    write_html(target, title, f"<main class='notebook'>{body}</main>", scripts)


def write_html(target: Path, title: str, body: str, scripts: str = "") -> None:
    """A page around `body`, with the style inside."""
    style = STYLE + HtmlFormatter(style="default").get_style_defs(".highlight")
    page = (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style>{scripts}</head><body>{body}</body></html>"
    )
    work = target.with_suffix(".tmp")
    work.write_text(page, encoding="utf-8")
    os.replace(work, target)


def _figure(figure: dict, name: str) -> str:
    """The figure as a div and a call; `</` cannot end the script early."""
    data = json.dumps({key: figure.get(key) for key in ("data", "layout")}).replace("</", "<\\/")
    options = '{"responsive": true, "displaylogo": false}'
    return (
        f"<div id='{name}'></div><script>(f => Plotly.newPlot('{name}', f.data, f.layout, {options}))({data})</script>"
    )


def _equation(match: re.Match) -> str:
    code, display, inline = match.groups()
    if code:
        return code
    return to_mathml(display or inline, display="block" if display else "inline").replace("\n", "")
