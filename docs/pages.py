"""Write the generated pages of this folder from its templates: `python docs/pages.py`.

    methods.md        every method: its paper, its settings with their defaults and sources
    paper-vs-code.md  where papers and released code differ, and what the preset "released" changes

Everything in them stands in the method files; a test fails where a page is not up to date.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from cselab.experiments.run import configure
from cselab.methods import Method, method_names, registered
from cselab.study.paper_vs_code import released_settings, rows
from cselab.workbook.templates import templates

FOLDER = Path(__file__).resolve().parent
PAGES = ("methods.md", "paper-vs-code.md")


def rendered(name: str) -> str:
    """The text of a page."""
    environment = templates(FOLDER / "templates")
    environment.filters["cell"] = lambda text: text.replace("|", "\\|")
    return environment.get_template(f"{name}.j2").render(
        methods=[_method(name) for name in sorted(method_names(), key=_by_file)],
        differences=map(_cells, rows()),
        presets=_presets(),
    )


def _by_file(name: str) -> tuple[str, str]:
    return registered(name).__module__, name


def _method(name: str) -> dict[str, object]:
    """A method's texts, the settings of its own node, and the nodes that it starts from."""
    kind, node = registered(name), configure(name, "paper").method
    text = inspect.cleandoc(kind.__doc__)
    first = " ".join(text.split("\n\n")[0].split())
    members = {field: value if isinstance(value, tuple) else (value,) for field, value in node}
    parts = {
        field: [member.method for member in some]
        for field, some in members.items()
        if any(hasattr(member, "method") for member in some)
    }
    fields = {path: field for path, _, field in node.walk()}
    settings = []
    for path, value, source in node.leaves():
        if path[0] not in parts and path != ("method",):
            extra = (fields[path] and fields[path].json_schema_extra) or {}
            settings.append((".".join(path), "shared" in extra, value, source))
    return {
        "name": name,
        "summary": re.split(r"(?<=[.)]) (?=[A-Z])", first)[0],
        "file": kind.__module__.removeprefix("cselab.methods.").replace(".", "/") + ".py",
        "text": text,
        "settings": settings,
        "parts": sorted(parts.items()),
    }


def _cells(row) -> list[str]:
    """The cells of a difference of paper and code."""
    changes = row.changes(configure(row.method, "paper").method)
    switch = "; ".join(f"`{path}={value}`" for path, value in changes.items())
    return [row.name, row.of, row.paper, row.released, row.here, switch]


def _presets() -> Iterator[tuple[str, object]]:
    """The methods with a preset "released" that changes something, each with its changes."""
    for name in method_names():
        if issubclass(registered(name), Method) and registered(name).released:
            table = released_settings(name)
            if len(table):
                yield name, table


if __name__ == "__main__":
    for name in PAGES:
        (FOLDER / name).write_text(rendered(name), encoding="utf-8")
        print(FOLDER / name)
