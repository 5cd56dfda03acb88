"""Methods by name: each file of `cselab.methods` registers its own, and so does a user's file."""

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cselab.errors import SettingsError, suggest

_METHODS: dict[str, type] = {}
_FOUND: list[str] = []


def register(name: str) -> Callable[[type], type]:
    """Class decorator: make a method known as `name` to `create`, runs, sweeps and notebooks.

    The class has a `Config`, inherited or its own. Registering a name again replaces the method.

    Raises:
        SettingsError: For another class under the name of a method of cselab, which sweeps would
            take for it.

    Examples:
        SimCSE at another temperature:

            from cselab.methods import register
            from cselab.methods.simcse import SimCSE

            @register("warm")
            class Warm(SimCSE):
                class Config(SimCSE.Config):
                    temperature: float = 0.1

        docs/how-to/own-method.md has one with a loss term of its own.
    """

    def add(method: Any) -> Any:
        if not is_shipped(method):
            _find_shipped()
            if name in _METHODS and is_shipped(_METHODS[name]):
                raise SettingsError(f"{name!r} is a method of cselab; give yours another name")
        if "Config" not in vars(method) or vars(method.Config).get("name", name) != name:
            method.Config = type("Config", (method.Config,), _of(method))
        method.Config.name = name
        _METHODS[name] = method
        return method

    return add


def _of(method: type) -> dict[str, Any]:
    return {"__module__": method.__module__, "__qualname__": f"{method.__qualname__}.Config"}


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
    """Import a Python file that registers methods; the same content is imported once.

    docs/how-to/own-method.md has such a file.

    Args:
        path: A .py file with a class under `@register("name")`.

    Returns:
        The name of its module.

    Raises:
        SettingsError: For a file that is not there, is no Python, or registers nothing.
    """
    path = Path(path).expanduser().resolve()
    if not path.is_file() or path.suffix != ".py":
        raise SettingsError(f"no method file {path}; give a .py file that registers a method")
    name, source = f"cselab_method_{path.stem}", path.read_text(encoding="utf-8")
    known = sys.modules.get(name)
    if known is not None and known.__source__ == source:
        return name
    _find_shipped()  # else the file would register those that it imports
    before = dict(_METHODS)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # Python knows what loads a .py file
    module: Any = importlib.util.module_from_spec(spec)
    module.__source__ = source
    sys.modules[name] = module
    try:
        # from the source: bytecode of an edit within a second would be taken for the new file's
        exec(compile(source, path, "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[name]
        _METHODS.clear()
        _METHODS.update(before)
        reason = (
            str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}"
        )
        raise SettingsError(f"{path}: {reason}; correct the file") from error
    if before == _METHODS:
        del sys.modules[name]
        raise SettingsError(f'{path} registers no method; put @register("name") above its class')
    return name


def _find_shipped() -> None:
    """Import every file of the package once, so that adding a method is adding a file."""
    if _FOUND:
        return
    _FOUND.append("all")
    package = importlib.import_module("cselab.methods")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"cselab.methods.{module.name}")
