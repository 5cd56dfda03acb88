"""Which code a training runs: part of its key, with docstrings, comments and layout left out."""

import ast
import contextlib
import functools
import hashlib
import json
import sys
import sysconfig
import textwrap
from collections.abc import Iterator
from pathlib import Path

from cselab.methods.registry import method_sources

PACKAGE = Path(__file__).resolve().parents[1]
SCHEMES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple(Path(sysconfig.get_paths()[name]).resolve() for name in SCHEMES)
TRAINING = (
    "cselab.training.fit",
    "cselab.experiments.rows",
    "cselab.data.targets",
    "cselab.evaluation.sts",
)
"""What every training runs besides its method: the loop, the rows, the score of the dev split."""


def code_of(kind: type) -> str:
    """Sixteen hex digits of the code that a method runs.

    The code is the modules of the library that its class imports, directly or through others, those
    that train, and what a user wrote of it (`own_sources`).

    Args:
        kind: The class of the method.
    """
    sources, modules = own_sources(kind)
    modules |= {base.__module__ for base in kind.__mro__ if base.__module__.startswith("cselab.")}
    return _digest(*TRAINING, *sorted(modules), own="\n".join(sources))


def code_of_modules(*modules: str) -> str:
    """Sixteen hex digits of the code of modules and of all of the library that they import."""
    return _digest(*modules)


def code_of_notebook(notebook: Path) -> str:
    """Sixteen hex digits of a notebook's file and of the modules that its cells import."""
    text = notebook.read_text(encoding="utf-8")
    cells = (cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code")
    modules: set[str] = set()
    for cell in cells:
        lines = "".join(cell["source"]).splitlines()
        code = "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))
        with contextlib.suppress(SyntaxError):  # which the run will show
            modules.update(_statements(ast.parse(code)))
    return _digest(*modules, own=text)


def own_sources(kind: type) -> tuple[list[str], set[str]]:
    """What a user wrote of a class, without comments, and the modules of the library it imports.

    That is the file of the class and of its bases, with the files that they import from their own
    folders; of a class of a notebook, the cells that define it and the names that they read. At a
    Python prompt there is no source. Values that change without their source are not seen.
    """
    trees: list[ast.Module] = []
    for base in kind.__mro__:
        module = sys.modules.get(base.__module__)
        file = getattr(module, "__file__", None)
        if file and not _is_library(Path(file)):
            sources = getattr(module, "__sources__", None) or method_sources(file)
            trees += [ast.parse(content) for _, content in sources]
        elif module is not None and module.__name__ == "__main__":
            trees += _cells_defining(base.__name__)
    modules = {name for tree in trees for name in _statements(tree)}
    return sorted({plain(ast.unparse(tree)) for tree in trees}), modules


def _is_library(file: Path) -> bool:
    return any(file.resolve().is_relative_to(place) for place in (*LIBRARIES, PACKAGE))


def _cells_defining(name: str) -> list[ast.Module]:
    """The cells of this notebook that define a name, and the names that those cells read."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None:
        return []
    trees: list[ast.Module] = []
    for cell in shell.user_ns["In"]:
        with contextlib.suppress(SyntaxError):
            trees.append(ast.parse(shell.transform_cell(cell)))
    # the last definition counts
    defining = {name: i for i, tree in enumerate(trees) for name in _defined(tree)}
    chosen: set[int] = set()
    left = [name]
    while left:
        i = defining.get(left.pop())
        if i is not None and i not in chosen:
            chosen.add(i)
            left += [node.id for node in ast.walk(trees[i]) if isinstance(node, ast.Name)]
    return [trees[i] for i in sorted(chosen)]


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
    """The module and all modules of the library that it imports, directly or through others.

    Args:
        module: Dotted name of the module.
    """
    found, left = set(), [module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += _imports(name)
    return found


def plain(source: str) -> str:
    """Python source without comments, docstrings and layout."""
    tree = ast.parse(textwrap.dedent(source))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        kept = [item for item in body if not _is_text(item)]
        if len(kept) < len(body):
            body[:] = kept or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    """A docstring, of a function or of a field."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _digest(*modules: str, own: str = "") -> str:
    names = sorted(set().union(*map(imported, modules)))
    return hashlib.sha256((own + "".join(map(_code, names))).encode()).hexdigest()[:16]


def _file(module: str) -> Path | None:
    base = PACKAGE.parent.joinpath(*module.split("."))
    found = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def _code(module: str) -> str:
    path = _file(module)
    return "" if path is None else _plain_file(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=512)
def _plain_file(path: Path, _changed: int) -> str:
    return plain(path.read_text(encoding="utf-8"))


def _imports(module: str) -> list[str]:
    """Modules of the library that a module names; a name that a package passes on is followed to
    the module that defines it."""
    path = _file(module)
    return [] if path is None else list(_named_imports(path, path.stat().st_mtime_ns))


@functools.lru_cache(maxsize=512)
def _named_imports(path: Path, _changed: int) -> tuple[str, ...]:
    return tuple(_statements(ast.parse(path.read_text(encoding="utf-8"))))


def _statements(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("cselab."))
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.split(".")[0] == "cselab":
                yield from (_defining(module, alias.name) for alias in node.names)


def _defining(module: str, name: str) -> str:
    """The module that `from module import name` gets its object from."""
    if _file(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    path = _file(module)
    if path is not None and path.name == "__init__.py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    if (alias.asname or alias.name) == name and node.module != module:
                        return _defining(node.module, alias.name)
    return module
