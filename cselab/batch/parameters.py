"""Strict notebook parameters: read from the notebook's own parameters cell, checked before anything runs.

papermill only logs an unknown parameter, and misreads defaults that hold "=" and `Literal[...]` annotations.
"""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from cselab.errors import CselabError, SettingsError, suggest

TYPES = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: its default, and what values it takes.

    types: builtin types by annotation, or by the default's type without one; empty takes anything. choices: `Literal[...]`.
    """

    name: str
    default: Any
    types: tuple[type, ...]
    optional: bool
    choices: tuple[Any, ...] = ()

    @property
    def expected(self) -> str:
        names = [repr(choice) for choice in self.choices] or [kind.__name__ for kind in self.types] or ["anything"]
        return " or ".join([*names, "None"] if self.optional else names)


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """Parameters of a notebook by name; the cell is parsed, not run.

    Raises CselabError when the notebook is no notebook, has no such cell, or the cell is not plain literals.
    """
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except Exception as error:  # nbformat raises a dozen kinds on broken JSON
        raise CselabError(f"{notebook} is not a notebook ({str(error).splitlines()[0]:.100})") from None
    source = next((cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])), None)
    if source is None:
        raise CselabError(f"{notebook} has no cell tagged 'parameters'; tag the cell that holds its plain literals")
    found = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.AnnAssign):
            target, value, annotation = statement.target, statement.value, statement.annotation
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, value, annotation = statement.targets[0], statement.value, None
        else:
            continue  # an import or a docstring
        try:
            default = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            raise CselabError(
                f"{notebook}, parameters cell: {ast.unparse(statement)!r} is not a plain literal; move it to a later cell"
            ) from None
        found[target.id] = _parameter(target.id, default, annotation)
    return found


def _parameter(name: str, default: Any, annotation: ast.expr | None) -> Parameter:
    if annotation is None:
        return Parameter(name, default, () if default is None else (type(default),), default is None)
    types: list[type] = []
    choices: list[Any] = []
    optional = default is None
    unknown = False
    for part in _alternatives(annotation):
        if isinstance(part, ast.Constant) and part.value is None:
            optional = True
        elif isinstance(part, ast.Subscript) and ast.unparse(part.value).endswith("Literal"):
            values = part.slice.elts if isinstance(part.slice, ast.Tuple) else [part.slice]
            choices += [ast.literal_eval(value) for value in values]
        elif ast.unparse(part) in TYPES:
            types.append(TYPES[ast.unparse(part)])
        else:
            unknown = True
    return Parameter(name, default, () if unknown else tuple(types), optional, tuple(choices))


def _alternatives(annotation: ast.expr) -> list[ast.expr]:
    """`a | b`, `Optional[a]` and `Union[a, b]` as a list."""
    if isinstance(annotation, ast.BinOp):
        return _alternatives(annotation.left) + _alternatives(annotation.right)
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value).split(".")[-1] in ("Optional", "Union"):
        inside = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
        none = [ast.Constant(None)] if ast.unparse(annotation.value).endswith("Optional") else []
        return [part for item in inside for part in _alternatives(item)] + none
    return [annotation]


def convert(parameter: Parameter, text: str) -> Any:
    """The value that `text` from a command line means for this parameter. Raises SettingsError saying what was expected."""
    if parameter.optional and text in ("None", "none", "null"):
        return None
    for choice in parameter.choices:
        if text == str(choice):
            return choice
    for kind in sorted(set(parameter.types), key=[bool, int, float, str].index):
        if kind is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        if kind is str:
            return _absolute(parameter.name, text)
    if not parameter.types and not parameter.choices:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    raise SettingsError(f"parameter {parameter.name!r} takes {parameter.expected}, got {text!r}")


def _absolute(name: str, text: str) -> str:
    """A folder given on the command line is relative to where the command was typed, not to the kernel's folder."""
    return str(Path(text).expanduser().resolve()) if name.endswith("_dir") or name == "outputs" else text


def assign(given: Mapping[str, str], notebooks: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """Which notebook gets which values: each parameter goes to all that have it.

    Raises SettingsError, naming the nearest valid name, for a parameter that none of them has.
    """
    declared = {notebook: read_parameters(notebook) for notebook in notebooks}
    known = {name for parameters in declared.values() for name in parameters}
    for name in given:
        if name not in known:
            raise SettingsError(f"unknown parameter {name!r}; {suggest(name, known)}")
    return {
        notebook: {name: convert(parameters[name], text) for name, text in given.items() if name in parameters}
        for notebook, parameters in declared.items()
    }
