"""Terms of the loss playground as the browser knows them: texts, hyperparameters, scripts."""

import inspect
from typing import Any

from cselab.methods import Method
from cselab.methods.terms import SHARED

NUMBERS = ("integer", "number", "boolean")


def described(method: Method, name: str) -> dict[str, Any]:
    """Describe a term as JSON.

    Returns:
        Among others "known": the function of `losses.js` that computes it, "" where only the kernel
            can; "fixed": the method's settings that it reads; "fields": the JSON schema of each
            hyperparameter that can be changed.
    """
    written = getattr(method, name) if name in method.own_terms else SHARED[name]
    about, *rest = (inspect.getdoc(written) or "a term of this method").split("\n\n")
    formula = rest[0].replace("`", "") if rest and rest[0].startswith("`") else ""
    reads = getattr(written, "script_settings", ())  # an override without @term has none
    known = getattr(written, "script", "") if _reads_as_the_library(method) else ""
    fields = method.settings.offered[name].model_json_schema()["properties"]
    return {
        "name": name,
        "own": name in method.own_terms,
        "known": known,
        "fixed": {name: getattr(method.settings, name) for name in reads},
        "formula": " ".join(formula.split()),
        "about": " ".join(about.split()),
        "fields": [
            {"name": field, **schema}
            for field, schema in fields.items()
            if field != "weight" and ("enum" in schema or schema.get("type") in NUMBERS)
        ],
    }


def _reads_as_the_library(method: Method) -> bool:
    """Tell whether no class of your own changes what terms read: the scripts could not follow."""
    reads = ("compare", "_term", "spaces", "placed", "across", "over_neighbours")
    functions = [getattr(method, part) for part in reads if hasattr(method, part)]
    return all(function.__module__.startswith("cselab.methods.") for function in functions)
