"""Settings: frozen trees of values, and changes to them by dotted path.

A name means the shallowest setting of that name, a full dotted path means itself, and a path
without an index means every member of a tuple: `steps`, `schedule.steps`, `towers.temperature`,
`towers.0.temperature`. Steps of a path may be left out (`towers.steps`). A field marked as shared
(`shared(...)`: the backbone, bfloat16) is set wherever it occurs.
"""

import ast
import contextlib
import functools
import inspect
import itertools
import json
import os
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.fields import FieldInfo

from cselab.errors import SettingsError, nearest
from cselab.paths import PACKAGE

OFF = ("none", "null")
"""Words that switch a part of a run off, on a command line and in a grid."""
EXPECTED = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("dict_type", "mapping_type"), "names with values"),
    "finite_number": "a finite number",
    "string_type": "text",
    "path_type": "a path",
    "tuple_type": "a list",
    "literal_error": "{expected}",
    "greater_than": "a number above {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "a number below {lt}",
    "less_than_equal": "{le} or less",
    "model_type": "its settings by name ({where}.<name>=…), or none where it may be left out",
}
"""What each kind of pydantic's errors expects; other kinds, which fields here do not cause, keep
pydantic's words."""
Path = tuple[str, ...]
Tree = TypeVar("Tree", bound="Config")
PROFILE_NAMES = ("english", "tiny", "small", "paper")
"""Keys of `cselab.experiments.profiles.PROFILES`, readable without torch."""
DEFAULT_PROFILE = os.environ.get("CSELAB_PROFILE", PROFILE_NAMES[0])


class Config(BaseModel):
    """Frozen, compared by value, without unknown fields. Every default says where it comes from.

    Examples:
        >>> from cselab.config import Config
        >>> class Run(Config):
        ...     steps: int = 10
        >>> Run() == Run(steps=10)
        True
        >>> Run().changed({"steps": 5})
        Run(steps=5)
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, validate_default=True
    )
    main: ClassVar[str] = ""
    """The field that a bare value in the place of this configuration sets: a term's weight, a
    node's method."""

    @classmethod
    def checked(cls: type[Tree], **values: Any) -> Tree:
        """Make one; a value that is refused is a SettingsError of one line."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise SettingsError(_explained(error)) from None

    @field_validator("*", mode="before")
    @classmethod
    def _as_written(cls, value: Any, info: ValidationInfo) -> Any:
        """The text of a path, of which a field that takes a path makes one again; "none" and "null"
        as what switches the field off."""
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        if is_off(value):
            return _off(cls.model_fields[str(info.field_name)].annotation, value)
        return value

    def walk(self, before: Path = ()) -> Iterator[tuple[Path, Any, FieldInfo | None]]:
        """Full path, value and field of everything in the tree; the field of a member of a tuple or
        mapping is None."""
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            yield (*before, name), value, field
            for key, part in _parts(value):
                if key:
                    yield (*before, name, *key), part, None
                yield from part.walk((*before, name, *key))

    def leaves(self) -> Iterator[tuple[Path, Any, str]]:
        """Every setting: its full path, its value and the source of its default."""
        for path, value, _ in self.walk():
            if not _parts(value):
                holder = self.value_at(path[:-1])
                known = _docstrings(type(holder)) if isinstance(holder, Config) else {}
                yield path, value, known.get(path[-1], "")

    def optional_paths(self) -> Iterator[Path]:
        """Paths of absent values that may be set, such as a loss term; override it."""
        for name in type(self).model_fields:
            for key, part in _parts(getattr(self, name)):
                for path in part.optional_paths():
                    yield (name, *key, *path)

    def changed(self: Tree, changes: Mapping[str, Any]) -> Tree:
        """Return a copy with values by dotted path (see the module); a nested mapping is several.

        Raises:
            SettingsError: With the nearest valid path, for one that is unknown or that fits several
                fields equally well, and for a bad value.
        """
        tree = self
        flat = self.flattened(changes)
        for path in sorted(flat, key=_methods_first):
            for full_path in tree.resolve(path):
                tree = tree.with_value(full_path, flat[path])
        return tree

    def flattened(self, changes: Mapping[str, Any], before: Path = ()) -> dict[str, Any]:
        """Nested changes by dotted path, where a mapping goes into configurations."""
        flat: dict[str, Any] = {}
        for name, value in changes.items():
            path = (*before, *name.split("."))
            inside = isinstance(value, Mapping) and any(
                _parts(old) and not isinstance(old, Mapping)
                for full_path, old, _ in self.walk()
                if _fits(path, full_path)
            )
            flat |= self.flattened(value, path) if inside else {".".join(path): value}
        return flat

    def fitting(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Those of `changes` that fit, by full path.

        A change that fits several settings equally well (the steps of both members of "uc") goes to
        each of them. Where two changes mean the same setting, the longer path counts:
        "towers.steps" against the "steps" of a sum. A hyperparameter does not add its term.
        """
        flat = self.flattened(changes)
        chosen: dict[Path, Any] = {}
        for path in sorted(flat, key=lambda path: path.count(".")):
            for full_path, field in self.matches(path).items():
                term, name = full_path[:-1], full_path[-1]
                optional = field is None and name != "weight" and term[-2:-1] == ("terms",)
                if not optional or {term, term[:-1]} & chosen.keys():
                    chosen[full_path] = flat[path]
        return {".".join(full_path): value for full_path, value in chosen.items()}

    def value_at(self, path: Path) -> Any:
        """The value at a full path."""
        value: Any = self
        for step in path:
            if isinstance(value, Config):
                value = getattr(value, step)
            else:
                value = value[int(step)] if isinstance(value, tuple) else value[step]
        return value

    def takes(self, path: str) -> bool:
        """Whether a dotted path fits any field."""
        return bool(self.matches(path))

    def resolve(self, path: str) -> list[Path]:
        """Full paths of the settings that a dotted path means, or the errors of `changed`."""
        matches = self.matches(path)
        if not matches:
            hint = nearest(path, self.names())
            raise SettingsError(f"unknown setting {path!r}; {hint or 'cselab settings lists them'}")
        names = sorted({".".join(_named(place)).removeprefix("method.") for place in matches})
        if len(names) > 1 and not all(map(is_shared, matches.values())):
            raise SettingsError(f"{path!r} fits several settings; write {' or '.join(names)}")
        return list(matches)

    def matches(self, path: str) -> dict[Path, FieldInfo | None]:
        """The shallowest fields that a dotted path fits, by full path; of shared ones, all.

        The fields' names may differ. An absent value (`optional_paths`) has no field.
        """
        wanted = tuple(path.split("."))
        fields = {place: field for place, _, field in self.walk() if _fits(wanted, place)}
        if not fields and len(wanted) > 1:
            absent = (place for place in self.optional_paths() if place[-len(wanted) :] == wanted)
            fields = dict.fromkeys(absent)
        if all(map(is_shared, fields.values())):
            return fields
        least = min(len(_named(place)) for place in fields)
        return {place: field for place, field in fields.items() if len(_named(place)) == least}

    def names(self) -> set[str]:
        """Short and dotted names of all fields, for messages."""
        full = [_named(place) for place, _, _ in self.walk()] + list(self.optional_paths())
        return {".".join(place[start:]) for place in full for start in range(len(place))}

    def with_value(self: Tree, place: Path, value: Any) -> Tree:
        """Return a copy with the value at a full path, every configuration on the way validated
        again. A bare value in the place of a configuration sets its `main` field."""
        name, *rest = place
        fields = {key: getattr(self, key) for key in type(self).model_fields}
        fields[name] = _replaced(fields[name], tuple(rest), value)
        return type(self).checked(**fields)


def shared(default: Any, **options: Any) -> Any:
    """A field (with pydantic's options) that belongs to a whole run: a short path sets it in every
    node that has it."""
    return Field(default, json_schema_extra={"shared": True}, **options)


def read_value(text: str) -> Any:
    """Read a value typed on a command line: as JSON where it is JSON, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


@functools.cache
def field_words() -> frozenset[str]:
    """Names that a step of a setting's path can have: fields and terms, read from the sources of
    the library, for importing them takes seconds."""
    words = {"profile"}
    for pattern in ("data/settings.py", "experiments/run.py", "methods/**/*.py"):
        for path in PACKAGE.glob(pattern):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.AnnAssign):
                    words.add(ast.unparse(node.target))
                elif isinstance(node, ast.FunctionDef):
                    for mark in map(ast.unparse, node.decorator_list):
                        if found := re.match(r"(?:shared_)?term\b(?:\('(\w+)')?", mark):
                            words.add(found[1] or node.name)
    return frozenset(words)


def check_words(names: Iterable[str], own: Iterable[str] = ()) -> None:
    """Raise SettingsError, with the nearest name, for a setting with a step that no method has.

    Quick, for a spelling; `resolve` knows which method has which. `own`: further valid names.
    """
    words = field_words().union(own)
    for name in names:
        steps = name.split(".")
        for i, step in enumerate(steps):
            if not (step.isdigit() or step in words):
                near = [".".join([*steps[:i], word, *steps[i + 1 :]]) for word in words]
                hint = nearest(name, near) or "cselab settings lists them"
                raise SettingsError(f"unknown setting {name!r}; {hint}")


def _explained(error: ValidationError) -> str:
    """pydantic's first complaint in one line: the field, the expected value, the value."""
    first = error.errors()[0]
    message, where = first["msg"].removeprefix("Value error, "), ".".join(map(str, first["loc"]))
    if not where:
        return message
    if first["type"] == "value_error":  # ours, which name the value
        return f"{where}: {message}"
    if first["type"] == "extra_forbidden":
        return f"{where}: unknown; cselab settings lists the settings"
    if not (known := EXPECTED.get(first["type"])):
        return f"{where}: {message}"
    expected = known.format(where=where, **first.get("ctx", {}))
    text = f"{where}: expected {expected}, got {first['input']!r}"
    if first["type"] == "literal_error":
        valid = expected.replace(" or ", ", ").replace("'", "").split(", ")
        hint = nearest(str(first["input"]), valid)
        text += f"; {hint}" if hint else ""
    return text


def is_off(value: Any) -> bool:
    """Whether a value is None or one of `OFF`."""
    return value is None or (isinstance(value, str) and value.lower() in OFF)


def _off(kind: Any, value: Any) -> Any:
    """What switches a field of type `kind` off; `value` if nothing does."""
    if "none" in get_args(kind):  # a Literal
        return "none"
    return None if type(None) in get_args(kind) else value


@functools.lru_cache(maxsize=256)
def _docstrings(kind: type[Config]) -> dict[str, str]:
    """Texts below the fields of a class and its bases; pydantic would read them at every start."""
    texts: dict[str, str] = {}
    for base in reversed(kind.__mro__[: kind.__mro__.index(Config)]):
        with contextlib.suppress(OSError, TypeError, SyntaxError):  # a class without source
            written: Any = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
            for field, after in itertools.pairwise([*written.body, None]):
                if isinstance(field, ast.AnnAssign):  # another default has another source
                    words = after.value.value if is_docstring(after) else ""
                    texts[ast.unparse(field.target)] = " ".join(words.split())
    return texts


def is_docstring(statement: ast.stmt | None) -> bool:
    """Whether a statement is a docstring, of a function or of a field."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _methods_first(path: str) -> tuple[bool, int]:
    """Sort key: methods first, for other settings depend on them; of each, the shallowest."""
    steps = path.split(".")
    return steps[-1] != "method", len(steps)


def _parts(value: Any) -> list[tuple[Path, Config]]:
    """Configurations right inside a value, with their keys in it."""
    if isinstance(value, Config):
        return [((), value)]
    if isinstance(value, tuple):
        return [((str(i),), item) for i, item in enumerate(value) if isinstance(item, Config)]
    if isinstance(value, dict):  # of an abstract Mapping, this takes ten times as long
        return [((key,), item) for key, item in value.items() if isinstance(item, Config)]
    return []


def _named(place: Path) -> Path:
    """A path without the numbers of tuples' members."""
    return tuple(step for step in place if not step.isdigit())


def _fits(wanted: Path, place: Path) -> bool:
    """Whether `wanted` is `place` with steps left out, its last step kept."""
    if wanted[-1] != place[-1]:  # most places, so first
        return False
    steps = iter(place if any(step.isdigit() for step in wanted) else _named(place))
    return all(step in steps for step in wanted)


def is_shared(field: FieldInfo | None) -> bool:
    """Whether a field is one of `shared`."""
    extra = field.json_schema_extra if field else None
    return isinstance(extra, dict) and bool(extra.get("shared"))


def _replaced(old: Any, place: Path, value: Any) -> Any:
    """`old`, a configuration, a tuple or a mapping of some, with a value inside replaced."""
    if not place:
        return _merged(old, value)
    if isinstance(old, Config):
        return old.with_value(place, value)
    first, rest = place[0], place[1:]
    if isinstance(old, tuple):
        members = list(old)
        members[int(first)] = _replaced(members[int(first)], rest, value)
        return tuple(members)
    if first in old:
        return {**old, first: _replaced(old[first], rest, value)}
    return {**old, first: {rest[0]: value} if rest else value}


def _merged(old: Any, value: Any) -> Any:
    """`value`; a bare one sets the main field of a configuration, or of each of a tuple's."""
    if isinstance(old, Config) and old.main and isinstance(value, (str, int, float)):
        return old.with_value((old.main,), value)
    if isinstance(old, tuple) and old and all(isinstance(one, Config) and one.main for one in old):
        if isinstance(value, str):
            return tuple(_merged(one, value) for one in old)
        if isinstance(value, Sequence) and len(value) == len(old):
            return tuple(map(_merged, old, value))
    return value
