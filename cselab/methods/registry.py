"""Methods by name: each file of `cselab.methods` registers its own, and so does a user's file."""

import ast
import functools
import importlib
import pkgutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from cselab.errors import SettingsError, suggest
from cselab.paths import absolute

LIBRARIES = [sysconfig.get_path(name) for name in ("purelib", "platlib")]


class Configured:
    """A class with a `Config` of its own, which knows the name that the class is registered by.

    Attributes:
        fits: Whether it is fitted to the text without training, so that the text is part of its
            key.
        scored_only: Whether its vectors have no fixed dimensions, so that nothing can start from
            it or learn from it.
        paper_row: Row in the papers' tables of BERT-base.
        released: The preset "released", what a method's released code has in the place of its
            paper's settings: by dotted path a value, values by backbone family ({"bert": …,
            "roberta": …}; a family without one keeps the paper's), or a function of the method's
            configuration that gives the value.
    """

    Config: ClassVar[Any]
    fits: ClassVar[bool] = False
    scored_only: ClassVar[bool] = False
    paper_row: ClassVar[str] = ""
    released: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "Config" not in vars(cls) or vars(cls.Config).get("name"):  # another method's
            names = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.Config"}
            cls.Config = type("Config", (cls.Config,), names)


_METHODS: dict[str, type] = {}


def register(name: str) -> Callable[[type], type]:
    """Class decorator: make a method known as `name` to `create`, runs, sweeps and notebooks.

    Registering a name again replaces the method. docs/how-to/own-method.md has examples.

    Raises:
        SettingsError: For the name of a method of cselab, and for a class that has another name.
    """

    def add(method: Any) -> Any:
        if not is_shipped(method):
            _find_shipped()
            if name in _METHODS and is_shipped(_METHODS[name]):
                raise SettingsError(f"{name!r} is a method of cselab; give yours another name")
        if method.Config.name not in ("", name) and "name" in vars(method.Config):
            raise SettingsError(
                f"{method.__name__} is registered as {method.Config.name!r}; register a subclass "
                f"as {name!r}"
            )
        method.Config.name = name
        _METHODS[name] = method
        return method

    return add


def is_shipped(method: type) -> bool:
    """Whether a method is one of cselab's, and not of a user's file or cell."""
    return method.__module__.startswith("cselab.")


def registered(name: Any) -> Any:
    """The class of a method.

    Raises:
        SettingsError: For an unknown name, with the nearest.

    Examples:
        >>> from cselab.methods import registered
        >>> registered("jtcse")
        <class 'cselab.methods.jtcse.JTCSE'>
        >>> registered("jtcse").Config().schedule.learning_rate
        1e-06
    """
    _find_shipped()
    if not isinstance(name, str) or name not in _METHODS:
        raise SettingsError(
            f"unknown method {name!r}; {suggest(str(name), _METHODS)}; a method of "
            "your own needs its file (-m my_method.py, load_method_file)"
        )
    return _METHODS[name]


def method_names() -> list[str]:
    """All registered names, in alphabetical order.

    Examples:
        >>> from cselab.methods import method_names
        >>> [name for name in method_names() if name.startswith("tncse")]
        ['tncse', 'tncse_d', 'tncse_single', 'tncse_uc', 'tncse_uc_d']
    """
    _find_shipped()
    return sorted(_METHODS)


def load_method_file(path: str | Path) -> str:
    """Import a .py file with `@register("name")` above a class, and return its module's name.

    The same content is imported once. It may import files beside it (docs/how-to/own-method.md).

    Raises:
        SettingsError: For a file that is not there, is no Python, or registers nothing.
    """
    path = absolute(path).resolve()
    sources = method_sources(path)
    name = f"cselab_method_{path.stem}"
    known = sys.modules.get(name)
    if known is not None and known.__sources__ == sources:
        return name
    _find_shipped()  # else the file would register those that it imports
    before = dict(_METHODS)
    module: Any = ModuleType(name)
    module.__file__, module.__sources__ = str(path), sources
    sys.modules[name] = module
    try:
        with _importable(path.parent, [file for file, _ in sources[1:]]):
            # from the source: bytecode of an edit within a second would be taken for the new file's
            exec(compile(sources[0][1], path, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        _METHODS.clear()
        _METHODS.update(before)
        kind = "" if isinstance(error, SettingsError) else f"{type(error).__name__}: "
        raise SettingsError(f"{path}: {kind}{error}; correct the file") from error
    module.__registered__ = [key for key, kind in _METHODS.items() if before.get(key) is not kind]
    if not module.__registered__:
        del sys.modules[name]
        raise SettingsError(f'{path} registers no method; put @register("name") above its class')
    return name


def registered_by(path: str | Path) -> list[str]:
    """Load a file with `load_method_file`, and return the names of the methods it registers."""
    return sys.modules[load_method_file(path)].__registered__


def method_sources(path: str | Path) -> tuple[tuple[str, bytes], ...]:
    """Read a method file, and the files beside it that it imports, itself or through others.

    Gives the name (relative to the folder) and content of each, the method file first.
    """
    path = absolute(path).resolve()
    if not path.is_file() or path.suffix != ".py":
        raise SettingsError(f"no method file {path}; give a .py file that registers a method")
    contents: dict[str, bytes] = {}
    left = [path]
    while left:
        file = left.pop()
        if (name := file.relative_to(path.parent).as_posix()) not in contents:
            try:
                contents[name] = file.read_bytes()
                decode_source(contents[name])  # Python itself lets any byte pass in a comment
            except OSError as error:
                raise SettingsError(f"{file} cannot be read ({error.strerror})") from None
            except (SyntaxError, UnicodeDecodeError):
                raise SettingsError(f"{file} is not UTF-8 text; save it as UTF-8") from None
            left += [f for top in _imports(contents[name]) for f in _files(path.parent, top)]
    return (path.name, contents.pop(path.name)), *sorted(contents.items())


def _imports(content: bytes) -> set[str]:
    """First parts of the names of all modules that a file imports."""
    names: list[str] = []
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):  # the import of the file reports it
        return set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.partition(".")[0] for name in names}


def _files(folder: Path, top: str) -> list[Path]:
    """Files of a module beside a method file; none for one that is installed."""
    is_installed = top in sys.stdlib_module_names or PathFinder.find_spec(top, LIBRARIES)
    file = folder / f"{top}.py"
    if file.is_file():
        if is_installed:
            raise SettingsError(f"{file} has the name of an installed module; rename it")
        return [file]
    return [] if is_installed or top == "cselab" else sorted((folder / top).rglob("*.py"))


@contextmanager
def _importable(folder: Path, files: list[str]) -> Iterator[None]:
    """Import these files of the folder anew: another folder may have files of the same names."""
    names = {file.partition("/")[0].removesuffix(".py") for file in files}
    for module in [name for name in sys.modules if name.partition(".")[0] in names]:
        del sys.modules[module]
    writes = sys.dont_write_bytecode
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    importlib.invalidate_caches()
    try:
        for name in sorted(names):  # also what is imported inside a function, when the folder is
            importlib.import_module(name)  # no longer searched
        yield
    finally:
        sys.path.remove(str(folder))
        sys.dont_write_bytecode = writes


@functools.cache
def _find_shipped() -> None:
    """Import every file of the package once, so that adding a method is adding a file."""
    package = importlib.import_module("cselab.methods")
    for module in pkgutil.walk_packages(package.__path__, "cselab.methods."):
        importlib.import_module(module.name)
