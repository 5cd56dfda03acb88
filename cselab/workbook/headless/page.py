"""HTML page of an executed notebook: one file, which opens without a network."""

import base64
import gzip
import html
import json
import mimetypes
import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import nbformat
from latex2mathml.converter import convert as to_mathml
from nbconvert import HTMLExporter
from plotly.offline import get_plotlyjs
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from traitlets.config import Config

from cselab.paths import replacing
from cselab.workbook.browser import PLOTLY_MIME, WIDGET_MIME, bundle
from cselab.workbook.browser import STYLE as WIDGET_STYLE

WIDGET = "application/vnd.jupyter.widget-view+json"
MARKDOWN = "text/markdown"
TEXT = "text"
"""The tag of cells that compute a text: their page shows the text alone."""
FOLDED = {
    "parameters": "Parameters",
    "injected-parameters": "Parameters of this run",
    "set-up": "Code of the set-up",
}
"""Tags of cells whose code is folded, and what the page calls it."""
STYLE = (Path(__file__).parent / "style.css").read_text(encoding="utf-8")
DRAW = (Path(__file__).parent / "draw.js").read_text(encoding="utf-8")
_MATH = re.compile(
    r"(?s)(```.*?```|`[^`\n]*`)|\$\$(.+?)\$\$|\$([^\s$](?:(?:[^$\n]|\n(?!\n))*[^\s$])?)\$"
)
_LINK = re.compile(r"""<a href=(["'])(?![a-zA-Z][\w+.-]*:|//|#)(.*?)\1""")
"""A link to a file of the project."""
_PICTURE = re.compile(r"""(<img [^>]*?src=)(["'])(?![a-zA-Z][\w+.-]*:|//)(.*?)\2""")


def write_page(
    notebook: Path,
    target: Path,
    title: str,
    beside: Collection[str] = (),
    folder: Path | None = None,
) -> None:
    """Export an executed notebook as an HTML page, atomically.

    Args:
        folder: Of the pictures that its Markdown shows; by default the notebook's.
        beside: Stems of notebooks that have a page in the same folder; links to other files of the
            project become text.
    """
    nb = nbformat.read(notebook, as_version=4)
    figures: list[dict] = []
    widgets: list[dict] = []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = _MATH.sub(_equation, cell.source)
        for tag in FOLDED.keys() & {*cell.metadata.get("tags", ())}:
            code = highlight(cell.source, PythonLexer(), HtmlFormatter())
            folded = f"<details><summary>{FOLDED[tag]}</summary>{code}</details>"
            cell.outputs.insert(0, nbformat.v4.new_output("display_data", {"text/html": folded}))
        for output in cell.get("outputs", []):
            if WIDGET_MIME in output.get("data", {}):
                widgets.append(output.data[WIDGET_MIME])
                output.data = {"text/html": f"<div id='widget-{len(widgets) - 1}'></div>"}
            elif PLOTLY_MIME in output.get("data", {}):
                figure = output.data[PLOTLY_MIME]
                output.data = {"text/html": place_figure(figure, len(figures))}
                figures.append(figure)
            elif WIDGET in output.get("data", {}):  # needs a kernel and scripts of the network
                text = output.data.get("text/plain", "an interactive widget, in JupyterLab")
                output.data = {"text/plain": text}
            elif MARKDOWN in output.get("data", {}):
                output.data[MARKDOWN] = with_equations(output.data[MARKDOWN])
    # shows only the last state of a progress bar
    config = Config()
    config.CoalesceStreamsPreprocessor.enabled = True
    config.TagRemovePreprocessor.update(enabled=True, remove_input_tags={TEXT, *FOLDED})
    exporter = HTMLExporter(
        config, template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True
    )
    body, _ = exporter.from_notebook_node(nb)
    # nbconvert's own embed_images closes every tag of Markdown where it is opened
    body = _PICTURE.sub(lambda found: _embedded(found, folder or notebook.parent), body)
    body = _LINK.sub(lambda link: _to_page(link[2], beside), body)
    write_html(target, title, f"<main class='notebook'>{body}</main>", figures, widgets)


def write_html(
    target: Path,
    title: str,
    body: str,
    figures: Sequence[dict] = (),
    widgets: Sequence[dict] = (),
    refresh: int | None = None,
) -> None:
    """Write a page around `body`, with its style, atomically.

    Args:
        body: HTML.
        figures: plotly's JSON of figures, whose places in `body` are from `place_figure`.
        widgets: Outputs of type `WIDGET_MIME`, the nth of which is drawn in the element `widget-n`.
        refresh: Seconds after which a browser reads the page again.
    """
    styles = ("default", "github-dark")
    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in styles)
    style = f"{STYLE}{WIDGET_STYLE}{light}@media (prefers-color-scheme: dark) {{ {dark} }}"
    again = f"<meta http-equiv='refresh' content='{refresh}'>" if refresh else ""
    page = (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'>{again}"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{html.escape(title)}</title><style>{style}</style></head>"
        f"<body>{body}{_payload(figures, widgets)}</body></html>"
    )
    with replacing(target) as work:
        work.write_text(page, encoding="utf-8", errors="replace")  # of half a surrogate pair


def write_widget(target: Path, title: str, saved: dict[str, Any]) -> Path:
    """Write a page with one widget, of `Widget.saved()`, and return its path."""
    body = "<main class='notebook'><div id='widget-0'></div></main>"
    write_html(target, title, body, widgets=[saved])
    return target


def with_equations(markdown: str) -> str:
    """Markdown with the equations between dollars as MathML, but for those in code."""
    return _MATH.sub(_equation, markdown)


def address(name: str) -> str:
    """A file's name as the address of a link."""
    return quote(name, errors="surrogateescape")


def _to_page(link: str, beside: Collection[str]) -> str:
    file, mark, part = html.unescape(link).partition("#")
    stem = posixpath.normpath(unquote(file)).removesuffix(".ipynb")
    target = f"{address(stem)}.html{mark}{address(unquote(part))}"
    return f"<a href='{target}'" if stem in beside else "<a"


def _embedded(picture: re.Match, folder: Path) -> str:
    path = folder / unquote(html.unescape(picture[3]))
    if not path.is_file():
        return picture[0]
    kind, data = mimetypes.guess_type(path)[0], base64.b64encode(path.read_bytes()).decode()
    return f"{picture[1]}{picture[2]}data:{kind};base64,{data}{picture[2]}"


def place_figure(figure: dict, number: int) -> str:
    """HTML in which the page's figure `number` is drawn; on a phone, several panels scroll."""
    panels = sum(name.startswith(("xaxis", "scene")) for name in figure.get("layout") or ())
    kind = "figure panels-wide" if panels > 1 else "figure"
    return f"<div class='{kind}'><div id='figure-{number}'></div></div>"


def _payload(figures: Sequence[dict], widgets: Sequence[dict]) -> str:
    """Figures, widgets and the scripts that draw them, compressed: plotly alone has 5 MB."""
    if not figures and not widgets:
        return ""
    payload: dict[str, Any] = {
        "plotly": get_plotlyjs() if figures else "",
        "figures": [
            {part: figure[part] for part in ("data", "layout", "frames") if part in figure}
            for figure in figures
        ],
        "scripts": {name: bundle(name) for name in sorted({w["script"] for w in widgets})},
        "widgets": list(widgets),
    }
    packed = base64.b64encode(gzip.compress(json.dumps(payload).encode(), mtime=0)).decode()
    return (
        "<noscript>The figures of this page need JavaScript.</noscript>"
        f"<script id='payload' type='text/plain'>{packed}</script>"
        f"<script type='module'>{DRAW}</script>"
    )


def _equation(match: re.Match) -> str:
    code, display, inline = match.groups()
    if code:
        return code
    try:
        kind = "block" if display else "inline"
        return to_mathml(display or inline, display=kind).replace("\n", "")
    except Exception:  # of many types, without a common one: a reader sees what was written
        return html.escape(match[0])
