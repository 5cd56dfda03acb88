"""Configurations: frozen trees of values, and changes to them by dotted path.

A path names fields from the root to a value, and may leave out any of them: `towers.temperature`,
`schedule.steps`, `steps`. It means the field nearest to the root; a path into a tuple of
configurations sets the field in each member, `towers.0.temperature` in the first alone. A field
that is marked as shared (`shared(...)`: the backbone, bfloat16) is set wherever it occurs.
"""

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.fields import FieldInfo

from cselab.errors import SettingsError, nearest

Path = tuple[str, ...]
Index = dict[str, dict[Path, FieldInfo | None]]
"""Fields by their last step and full path; a member of a tuple or mapping is no field: None."""
Tree = TypeVar("Tree", bound="Config")
PROFILE_NAMES = ("tiny", "small", "paper")
"""`cselab.experiments.profiles` has what they are; here they can be read without torch."""


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
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        validate_default=True,
        use_attribute_docstrings=True,
    )
    main: ClassVar[str]
    """Of a member of a mapping, such as a loss term: the field that a bare value sets."""

    @field_validator("*", mode="before")
    @classmethod
    def _path_as_text(cls, value: Any) -> Any:
        """The text of a path; a field that takes a path makes one of it again."""
        return os.fspath(value) if isinstance(value, os.PathLike) else value

    def paths(self) -> Iterator[tuple[Path, FieldInfo | None]]:
        """Every value of the tree by its full path, with the field it is."""
        for name, field in type(self).model_fields.items():
            yield (name,), field
            for path, inner in _inside(getattr(self, name)):
                yield (name, *path), inner

    def leaves(self) -> Iterator[tuple[Path, Any, str]]:
        """Every setting by its full path, with its value and where that comes from."""
        for place, field in self.paths():
            value = self.value_at(place)
            if not _parts(value):
                yield place, value, " ".join(((field and field.description) or "").split())

    def optional_paths(self) -> Iterator[Path]:
        """Paths of values that are not there and may be set, such as a loss term; override it."""
        for name in type(self).model_fields:
            for key, part in _parts(getattr(self, name)):
                for path in part.optional_paths():
                    yield (name, *key, *path)

    def changed(self: Tree, changes: Mapping[str, Any]) -> Tree:
        """The same configuration with `changes`, values by dotted path; a nested mapping is paths.

        Args:
            changes: Values by path (see the module).

        Raises:
            SettingsError: With the nearest valid path, for one that is unknown or that fits several
                fields equally well, and for a bad value.

        Examples:
            >>> from cselab.config import Config
            >>> class Optimiser(Config):
            ...     learning_rate: float = 1e-3
            >>> class Run(Config):
            ...     steps: int = 10
            ...     optimiser: Optimiser = Optimiser()
            >>> Run().changed({"learning_rate": 0.1}).optimiser.learning_rate
            0.1
            >>> Run().changed({"optimiser": {"learning_rate": 0.2}, "steps": 5})
            Run(steps=5, optimiser=Optimiser(learning_rate=0.2))
        """
        found = self
        flat = self.flattened(changes)
        for path in sorted(flat, key=_order):
            value = flat[path]
            for place in found.places(path):
                found = found.with_value(place, value)
        return found

    def flattened(self, changes: Mapping[str, Any], before: Path = ()) -> dict[str, Any]:
        """A nested mapping of changes as one of dotted paths, where it goes into configurations."""
        flat: dict[str, Any] = {}
        for name, value in changes.items():
            path = (*before, *name.split("."))
            if isinstance(value, Mapping) and self._holds_configs(path):
                flat |= self.flattened(value, path)
            else:
                flat[".".join(path)] = value
        return flat

    def _holds_configs(self, path: Path) -> bool:
        values = map(self.value_at, self.present(path))
        return any(_parts(value) for value in values if not isinstance(value, Mapping))

    def value_at(self, path: Path) -> Any:
        """The value at a full path."""
        value: Any = self
        for step in path:
            value = (
                getattr(value, step)
                if isinstance(value, Config)
                else value[int(step)]
                if isinstance(value, tuple)
                else value[step]
            )
        return value

    def index(self) -> Index:
        """The tree's fields, to look up many paths in one walk."""
        fields: Index = {}
        for place, config, is_member in self._configs():
            if is_member:
                fields.setdefault(place[-1], {})[place] = None
            for name, field in type(config).model_fields.items():
                fields.setdefault(name, {})[(*place, name)] = field
        return fields

    def present(self, path: Path, index: Index | None = None) -> dict[Path, FieldInfo | None]:
        """Fields of the tree that a path fits, by their full paths.

        Args:
            path: Steps of the path.
            index: The tree's `index`, if it is known.
        """
        fields = (self.index() if index is None else index).get(path[-1], {})
        return {place: field for place, field in fields.items() if _fits(path, place)}

    def _configs(
        self, place: Path = (), *, is_member: bool = False
    ) -> Iterator[tuple[Path, "Config", bool]]:
        """This configuration and all inside of it, by their full paths; of each, whether it is a
        member of a tuple or of a mapping."""
        yield place, self, is_member
        for name, value in self:
            for key, part in _parts(value):
                yield from part._configs((*place, name, *key), is_member=bool(key))

    def _matches(self, path: Path, index: Index | None = None) -> dict[Path, FieldInfo | None]:
        found = self.present(path, index)
        if not found and len(path) > 1:  # a term that is not there yet is named in full
            optional = [place for place in self.optional_paths() if _fits(path, place)]
            found = dict.fromkeys(place for place in optional if place[-len(path) :] == path)
        return found

    def takes(self, path: str) -> bool:
        """Whether a dotted path fits any field."""
        return bool(self._matches(tuple(path.split("."))))

    def places(self, path: str) -> list[Path]:
        """Full paths of the fields that a dotted path means.

        Raises:
            SettingsError: As `changed`.
        """
        index = self.index()
        near = self.nearest_places(path, index)
        if not near:
            hint = nearest(path, self.names())
            raise SettingsError(f"unknown setting {path!r}; {hint or 'cselab settings lists them'}")
        if len(near) > 1 and all(_is_shared(self.present(place, index)[place]) for place in near):
            return near
        fields = sorted({".".join(_named(place)).removeprefix("method.") for place in near})
        if len(fields) > 1:
            raise SettingsError(f"{path!r} fits several settings; write {' or '.join(fields)}")
        return near

    def nearest_places(self, path: str, index: Index | None = None) -> list[Path]:
        """Full paths of the fields nearest to the root that a dotted path fits.

        Their names may differ. Of shared fields it is all of them; where the path fits none, it is
        none.

        Args:
            path: Dotted path.
            index: The tree's `index`, if it is known.
        """
        found = self._matches(tuple(path.split(".")), index)
        if all(_is_shared(field) for field in found.values()):
            return list(found)
        least = min(len(_named(place)) for place in found)
        return [place for place in found if len(_named(place)) == least]

    def names(self) -> set[str]:
        """Short and dotted names of all fields, for messages."""
        full = [_named(place) for place, _ in self.paths()] + list(self.optional_paths())
        return {".".join(place[start:]) for place in full for start in range(len(place))}

    def with_value(self: Tree, place: Path, value: Any) -> Tree:
        """The tree with one value, every node on the way validated again."""
        name, *rest = place
        old = getattr(self, name)
        if rest:
            value = _replaced(old, tuple(rest), value)
        fields = {key: getattr(self, key) for key in type(self).model_fields} | {name: value}
        try:
            return type(self)(**fields)
        except ValidationError as error:
            raise SettingsError(explained(error)) from None


def shared(default: Any, **options: Any) -> Any:
    """A field that belongs to a whole run: a short path sets it in every node that has it.

    Args:
        default: Default of the field.
        **options: Options of pydantic's `Field`.

    Examples:
        >>> from cselab.config import Config, shared
        >>> class Tower(Config):
        ...     backbone: str = shared("tiny-bert")
        >>> class Twin(Config):
        ...     one: Tower = Tower()
        ...     two: Tower = Tower()
        >>> Twin().changed({"backbone": "plain-bert"})
        Twin(one=Tower(backbone='plain-bert'), two=Tower(backbone='plain-bert'))
    """
    return Field(default, json_schema_extra={"shared": True}, **options)


def explained(error: ValidationError) -> str:
    """pydantic's first complaint in one line: the field, what was expected, what it got."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"]) or "settings"
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return message
    if first["type"] == "value_error":  # ours, which name the value
        return f"{where}: {message}"
    said = f"{where}: {message} (got {first['input']!r})"
    if first["type"] == "literal_error":
        valid = first["ctx"]["expected"].replace(" or ", ", ").replace("'", "").split(", ")
        hint = nearest(str(first["input"]), valid)
        said += f"; {hint}" if hint else ""
    return said


def read_value(text: str) -> Any:
    """What a value typed on a command line means: JSON where it is JSON, else the text itself.

    Examples:
        >>> from cselab.config import read_value
        >>> read_value("0.1"), read_value("parallel"), read_value('["nce", "icnce"]')
        (0.1, 'parallel', ['nce', 'icnce'])
    """
    try:
        return json.loads(text)
    except ValueError:
        return {"True": True, "False": False, "None": None}.get(text, text)


def _order(path: str) -> tuple[bool, int]:
    """Methods first, for other settings depend on them; of each, what is nearer to the root."""
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


def _inside(value: Any) -> Iterator[tuple[Path, FieldInfo | None]]:
    for key, part in _parts(value):
        if key:
            yield key, None
        for path, field in part.paths():
            yield (*key, *path), field


def _named(place: Path) -> Path:
    """A path without the numbers of tuples' members."""
    return tuple(step for step in place if not step.isdigit())


def _fits(wanted: Path, place: Path) -> bool:
    """Whether `wanted` is `place` with steps left out, its last step kept."""
    if not any(step.isdigit() for step in wanted):
        if place[-1].isdigit():  # a member of a tuple is no field
            return False
        place = _named(place)
    if not place or wanted[-1] != place[-1]:
        return False
    steps = iter(place)
    return all(step in steps for step in wanted)


def _is_shared(field: FieldInfo | None) -> bool:
    extra = field.json_schema_extra if field else None
    return isinstance(extra, dict) and bool(extra.get("shared"))


def _replaced(old: Any, place: Path, value: Any) -> Any:
    """`old`, a configuration, a tuple or a mapping of some, with a value inside replaced."""
    if isinstance(old, Config):
        return old.with_value(place, value)
    first, *rest = place
    if isinstance(old, tuple):
        members = list(old)
        members[int(first)] = _replaced(members[int(first)], tuple(rest), value) if rest else value
        return tuple(members)
    entry = old.get(first)
    if not rest and isinstance(entry, Config) and not isinstance(value, (Mapping, Config)):
        entry = entry.with_value((type(entry).main,), value)
    elif rest and entry is not None:
        entry = _replaced(entry, tuple(rest), value)
    else:
        entry = {rest[0]: value} if rest else value
    return {**old, first: entry}
