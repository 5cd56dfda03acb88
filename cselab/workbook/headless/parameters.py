"""Strict notebook parameters: read from the parameters cell, checked before a notebook runs.

papermill only logs an unknown parameter, and misreads `Literal[...]` annotations and defaults that
contain "=".
"""

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat

from cselab.config import PROFILE_NAMES, read_value
from cselab.errors import CselabError, SettingsError, nearest, suggest
from cselab.paths import absolute, located

SETTINGS = "settings"
"""The parameter of a notebook, a dictionary, for the settings that its cell does not list."""
OF_RUN = ("profile", "seed", "preset")
"""Settings of a whole run."""
NONE = ("none", "null")
TYPES = {"str": str, "int": int, "float": float, "bool": bool}


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: its default and its valid values.

    Attributes:
        name: Name of the parameter.
        default: Value in the cell.
        types: Builtin types of the annotation, or the type of the default; empty: any value.
        optional: Whether None is valid.
        choices: Values of `Literal[...]`.
    """

    name: str
    default: Any
    types: tuple[type, ...]
    optional: bool
    choices: tuple[Any, ...] = ()

    @property
    def expected(self) -> str:
        """Description of the valid values."""
        names = [repr(choice) for choice in self.choices]
        names = names or [kind.__name__ for kind in self.types] or ["anything"]
        return " or ".join([*names, "None"] if self.optional else names)


class Cell(NamedTuple):
    """A cell of a notebook.

    Attributes:
        kind: "code", "markdown" or "raw".
        source: Its text.
        tags: Its tags.
    """

    kind: str
    source: str
    tags: Sequence[str]


def read_cells(notebook: Path) -> list[Cell]:
    """Cells of a notebook of any format that nbformat reads.

    Args:
        notebook: Path of the notebook.

    Raises:
        CselabError: If the file is not a notebook.
    """
    try:
        cells = nbformat.read(notebook, as_version=4).cells
        return [Cell(c.cell_type, c.source, c.metadata.get("tags") or ()) for c in cells]
    except Exception as error:  # nbformat raises many types on broken JSON
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CselabError(f"{notebook} is not a notebook ({reason:.100})") from None


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """Parameters of a notebook by name; the parameters cell is parsed, not executed.

    Args:
        notebook: Path of the notebook.

    Raises:
        CselabError: If the file is not a notebook, has no such cell, or the cell has values that
            are not plain literals.
    """
    cells = read_cells(notebook)
    source = next((cell.source for cell in cells if "parameters" in cell.tags), None)
    if source is None:
        raise CselabError(
            f"{notebook} has no cell tagged 'parameters'; tag the cell with its plain literals"
        )
    parameters = {}
    target: ast.expr
    annotation: ast.expr | None
    try:
        statements = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise CselabError(
            f"{notebook}, parameters cell: not plain Python ({error!s:.80}); move what is no "
            "literal to a later cell"
        ) from None
    for statement in statements:
        if isinstance(statement, ast.AnnAssign):
            target, annotation = statement.target, statement.annotation
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target, annotation = statement.targets[0], None
        else:
            continue  # an import or a docstring
        try:
            if statement.value is None or not isinstance(target, ast.Name):
                raise ValueError("no value, or not of a name")
            default = ast.literal_eval(statement.value)
            parameters[target.id] = _parameter(target.id, default, annotation)
        except (ValueError, TypeError, SyntaxError):
            raise CselabError(
                f"{notebook}, parameters cell: {ast.unparse(statement)!r} is not a plain literal; "
                "move it to a later cell"
            ) from None
    return parameters


def _parameter(name: str, default: Any, annotation: ast.expr | None) -> Parameter:
    if annotation is None:
        kinds = () if default is None else (type(default),)
        return Parameter(name, default, kinds, optional=default is None)
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
    """Alternatives of `a | b`, `Optional[a]` and `Union[a, b]`."""
    if isinstance(annotation, ast.BinOp):
        return _alternatives(annotation.left) + _alternatives(annotation.right)
    if not isinstance(annotation, ast.Subscript):
        return [annotation]
    kind, inside = ast.unparse(annotation.value).split(".")[-1], annotation.slice
    if kind not in ("Optional", "Union"):
        return [annotation]
    items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
    none = [ast.Constant(None)] if kind == "Optional" else []
    return [part for item in items for part in _alternatives(item)] + none


def convert(parameter: Parameter, text: str) -> Any:
    """Convert text from the command line to a value of this parameter.

    Args:
        parameter: Parameter of `read_parameters`.
        text: As typed.

    Raises:
        SettingsError: With the valid values.

    Examples:
        >>> from cselab.workbook.headless.parameters import Parameter, convert
        >>> steps = Parameter("steps", None, (int,), optional=True)
        >>> convert(steps, "200"), convert(steps, "None")
        (200, None)
    """
    if parameter.optional and text.lower() in NONE:
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
            return absolute_paths(parameter.name, text)
    if not parameter.types and not parameter.choices:
        text = absolute_paths(parameter.name, text)
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    raise SettingsError(f"parameter {parameter.name!r} takes {parameter.expected}, got {text!r}")


DATA = ("corpus", "tasks", "dev_task")
MODELS = ("backbone", "decoder", "translator", "checkpoints")
"""Settings whose values may be files or folders."""


def absolute_paths(name: str, text: str) -> str:
    """Make paths absolute: they are relative to the command's folder, not to the kernel's.

    Args:
        name: Name of the parameter.
        text: Its value, as typed.
    """
    if text.lower() in ("", *NONE):
        return text
    *_, name = name.split(".")
    if name in ("data_dir", "outputs", "leaderboard"):
        return str(absolute(text))
    if name not in (*DATA, *MODELS):
        return text
    listed = read_value(text)
    if isinstance(listed, list):
        return json.dumps([absolute_paths(name, str(part)) for part in listed])
    # a comma may be in a file's name
    parts = [text] if absolute(text).is_file() else [part.strip() for part in text.split(",")]
    return ",".join(located(part, folders=name in MODELS) for part in parts)


def assign(texts: Mapping[str, str], notebooks: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """Assign parameters from the command line to notebooks.

    A notebook gets the parameters that its cell lists, which are its own unless it hands them to
    `open_lab`, and other settings in its parameter `settings`. Prints a line for each parameter
    that some notebooks do not take, because they list neither it nor `settings`.

    Args:
        texts: Values by parameter, as typed.
        notebooks: Paths.

    Returns:
        By notebook, the values of its parameters.

    Raises:
        SettingsError: With the nearest valid name, for a parameter that no notebook lists and that
            is not a setting, and for an invalid value.
    """
    declared = {notebook: read_parameters(notebook) for notebook in notebooks}
    names = {name for parameters in declared.values() for name in parameters} - {SETTINGS}
    others = {name: text for name, text in texts.items() if name not in names}
    takes_all = any(SETTINGS in parameters for parameters in declared.values())
    if others and not takes_all:
        name = next(iter(others))
        raise SettingsError(f"unknown parameter {name!r}; {suggest(name, names)}")
    values: dict[Path, dict[str, Any]] = {
        notebook: {n: convert(parameters[n], texts[n]) for n in texts if n in parameters}
        for notebook, parameters in declared.items()
    }
    of_labs = {name for found in declared.items() for name in _taken_by_lab(*found, texts)}
    settings = _checked_settings(
        {n: absolute_paths(n, text) for n, text in texts.items() if n in of_labs}, names
    )
    for notebook, parameters in declared.items():
        rest = {n: settings[n] for n in settings.keys() - parameters.keys()}
        rest = {n: rest[n] for n in texts if rest.get(n) is not None}
        if rest and SETTINGS in parameters:
            values[notebook][SETTINGS] = rest
    for name in texts:
        taken = {name, SETTINGS} if name in settings else {name}
        without = [
            notebook.stem
            for notebook, parameters in declared.items()
            if not taken & parameters.keys()
        ]
        if without:
            has = "has" if len(without) == 1 else "have"
            print(f"{name}: not taken by {', '.join(without)}, which {has} no such parameter")
    return values


def _taken_by_lab(
    notebook: Path, parameters: Mapping[str, Parameter], names: Iterable[str]
) -> set[str]:
    """Those names that a notebook's lab takes as settings; its other parameters are its own."""
    takes_all = SETTINGS in parameters
    cells = "\n".join(cell.source for cell in read_cells(notebook) if "open_lab(" in cell.source)
    return {
        name
        for name in names
        if (takes_all and (name not in parameters or name in (*OF_RUN, SETTINGS)))
        or re.search(rf"\b{re.escape(name)}\s*=\s*{re.escape(name)}\b", cells)
    }


def _checked_settings(texts: Mapping[str, str], names: set[str]) -> dict[str, Any]:
    """The values of those that are settings, checked; the others are a notebook's own."""
    profile = texts.get("profile", "tiny")
    if set(texts) <= {"profile"} and profile in PROFILE_NAMES:
        return dict(texts)
    # imports torch, which takes seconds
    from cselab.experiments import run

    settings = {name: read_value(text) for name, text in texts.items()}
    of_run = {name: settings.pop(name, None) for name in OF_RUN}
    seed, preset = of_run["seed"], of_run["preset"]
    run.set_up(profile, seed=seed, preset=preset)
    valid = run.known_settings(settings, profile)
    for name in settings.keys() - valid - names:
        hint = nearest(name, names | run.setting_names(profile))
        raise SettingsError(f"unknown parameter {name!r}; {hint or '`cselab settings` lists them'}")
    given = {name: value for name, value in settings.items() if value is not None}
    run.check_settings({name: given[name] for name in valid & given.keys()}, profile)
    return {**of_run, **{name: settings[name] for name in valid}}
