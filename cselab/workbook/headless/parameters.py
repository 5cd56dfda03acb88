"""Strict notebook parameters: read from the parameters cell, checked before a notebook runs.

papermill only logs an unknown parameter, and misreads `Literal[...]` annotations and defaults that
contain "=".
"""

import ast
import json
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any

from cselab.config import DEFAULT_PROFILE, OFF, PROFILE_NAMES, read_value
from cselab.errors import CselabError, SettingsError, nearest, suggest
from cselab.paths import absolute, located

SETTINGS = "settings"
"""The parameter of a notebook, a dictionary, for the settings that its cell does not list."""
OF_RUN = ("profile", "seed", "preset")
"""Settings of a whole run."""
TYPES = {"bool": bool, "int": int, "float": float, "list": list, "str": str}
UNIONS = (typing.Union, UnionType)


@dataclass(frozen=True)
class Parameter:
    """One line of a parameters cell: its default and its valid values.

    Attributes:
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


class Cell(typing.NamedTuple):
    """A cell of a notebook: "code", "markdown" or "raw", its text and its tags."""

    kind: str
    source: str
    tags: tuple[str, ...]


def read_cells(notebook: Path) -> list[Cell]:
    """Cells of a notebook of format 4. Its JSON is enough: importing nbformat takes a second.

    Raises:
        CselabError: If the file is not a notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [
            Cell(
                cell["cell_type"],
                "".join(cell["source"]),
                tuple(cell["metadata"].get("tags", ())),
            )
            for cell in cells
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise CselabError(f"{notebook} is not a notebook of format 4 ({reason:.100})") from None


def read_parameters(notebook: Path) -> dict[str, Parameter]:
    """Parameters of a notebook by name; the parameters cell is parsed, not executed.

    Raises:
        CselabError: If the file is not a notebook, has no such cell, or the cell has values that
            are not plain literals.
    """
    tagged = (c for c in read_cells(notebook) if "parameters" in c.tags)
    if (cell := next(tagged, None)) is None:
        raise CselabError(
            f"{notebook} has no cell tagged 'parameters'; tag the cell with its plain literals"
        )
    parameters, wrong = {}, f"{notebook}, parameters cell: "
    target: ast.expr
    try:
        statements = ast.parse(cell.source).body
    except (SyntaxError, ValueError) as error:
        wrong += f"not plain Python ({error!s:.80}); move what is no literal to a later cell"
        raise CselabError(wrong) from None
    for statement in statements:
        annotation: ast.expr | None = None
        if isinstance(statement, ast.AnnAssign):
            target, others, annotation = statement.target, [], statement.annotation
        elif isinstance(statement, ast.Assign):
            target, *others = statement.targets
        else:
            continue  # an import or a docstring
        try:
            if statement.value is None or others or not isinstance(target, ast.Name):
                raise ValueError("no value, or not of one name")
            default = ast.literal_eval(statement.value)
            parameters[target.id] = _parameter(target.id, default, annotation)
        except (ValueError, TypeError, SyntaxError):
            wrong += f"{ast.unparse(statement)!r} is not a plain literal; move it to a later cell"
            raise CselabError(wrong) from None
    return parameters


def known_parameters(notebooks: Iterable[Path]) -> set[str]:
    """Names of the parameters of those that are notebooks."""
    names: set[str] = set()
    for notebook in notebooks:
        with suppress(CselabError):
            names |= read_parameters(notebook).keys()
    return names


def _parameter(name: str, default: Any, annotation: ast.expr | None) -> Parameter:
    kind: Any = type(default)
    if annotation is not None:
        try:  # of a notebook that is to be executed
            kind = eval(ast.unparse(annotation), {"typing": typing, **vars(typing), **TYPES})
        except Exception:  # a type of the notebook's own
            kind = Any
    parts = typing.get_args(kind) if typing.get_origin(kind) in UNIONS else (kind,)
    literals = [part for part in parts if typing.get_origin(part) is typing.Literal]
    types = tuple(part for part in parts if part in TYPES.values())
    optional = default is None or NoneType in parts
    known = len(types) + len(literals) + (NoneType in parts) == len(parts)
    choices = tuple(value for part in literals for value in typing.get_args(part))
    return Parameter(name, default, types if known else (), optional, choices)


def convert(parameter: Parameter, text: str) -> Any:
    """Convert text from the command line to a value of this parameter.

    Raises:
        SettingsError: With the valid values.
    """
    if parameter.optional and text.lower() in OFF:
        return None
    for choice in parameter.choices:
        if text == str(choice):
            return choice
    for kind in TYPES.values():
        if kind not in parameter.types:
            continue
        if kind is str:
            return absolute_paths(parameter.name, text)
        if kind is list:
            parts = _parts(absolute_paths(parameter.name, text))
            return [read_value(part) if isinstance(part, str) else part for part in parts]
        with suppress(ValueError, KeyError):
            return {"true": True, "false": False}[text.lower()] if kind is bool else kind(text)
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
    """Make paths in a parameter's text absolute: they are relative to the command's folder, not to
    the kernel's."""
    if text.lower() in ("", *OFF):
        return text
    *_, name = name.split(".")
    if name in ("data_dir", "outputs", "leaderboard"):
        return str(absolute(text))
    if name not in (*DATA, *MODELS):
        return text
    listed = read_value(text)
    if isinstance(listed, list):
        return json.dumps([absolute_paths(name, str(part)) for part in listed])
    return ",".join(located(part, folders=name in MODELS) for part in _parts(text))


def _parts(text: str) -> list[Any]:
    """A list from the command line: JSON, or parts with commas between them."""
    listed = read_value(text)
    if isinstance(listed, list):
        return listed
    if absolute(text).is_file():  # a comma may be in a file's name
        return [text]
    return [part.strip() for part in text.split(",") if part.strip()]


def assign(texts: Mapping[str, str], notebooks: Sequence[Path]) -> dict[Path, dict[str, Any]]:
    """Assign parameters from the command line to notebooks.

    A notebook gets the parameters that its cell lists, which are its own unless it hands them to
    `open_lab`, and other settings in its parameter `settings`. Prints a line for each parameter
    that some notebooks do not take, because they list neither it nor `settings`.

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
        {n: absolute_paths(n, text) for n, text in texts.items() if n in of_labs},
        names,
        {own["profile"].default for own in declared.values() if "profile" in own}
        & set(PROFILE_NAMES),
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


def _checked_settings(
    texts: Mapping[str, str], names: set[str], defaults: set[str]
) -> dict[str, Any]:
    """The values of those that are settings, checked; the others are a notebook's own. `defaults`
    are the notebooks' own profiles."""
    profiles = [texts["profile"]] if "profile" in texts else sorted(defaults) or [DEFAULT_PROFILE]
    if set(texts) <= {"profile"} and set(profiles) <= {*PROFILE_NAMES}:
        return dict(texts)
    # imports torch, which takes seconds
    from cselab.experiments import run

    settings = {name: read_value(text) for name, text in texts.items()}
    for name in texts.keys() - names - {*OF_RUN}:  # None is a default of a parameters cell
        settings[name] = "none" if settings[name] is None else settings[name]
    of_run = {name: settings.pop(name, None) for name in OF_RUN}
    seed, preset = of_run["seed"], of_run["preset"]
    valid: set[str] = set()
    for profile in profiles:
        run.set_up(profile, seed=seed, preset=preset)
        known = run.known_settings(settings, profile)
        valid |= known
        given = {name: settings[name] for name in known if settings[name] is not None}
        run.check_settings(given, profile)
    for name in settings.keys() - valid - names:
        hint = nearest(name, names | run.setting_names(profiles[0]))
        raise SettingsError(f"unknown parameter {name!r}; {hint or '`cselab settings` lists them'}")
    return {**of_run, **{name: settings[name] for name in valid}}
