"""A grid of runs, declared in TOML or on the command line.

    profile = "tiny"                      # at the top: what all runs share
    seeds = "1-4"                         # or a list
    measures = ["sts", "phenomena"]       # cselab.sweep.measures; all but "transfer" by default

    [[runs]]
    methods = ["simcse", "jtcse"]         # names of cselab.systems

    [[runs]]
    methods = ["jtcse"]
    label = "JTCSE, {caels} CAELs"        # what the report calls it; the method and what varies, by default
    caels = [1, 2, 3, 6]                  # any setting: a list is an axis
    terms = ["nce,icnce", "nce,ictm"]     # a setting of several names is one text, with commas

    [[runs]]
    notebooks = ["03"]                    # notebooks, whose scores are those they record

A block is the product of its axes.
"""

import itertools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cselab.batch.parameters import SETTINGS, read_parameters
from cselab.batch.runner import find_notebooks
from cselab.errors import SettingsError, suggest
from cselab.settings import Settings
from cselab.sweep.measures import DEFAULT, MEASURES
from cselab.systems import system

OWN = ("methods", "notebooks", "seeds", "label", "profile")
"""Keys of a block that are no settings."""


@dataclass(frozen=True)
class Run:
    """One run: a system by name, or a notebook by path, with its settings, the seed among them; given: what the grid said of them."""

    label: str
    what: str
    settings: Settings
    measures: tuple[str, ...] = DEFAULT
    given: tuple[tuple[str, Any], ...] = ()

    @property
    def notebook(self) -> Path | None:
        return Path(self.what) if self.what.endswith(".ipynb") else None


def read_grid(path: Path) -> dict[str, Any]:
    """A TOML file's grid, for `expand`. Raises SettingsError for an unreadable one."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"no grid {path} ({error.strerror}); expected a TOML file with methods and seeds") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None


def expand(grid: Mapping[str, Any], notebooks: Path) -> list[Run]:
    """The runs of a grid, as TOML gives it.

    Raises SettingsError, naming the nearest valid name, for an unknown key, method, measure or setting; for no run at all; and for two
    runs of one label and seed that differ.
    """
    shared = dict(grid)
    blocks, measures = shared.pop("runs", [{}]), _listed(shared.pop("measures", DEFAULT))
    measures = tuple(part.strip() for measure in measures for part in str(measure).split(","))
    for measure in measures:
        if measure not in MEASURES:
            raise SettingsError(f"unknown measure {measure!r}; {suggest(measure, MEASURES)}")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SettingsError("runs: expected blocks that begin with [[runs]]")
    runs = [run for block in blocks for run in _block({**shared, **block}, measures, notebooks)]
    if not runs:
        raise SettingsError('the grid has no run: give methods = ["simcse"] or notebooks = ["03"], and seeds = "1-4"')
    names: dict[tuple[str, int], Run] = {}
    for run in runs:
        if names.setdefault((run.label, run.settings.seed), run) != run:
            raise SettingsError(
                f"two runs are called {run.label!r} and differ; give one block a label of its own, with {{setting}} in it"
            )
    return list(names.values())


def parse_seeds(given: Any) -> list[int]:
    """`[1, 2]`, `7`, `"1-4"` or `"1,3,8-10"`. Raises SettingsError for anything else."""
    parts = given if isinstance(given, (list, tuple)) else [part.strip() for part in str(given).split(",")]
    seeds: list[int] = []
    for part in parts:
        first, dash, last = str(part).partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise SettingsError(f'seeds: expected numbers such as [1, 2] or "1-4", got {given!r}')
        if int(last or first) < int(first):
            raise SettingsError(f'seeds: {part!r} runs backwards; write it as "{last}-{first}"')
        if int(last or first) >= 2**31:
            raise SettingsError(f"seeds: {part} is out of range; a seed is below {2**31}")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def _block(block: dict[str, Any], measures: tuple[str, ...], notebooks: Path) -> list[Run]:
    known = [*OWN, *Settings.model_fields]
    for key in block:
        if key not in known:
            raise SettingsError(f"grid: unknown key {key!r}; {suggest(key, [*known, 'measures', 'runs'])}")
    whats = _listed(block.pop("methods", ()))
    for name in whats:
        system(name)
    if named := [str(name) for name in _listed(block.pop("notebooks", ()))]:
        whats += [str(path) for path in find_notebooks(notebooks, named)]
    label, profile = block.pop("label", None), block.pop("profile", "tiny")
    for key, value in (("label", label or ""), ("profile", profile)):
        if not isinstance(value, str):
            raise SettingsError(f"grid: {key} takes one text, got {value!r}; write it in quotes")
    if "seeds" in block and "seed" in block:
        raise SettingsError(f"seed={block['seed']} and seeds={block['seeds']!r} are both given; give one of them")
    axes = {"seed": parse_seeds(block.pop("seeds", [])) or [block.pop("seed", Settings.model_fields["seed"].default)]}
    axes |= {name: _listed(value) for name, value in block.items()}
    varied = [name for name, values in axes.items() if len(values) > 1 and name != "seed"]
    runs = []
    for what, *values in itertools.product(whats, *axes.values()):
        given = dict(zip(axes, values, strict=True))
        settings = Settings.of(profile, **given)
        name = Path(what).stem
        if what.endswith(".ipynb"):
            _taken(Path(what), given)
        text = _called(label, name, given) if label else ", ".join([name, *(f"{key}={given[key]}" for key in varied)])
        runs.append(Run(text, what, settings, measures, (*given.items(), ("profile", profile))))
    return runs


def _called(label: str, name: str, given: Mapping[str, Any]) -> str:
    try:
        return label.format(**given, method=name)
    except KeyError as error:
        raise SettingsError(
            f"label {label!r}: {error} is neither a setting of its block nor 'method'; "
            f"use one of {', '.join([*given, 'method'])}"
        ) from None
    except (IndexError, ValueError, AttributeError, TypeError) as error:
        raise SettingsError(f"label {label!r}: {error}; write a setting of its block as {{caels}}") from None


def _taken(notebook: Path, given: Mapping[str, Any]) -> None:
    declared = read_parameters(notebook)
    for name in given:
        if not {name, SETTINGS} & declared.keys():
            raise SettingsError(f"notebook {notebook.stem} has no parameter {name!r}; {suggest(name, declared)}")


def _listed(given: Any) -> list:
    return list(given) if isinstance(given, (list, tuple)) else [given]
