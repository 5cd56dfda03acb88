"""The code that a training runs: part of its key, without docstrings, comments and layout."""

import ast
import contextlib
import functools
import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import decode_source
from pathlib import Path

from cselab.config import is_docstring
from cselab.methods.registry import method_sources

PACKAGE = Path(__file__).resolve().parents[1]
SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple(Path(sysconfig.get_paths()[name]).resolve() for name in SCHEMES)
TRAINING = (
    "cselab.training.fit",
    "cselab.experiments.training_rows",
    "cselab.data.nli",
    "cselab.data.targets",
    "cselab.evaluation.sts",
)
"""Every training runs these besides its method: the loop, the rows, the score of the dev split."""


def code_of(kind: type) -> str:
    """Sixteen hex digits of the code that a method runs.

    That is the modules of the library that its class imports, directly or through others, those
    that train, and what a user wrote of it (`own_sources`).
    """
    sources, modules = own_sources(kind)
    modules |= {base.__module__ for base in kind.__mro__ if base.__module__.startswith("cselab.")}
    if getattr(kind, "reads", "") == "csts":
        modules |= {"cselab.data.csts", "cselab.evaluation.csts"}
    return code_of_modules(*TRAINING, *modules, own="\n".join(sources))


def code_of_modules(*modules: str, own: str = "") -> str:
    """Sixteen hex digits of the code of modules and of all of the library that they import, after
    a user's own code."""
    names = sorted(set().union(*map(imported, modules)))
    code = own + "".join(_read(name)[0] for name in names)
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def code_of_notebook(notebook: Path) -> str:
    """Sixteen hex digits of a notebook's code cells and of the modules that they import."""
    own: list[str] = []
    modules: set[str] = set()
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        lines = "".join(cell["source"]).splitlines()
        magics = [line for line in lines if line.lstrip().startswith(("%", "!"))]
        try:
            code, imports = _parsed("\n".join(line for line in lines if line not in magics))
        except SyntaxError:  # the run will show it
            own += lines
        else:
            own += [*magics, code]
            modules.update(_resolved(imports))
    return code_of_modules(*modules, own="\n".join(own))


def own_sources(kind: type) -> tuple[list[str], set[str]]:
    """A user's own sources of a class, without comments, and the modules of the library it imports.

    That is the file of the class and of its bases, with the files that they import from their own
    folders; of a class of a notebook, the cells that define it and the names that they read. At a
    Python prompt there is no source. Values that change without their source are not seen.
    """
    written: list[str] = []
    for base in kind.__mro__:
        module = sys.modules.get(base.__module__)
        file = getattr(module, "__file__", None)
        if file and not any(Path(file).resolve().is_relative_to(f) for f in (*LIBRARIES, PACKAGE)):
            sources = getattr(module, "__sources__", None) or method_sources(file)
            written += [decode_source(content) for _, content in sources]
        elif module is not None and module.__name__ == "__main__":
            written += _cells_defining(base.__name__)
    parsed = [_parsed(source) for source in written]
    modules = {name for _, imports in parsed for name in _resolved(imports)}
    return sorted({source for source, _ in parsed}), modules


def _cells_defining(name: str) -> list[str]:
    """The cells of this notebook that define a name, and the names that those cells read."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return []
    cells: list[str] = []
    trees: list[ast.Module] = []
    for cell in map(shell.transform_cell, shell.user_ns["In"]):
        with contextlib.suppress(SyntaxError):
            trees.append(ast.parse(cell))
            cells.append(cell)
    # the last definition counts
    defining = {name: i for i, tree in enumerate(trees) for name in _defined(tree)}
    chosen: set[int] = set()
    left = [name]
    while left:
        i = defining.get(left.pop())
        if i is not None and i not in chosen:
            chosen.add(i)
            left += [node.id for node in ast.walk(trees[i]) if isinstance(node, ast.Name)]
    return [cells[i] for i in sorted(chosen)]


def _defined(tree: ast.Module) -> Iterator[str]:
    """Names that a cell binds at its top level."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)
        else:
            names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
            yield from (part.id for part in names if isinstance(part.ctx, ast.Store))


def library_hash() -> str:
    """Twelve hex digits of all files of the library, comments included; it takes milliseconds."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(str(path.relative_to(PACKAGE)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def imported(module: str) -> set[str]:
    """The module and all modules of the library that it imports, directly or through others."""
    reached, left = set(), [module]
    while left:
        name = left.pop()
        if name not in reached:
            reached.add(name)
            left += _read(name)[1]
    return reached


def _file(module: str) -> Path | None:
    base = PACKAGE.parent.joinpath(*module.split("."))
    files = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in files if path.is_file()), None)


def _read(module: str) -> tuple[str, tuple[str, ...]]:
    """A module's code without docstrings and comments, and the modules that it names."""
    path = _file(module)
    return ("", ()) if path is None else _read_version(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=512)
def _read_version(path: Path, _changed: int) -> tuple[str, tuple[str, ...]]:
    code, imports = _parsed(path.read_text(encoding="utf-8"))
    return code, tuple(_resolved(imports))


@functools.lru_cache(maxsize=1024)
def _parsed(source: str) -> tuple[str, tuple[tuple[str, str, str], ...]]:
    """Code without docstrings, comments and layout; its imports of the library, as (module, name,
    name here)."""
    tree = ast.parse(source)
    imports: list[tuple[str, str, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(a.name, "", "") for a in node.names if a.name.startswith("cselab.")]
        elif isinstance(node, ast.ImportFrom):
            if (module := node.module or "").split(".")[0] == "cselab":
                imports += [(module, a.name, a.asname or a.name) for a in node.names]
        elif isinstance(body := getattr(node, "body", None), list):
            kept = [statement for statement in body if not is_docstring(statement)]
            if len(kept) < len(body):
                body[:] = kept or [ast.Pass()]
    return ast.unparse(tree), tuple(imports)


def _resolved(imports: tuple[tuple[str, str, str], ...]) -> Iterator[str]:
    for module, name, _ in imports:
        yield _defining(module, name)


def _defining(module: str, name: str) -> str:
    """The module that `from module import name` gets its object from, through packages that pass
    it on."""
    if name and _file(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    path = _file(module)
    if path is not None and path.name == "__init__.py":
        for other, original, here in _parsed(path.read_text(encoding="utf-8"))[1]:
            if name and here == name and other != module:
                return _defining(other, original)
    return module
