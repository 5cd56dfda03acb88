"""Which code a training runs: part of its key, with docstrings, comments and layout left out."""

import ast
import functools
import hashlib
import textwrap
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
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
    that train, and what a user wrote of it.

    Args:
        kind: The class of the method.
    """
    from cselab.experiments.own_code import own_code

    own, modules = own_code(kind)
    modules |= {base.__module__ for base in kind.__mro__ if base.__module__.startswith("cselab.")}
    return _digest(*TRAINING, *sorted(modules), own=own)


def code_of_modules(*modules: str) -> str:
    """Sixteen hex digits of the code of modules and of all of the library that they import."""
    return _digest(*modules)


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
