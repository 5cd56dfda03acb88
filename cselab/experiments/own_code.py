"""The code of a user's own method, as far as it is not a library's."""

import dataclasses
import dis
import functools
import hashlib
import inspect
import re
import sys
import sysconfig
from collections.abc import Iterator
from enum import Enum
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

from cselab.experiments.code import PACKAGE, plain

PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
LIBRARIES = tuple(Path(sysconfig.get_paths()[name]).resolve() for name in PLACES)
LIBRARY = "library:"
"""Marks the modules of cselab that a user's code names, among its parts."""


def own_code(kind: type) -> tuple[str, set[str]]:
    """The source of a class and of all that it uses, as far as a user wrote it.

    Bases, properties, attributes, helper functions, constants and modules, found through the names
    that its functions read. Comments and docstrings are left out. What is looked up by a string
    (`getattr(module, name)`) is not found.

    Args:
        kind: The class.

    Returns:
        The source, and the modules of cselab that it names; ("", none) for a class of the library.
    """
    parts: dict[str, str] = {}
    _collect(kind, parts)
    modules = {part.removeprefix(LIBRARY) for part in parts if part.startswith(LIBRARY)}
    own = [source for name, source in parts.items() if not name.startswith(LIBRARY)]
    return "\n".join(sorted(own)), modules


def _collect(value: Any, parts: dict[str, str]) -> None:
    """Adds the source of a class, function or module, once, and then of what it uses."""
    name = str(id(value))  # two lambdas, or two products of one factory, have one name
    if name in parts:
        return
    if not _of_a_user(value):
        module = value.__name__ if isinstance(value, ModuleType) else value.__module__ or ""
        if parts and module.startswith("cselab"):
            parts[LIBRARY + module] = ""
        return
    parts[name] = ""
    if isinstance(value, ModuleType):
        parts[name] = plain(inspect.getsource(value))
        for used in list(vars(value).values()):
            if isinstance(used, (FunctionType, type, ModuleType)):
                _collect(used, parts)
    elif isinstance(value, type):
        own = {key: item for key, item in vars(value).items() if key not in IGNORED}
        if issubclass(value, BaseModel):  # the values of its fields are in the key already
            own = {key: own[key] for key in own if not key.startswith(("__", "model_config"))}
            own.pop("offered", None)
        parts[name] = f"class {value.__qualname__}\n" + "\n".join(
            f"{key} = {_shown(own[key], parts)}" for key in sorted(own)
        )
        for base in value.__mro__[1:]:
            _collect(base, parts)
    elif isinstance(value, FunctionType):
        parts[name] = _source(value)
        if hasattr(value, "__wrapped__"):
            _collect(value.__wrapped__, parts)
        for key, used in _used(value):
            parts[f"{name}: {key}"] = f"{key} = {_shown(used, parts)}"


def _shown(value: Any, parts: dict[str, str]) -> str:
    """A constant's text, or the name of what has code, which is collected."""
    if isinstance(value, functools.partial):
        return f"partial({_shown((value.func, value.args, value.keywords), parts)})"
    for attribute in ("wrapped", "__func__", "func"):  # validators, class methods, properties
        value = getattr(value, attribute, value)
    if isinstance(value, property):
        return " ".join(
            _shown(part, parts) for part in (value.fget, value.fset, value.fdel) if part
        )
    if isinstance(value, (FunctionType, type, ModuleType)):
        _collect(value, parts)
        return getattr(value, "__qualname__", value.__name__)
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{key!r}: {_shown(item, parts)}" for key, item in value.items()) + "}"
        )
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_shown(item, parts) for item in value) + "]"
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(_shown(item, parts) for item in value)) + "}"
    if isinstance(
        value, (str, bytes, int, float, complex, bool, type(None), torch.dtype, PurePath)
    ):
        return repr(value)
    if isinstance(value, Enum):
        return f"{type(value).__qualname__}.{value.name} = {_shown(value.value, parts)}"
    if isinstance(value, BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if isinstance(value, torch.jit.ScriptFunction):
        return value.code
    if hasattr(value, "__wrapped__"):  # functools.cache
        return _shown(value.__wrapped__, parts)
    name, kind = f"object {id(value)}", type(value).__qualname__
    if name in parts:  # seen, perhaps on the way here
        return kind
    parts[name] = ""
    state = _state(value)
    return f"{kind}({_shown(state, parts)})" if state else kind


def _state(value: Any) -> Any:
    """What an object holds, where it is known to be the same in every process."""
    if isinstance(value, torch.Tensor):
        known = value.layout == torch.strided and not value.is_meta
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8) if known else ()
        return str(value.dtype), tuple(value.shape), _digest(np.asarray(content))
    if isinstance(value, np.ndarray):
        known = not value.dtype.hasobject  # else bytes are addresses
        return str(value.dtype), value.shape, _digest(value) if known else value.tolist()
    if isinstance(value, (np.generic, range)):
        return repr(value)
    if isinstance(value, re.Pattern):
        return value.pattern, value.flags
    if dataclasses.is_dataclass(value):
        return {item.name: getattr(value, item.name, None) for item in dataclasses.fields(value)}
    if isinstance(value, BaseModel):
        return dict(value)
    if isinstance(value, torch.nn.Module):  # weights may be drawn at random
        plain = {k: v for k, v in vars(value).items() if isinstance(v, (str, int, float, tuple))}
        return plain, dict(value.named_buffers(recurse=False)), dict(value.named_children())
    return None


def _digest(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


def _used(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """Defaults, closure, and the globals that the function or one nested in it names."""
    yield "defaults", (function.__defaults__, function.__kwdefaults__)
    yield from zip(
        function.__code__.co_freevars, map(_content, function.__closure__ or ()), strict=True
    )
    for name in sorted(set(_names(function.__code__))):
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name in sorted(set(_imported(function.__code__))):  # within its body
        if (module := sys.modules.get(name)) and _user_module(module):
            yield f"import {name}", module


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not yet assigned
        return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _imported(code: CodeType) -> Iterator[str]:
    yield from (op.argval for op in dis.get_instructions(code) if op.opname == "IMPORT_NAME")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant)


def _source(function: FunctionType) -> str:
    try:
        return plain(inspect.getsource(function.__code__))  # of a function itself it unwraps
    except (
        OSError,
        TypeError,
        SyntaxError,
    ):  # typed at a prompt, or a lambda within a line: what it does, then
        code = function.__code__
        return repr(
            (
                code.co_code,
                code.co_names,
                [c for c in code.co_consts if not isinstance(c, CodeType)],
            )
        )


def _of_a_user(value: Any) -> bool:
    """Whether it comes from a notebook, a prompt or a file outside all installed packages."""
    module = (
        value
        if isinstance(value, ModuleType)
        else sys.modules.get(getattr(value, "__module__", None) or "")
    )
    return module is not None and _user_module(module)


@functools.cache
def _user_module(module: ModuleType) -> bool:
    if module.__name__ == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return file is not None and not any(
        Path(file).resolve().is_relative_to(place) for place in (*LIBRARIES, PACKAGE)
    )


IGNORED = frozenset(
    {
        "__module__",
        "__qualname__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__firstlineno__",
        "__static_attributes__",
    }
    | {"own_terms"}
    | {
        "__abstractmethods__",
        "__annotations__",
        "__annotate__",
        "__annotate_func__",
        "_abc_impl",
        "__parameters__",
    }
)
"""What Python itself writes into a class."""
