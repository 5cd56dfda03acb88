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
from cselab.settings import Settings

SETTINGS = "settings"
"""The parameter of a notebook, a dictionary, that takes the settings its cell does not list."""
NOTHING = ("none", "null")
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
    if parameter.optional and text.lower() in NOTHING:
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
    """Which notebook gets which values: those that its cell declares by name, other settings in its parameter `settings`.

    Prints a line for a setting that some of the notebooks do not take: they declare neither it nor `settings`.

    Raises SettingsError, naming the nearest valid name, for a parameter that none of them has and that is no setting, and for a
    value that the settings do not take.
    """
    declared = {notebook: read_parameters(notebook) for notebook in notebooks}
    valid = {name for parameters in declared.values() for name in parameters} - {SETTINGS}
    if any(SETTINGS in parameters for parameters in declared.values()):
        valid |= Settings.model_fields.keys()
    for name in given:
        if name not in valid:
            raise SettingsError(f"unknown parameter {name!r}; {suggest(name, valid)}")
    texts = {name: _absolute(name, text) for name, text in given.items()}
    values: dict[Path, dict[str, Any]] = {}
    for notebook, parameters in declared.items():
        own = {name: convert(parameters[name], text) for name, text in texts.items() if name in parameters}
        others = {name: text for name, text in texts.items() if name not in parameters and text.lower() not in NOTHING}
        values[notebook] = own | ({SETTINGS: others} if others and SETTINGS in parameters else {})
    said = {name: text for name, text in texts.items() if name in Settings.model_fields and text.lower() not in NOTHING}
    Settings.of(said.pop("profile", "tiny"), **said)
    for name in given:
        without = [
            notebook.stem for notebook, parameters in declared.items() if not {name, SETTINGS} & parameters.keys()
        ]
        if without:
            print(
                f"{name}: not taken by {', '.join(without)}, which {'has' if len(without) == 1 else 'have'} no such parameter"
            )
    return values
