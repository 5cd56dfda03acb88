"""Terms of the loss playground as the browser knows them: texts, hyperparameters, scripts."""

import inspect
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cselab.methods import Method
from cselab.methods.terms import SHARED, TermConfig


def described(method: Method, name: str) -> dict[str, Any]:
    """A term as JSON.

    Args:
        method: Whose term it is.
        name: Name of the term.

    Returns:
        Among others "known": the function of `losses.js` that computes it, "" where only the kernel
            can; "fixed": further options for it; "fields": hyperparameters that can
            be changed.
    """
    written = getattr(method, name) if name in method.own_terms else SHARED[name]
    about, *rest = (inspect.getdoc(written) or "a term of this method").split("\n\n")
    formula = rest[0].replace("`", "") if rest and rest[0].startswith("`") else ""
    reads = getattr(written, "script_settings", ())  # an override without @term has none
    known = getattr(written, "script", "") if _reads_as_the_library(method) else ""
    return {
        "name": name,
        "own": name in method.own_terms,
        "known": known,
        "fixed": {name: getattr(method.settings, name) for name in reads},
        "formula": " ".join(formula.split()),
        "about": " ".join(about.split()),
        "fields": [
            _field(field, kind)
            for field, kind in method.settings.offered[name].model_fields.items()
            if field != "weight"
            and (kind.annotation in (int, float, bool) or get_origin(kind.annotation) is Literal)
        ],
    }


def _reads_as_the_library(method: Method) -> bool:
    """Whether no class of your own changes what terms are given: the scripts could not follow."""
    reads = ("compare", "_term", "spaces", "placed", "across", "over_neighbours")
    functions = [getattr(method, part) for part in reads if hasattr(method, part)]
    return all(function.__module__.startswith("cselab.methods.") for function in functions)


def _field(name: str, kind: FieldInfo) -> dict[str, Any]:
    """A hyperparameter as JSON: its choices, or the range of a number.

    least and most can be chosen; above and below cannot, only what lies between them.
    """
    limits: dict[str, float | None] = {"least": 0, "most": 90 if name == "margin" else None}
    limits |= {"above": None, "below": None}
    kinds = {"ge": "least", "le": "most", "gt": "above", "lt": "below"}
    for bound in kind.metadata:
        limits |= {to: getattr(bound, by) for by, to in kinds.items() if hasattr(bound, by)}
    return {
        "name": name,
        "choices": [True, False] if kind.annotation is bool else list(get_args(kind.annotation)),
        "default": kind.default,
        "whole": kind.annotation is int,
        "about": " ".join((kind.description or "").split()),
        **limits,
    }


def changed_options(config: TermConfig) -> dict[str, Any]:
    """A term's hyperparameters that differ from their defaults, without its weight."""
    return config.model_dump(exclude_defaults=True, exclude={"weight"})
