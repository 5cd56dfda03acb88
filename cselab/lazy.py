"""Packages whose names are imported when first used."""

import importlib
from collections.abc import Callable
from typing import Any


def lazy(package: str, names: dict[str, str]) -> tuple[list[str], Callable[[str], Any]]:
    """A package's `__all__` and `__getattr__` (PEP 562), of its names by module.

    Examples:
        >>> __all__, __getattr__ = lazy("cselab.data", {"sts": "STS7 load_sts"})
        >>> __getattr__("STS7")[-1]
        'SICK-R'
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{modules[name]}"), name)

    return list(modules), load
