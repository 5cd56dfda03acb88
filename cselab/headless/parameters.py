"""Strict notebook parameters: read from the parameters cell, checked before a notebook runs.

papermill only logs an unknown parameter, and misreads `Literal[...]` annotations and defaults that
contain "=".
"""

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from cselab.config import PROFILE_NAMES, read_value
from cselab.errors import CselabError, SettingsError, nearest, suggest

SETTINGS = "settings"
"""The parameter of a notebook, a dictionary, for the settings that its cell does not list."""
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


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """Parameters of a notebook by name; the parameters cell is parsed, not executed.

    Args:
        notebook: Path of the notebook.

    Raises:
        CselabError: If the file is not a notebook, has no such cell, or the cell has values that
            are not plain literals.
    """
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except Exception as error:  # nbformat raises many types on broken JSON
        raise CselabError(
            f"{notebook} is not a notebook ({str(error).splitlines()[0]:.100})"
        ) from None
    tagged = (cell.source for cell in cells if "parameters" in cell.metadata.get("tags", []))
    source = next(tagged, None)
    if source is None:
        raise CselabError(
            f"{notebook} has no cell tagged 'parameters'; tag the cell with its plain literals"
        )
    parameters = {}
    target: ast.expr
    annotation: ast.expr | None
    for statement in ast.parse(source).body:
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
        except (ValueError, TypeError, SyntaxError):
            raise CselabError(
                f"{notebook}, parameters cell: {ast.unparse(statement)!r} is not a plain literal; "
                "move it to a later cell"
            ) from None
        parameters[target.id] = _parameter(target.id, default, annotation)
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
        >>> from cselab.headless.parameters import Parameter, convert
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
            return _absolute_paths(parameter.name, text)
    if not parameter.types and not parameter.choices:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text
    raise SettingsError(f"parameter {parameter.name!r} takes {parameter.expected}, got {text!r}")


PATHS = (
    "data_dir",
    "outputs",
    "corpus",
    "tasks",
    "dev_task",
    "nli",
    "backbone",
    "decoder",
    "translator",
    "checkpoints",
)
"""Settings whose values may be files or folders."""
TEXTS = ("nli", "synthetic")
"""Values of `corpus` that are no files, also where a folder has that name."""


def _absolute_paths(name: str, text: str) -> str:
    """Make paths absolute: they are relative to the command's folder, not to the kernel's."""
    if text.lower() in ("", *NONE):
        return text
    if name in ("data_dir", "outputs", "leaderboard"):
        return str(Path(text).expanduser().resolve())
    if name.split(".")[-1] not in PATHS:
        return text
    listed = read_value(text)
    if isinstance(listed, list):
        return json.dumps([_absolute_paths(name, str(part)) for part in listed])
    parts = [Path(part.strip()).expanduser() for part in text.split(",")]
    found = [path.exists() and not (name == "corpus" and str(path) in TEXTS) for path in parts]
    pairs = zip(parts, found, strict=True)
    return ",".join(str(path.resolve() if is_file else path) for path, is_file in pairs)


def assign(texts: Mapping[str, str], notebooks: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """Assign parameters from the command line to notebooks.

    A notebook gets the parameters that its cell lists, and other settings in its parameter
    `settings`. Prints a line for each parameter that some notebooks do not take, because they list
    neither it nor `settings`.

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
    texts = {name: _absolute_paths(name, text) for name, text in texts.items()}
    profile = texts.get("profile", "tiny")
    others = {name: text for name, text in texts.items() if name not in names}
    takes_all = any(SETTINGS in parameters for parameters in declared.values())
    if others and not takes_all:
        name = next(iter(others))
        raise SettingsError(f"unknown parameter {name!r}; {suggest(name, names)}")
    values: dict[Path, dict[str, Any]] = {
        notebook: {n: convert(parameters[n], texts[n]) for n in texts if n in parameters}
        for notebook, parameters in declared.items()
    }
    settings = _checked_settings(texts, names, profile)
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


def _checked_settings(texts: Mapping[str, str], names: set[str], profile: str) -> dict[str, Any]:
    """The values of those that are settings, checked; the others are a notebook's own."""
    if set(texts) <= {"profile"} and profile in PROFILE_NAMES:
        return dict(texts)
    # imports torch, which takes seconds
    from cselab.experiments import config

    settings = {name: read_value(text) for name, text in texts.items()}
    of_run = {name: settings.pop(name, None) for name in ("profile", "seed", "preset")}
    seed, preset = of_run["seed"], of_run["preset"]
    config.configure("untrained", profile, seed=seed, preset=preset)
    valid = config.known_settings(settings, profile)
    for name in settings.keys() - valid - names:
        hint = nearest(name, names | config.setting_names(profile))
        raise SettingsError(f"unknown parameter {name!r}; {hint or '`cselab settings` lists them'}")
    given = {name: value for name, value in settings.items() if value is not None}
    config.check_settings({name: given[name] for name in valid & given.keys()}, profile)
    return {**of_run, **{name: settings[name] for name in valid}}
