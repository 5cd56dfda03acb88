"""The scripts and the style that draw the widgets, in JupyterLab and in pages without a kernel.

Each widget is an ES module `NAME.js` with `export function render({ model, el })`, as anywidget
calls it. `model` holds the widget's state: a kernel's in JupyterLab, the saved one in a page. The
modules import nothing from the network.
"""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = (FOLDER / "kit.css").read_text(encoding="utf-8")
"""Style of all widgets. Colours follow JupyterLab's theme, or the page's."""
PLOTLY_MIME = "application/vnd.plotly.v1+json"
"""Type of an output that is a plotly figure."""
WIDGET_MIME = "application/vnd.cselab.widget+json"
"""Type of an output that a page shows without a kernel: {"script": NAME, "state": {...}}."""

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.MULTILINE)


@cache
def bundle(name: str) -> str:
    """The module `name` and all that it imports, as one module: anywidget takes one text."""
    parts: list[str] = []

    def add(module: str) -> None:
        text = (FOLDER / f"{module}.js").read_text(encoding="utf-8")
        for needed in _IMPORT.findall(text):
            if needed not in seen:
                seen.add(needed)
                add(needed)
        parts.append(_IMPORT.sub("", text).replace("\nexport ", "\n"))

    seen = {name}
    add(name)
    return "\n".join(parts) + "\nexport default { render };\n"
