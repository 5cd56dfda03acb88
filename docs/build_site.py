"""Build the documentation site in outputs/docs/site: `python docs/build_site.py [RUN]`.

RUN is the folder of a finished `cselab run`, by default the newest: the site shows its notebooks.
The pages are collected in outputs/docs/pages under the paths that they have in the repository, so
that a link works in both; pages of the API are generated, and equations become MathML. zensical
builds the site from them (mkdocs.yml).
"""

import ast
import importlib
import os
import shutil
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from cselab.workbook.chapters import by_part
from cselab.workbook.headless.page import with_equations

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "outputs" / "docs" / "pages"
COPIED = (
    "*.md",
    "CITATION.cff",
    "Dockerfile",
    "docs/**/*.md",
    "docs/*.css",
    "docs/*.js",
    "docs/images/*",
    "data/*.md",
    "data/backbones/*/README.md",
    "data/reported/*.md",
    "notebooks/*.ipynb",
    "outputs/reference/*",
    "outputs/reference/[!p]*/*",  # not the scripts in outputs/reference/pages
)
"""Patterns of the repository's files that the site has."""
PACKAGES = (
    "cselab",
    "cselab.losses",
    "cselab.models",
    "cselab.data",
    "cselab.methods",
    "cselab.training",
    "cselab.evaluation",
    "cselab.analysis",
    "cselab.experiments",
    "cselab.workbook.plots",
    "cselab.workbook.widgets",
    "cselab.workbook.course",
)
"""Packages whose `__all__` is the library."""
BACK = '<p style="margin: 0.5rem 1rem"><a href="index.html">cselab · notebooks</a></p>'
"""The way back from an executed notebook."""
SHIM = "https://unpkg.com/iframe-worker/shim"
"""Address that zensical's pages fetch for the search where they are opened from a folder."""


def copied() -> list[Path]:
    """The files of the repository that the site has, without what git ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    known = {ROOT / name for name in listed.split("\0") if name}
    return sorted(known.intersection(path for pattern in COPIED for path in ROOT.glob(pattern)))


def copy(source: Path, target: Path, executed: Collection[str]) -> None:
    """Copy a file; a page with its equations as MathML, and its links to executed notebooks as
    links to their pages."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix != ".md":
        shutil.copyfile(source, target)
        return
    text = with_equations(source.read_text(encoding="utf-8"))
    for stem in executed:
        text = text.replace(f"{stem}.ipynb)", f"{stem}.html)")
    target.write_text(text, encoding="utf-8")


def homes(package: str) -> dict[str, str]:
    """Names that the modules of a package define at their top, each with its module."""
    modules: dict[str, str] = {}
    root = ROOT / Path(*package.split("."))
    for path in sorted(root.rglob("*.py")) or [root.with_suffix(".py")]:
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                modules.setdefault(node.name, module)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                modules |= {t.id: module for t in targets if isinstance(t, ast.Name)}
    return modules


def api_page(package: str) -> str:
    """A page of the API: the package's first lines, and each of its public names."""
    module, modules = importlib.import_module(package), homes(package)
    names = getattr(module, "__all__", ["open_lab", "load"])
    parts = [f"# {package}", str(module.__doc__)]
    parts += [f"::: {modules[name]}.{name}" for name in names]
    return "\n\n".join(parts) + "\n"


def commands_page() -> str:
    """The help of every command, by typer."""
    command = [sys.executable, "-m", "typer", "cselab.cli", "utils", "docs", "--name", "cselab"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def notebooks_page(executed: Collection[str]) -> str:
    """The list of the executed notebooks, core chapters first."""
    lines = []
    for part, stems in by_part(executed).items():
        lines += [f"\n## {part}\n", *(f"- [{s.replace('_', ' ')}]({s}.html)" for s in stems)]
    return (
        "# Notebooks\n\nExecuted by `make run`, on the embedded data, with their figures and "
        "widgets. [The run's report](run.html) has its scores.\n" + "\n".join(lines) + "\n"
    )


def collect(run: Path) -> None:
    """Fill the folder of pages anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    executed = sorted(path.stem for path in run.glob("*.html") if path.stem != "index")
    for source in copied():
        copy(source, PAGES / source.relative_to(ROOT), executed)
    (PAGES / "api").mkdir()
    for package in PACKAGES:
        (PAGES / "api" / f"{package}.md").write_text(api_page(package), encoding="utf-8")
    (PAGES / "api" / "commands.md").write_text(commands_page(), encoding="utf-8")
    for page in run.glob("*.html"):
        name = "run.html" if page.stem == "index" else page.name
        text = page.read_text(encoding="utf-8").replace("<body>", f"<body>{BACK}", 1)
        (PAGES / "notebooks" / name).write_text(text, encoding="utf-8")
    (PAGES / "notebooks" / "index.md").write_text(notebooks_page(executed), encoding="utf-8")


def build(root: Path = ROOT) -> Path:
    """Build the site of mkdocs.yml in `root`, whose search needs no network; return its folder."""
    command = [Path(sys.executable).with_name("zensical"), "build", "--clean", "--strict"]
    subprocess.run(command, cwd=root, check=True)
    site = root / "outputs" / "docs" / "site"
    for page in site.rglob("*.html"):
        shim = os.path.relpath(site / "docs" / "iframe-worker.js", page.parent)
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace(SHIM, Path(shim).as_posix()), encoding="utf-8")
    return site


def newest_run() -> Path:
    """The folder of the newest run with a report."""
    reports = (ROOT / "outputs" / "runs").glob("*/index.html")
    return max(reports, key=lambda report: report.stat().st_mtime).parent


if __name__ == "__main__":
    collect(Path(sys.argv[1]) if len(sys.argv) > 1 else newest_run())
    print(build() / "index.html")
