"""A grid of runs, declared in TOML or on the command line.

    profile = "english"                   # at the top: what all runs share
    seeds = "1-4"                         # or a list
    measures = ["sts", "changes"]         # by default scores, changes, geometry, energy
    modules = ["my_method.py"]            # files with methods of your own

    [[runs]]
    methods = ["simcse", "jtcse"]

    [[runs]]
    methods = ["jtcse"]
    label = "JTCSE, {caels} CAELs"        # what the report calls it; the method and what varies
    caels = [1, 2, 3, 6]                  # any setting: a list is an axis
    towers.temperature = 0.1              # of the towers that it starts from
    terms = [["nce", "icnce"], ["nce", "ictm"]]   # a list of lists is an axis of lists

    [[runs]]
    notebooks = ["03"]                    # notebooks, whose scores are those they record

A block is the product of its axes. A setting at the top is for the methods that have it, one in a
block has to fit the block's methods. `terms = { nce = 1, ictm = 0.1 }` are all terms; one weight is
written in quotes, `"terms.ictm" = 0.1`: to TOML, `terms.ictm = 0.1` is the table of all terms.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cselab.config import DEFAULT_PROFILE
from cselab.errors import SettingsError, nearest, suggest
from cselab.experiments.measures import DEFAULT, MEASURES
from cselab.experiments.run import configure, known_settings, set_up, setting_names
from cselab.methods import load_method_file, registered
from cselab.methods.registry import registered_by
from cselab.paths import absolute, expanded
from cselab.training.distributed import rank_and_world

OWN = ("methods", "notebooks", "seeds", "seed", "label", "profile", "preset")
"""Keys of a block that are no settings of a method."""


FindNotebook = Callable[[str], tuple[Path, Collection[str]]]
"""Find a notebook by number, name or path: its file and the names of its parameters."""


@dataclass(frozen=True)
class Run:
    """One run: a method's configuration, or a notebook with parameters.

    Attributes:
        label: Name of the run in reports.
        method: A registered name, or the path of a notebook.
        config: A `RunConfig`; of a notebook a `Setup`.
        parameters: Names and values of a notebook's parameters, as typed.
    """

    label: str
    method: str
    config: Any
    parameters: tuple[tuple[str, str], ...] = ()
    measures: tuple[str, ...] = DEFAULT

    @property
    def seed(self) -> int:
        """Seed of the whole tree."""
        return self.config.seed

    @property
    def notebook(self) -> Path | None:
        """The notebook's path, if the run is one."""
        return Path(self.method) if self.method.endswith(".ipynb") else None


def read_grid(path: Path) -> dict[str, Any]:
    """A TOML file's grid, for `expand`."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"no grid {path} ({error.strerror}); expected a TOML file with methods and seeds"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is no TOML: {error}") from None


def module_files(grid: Mapping[str, Any], folder: Path) -> list[Path]:
    """The files with methods that a grid names, relative to its folder."""
    return [absolute(folder / expanded(str(name))) for name in _listed(grid.get("modules", ()))]


def expand(
    grid: Mapping[str, Any],
    *,
    modules: Sequence[Path] = (),
    find_notebook: FindNotebook | None = None,
) -> list[Run]:
    """All runs of a grid, in order, each label and seed once; files with methods are loaded first.

    Raises:
        SettingsError: For an unknown key, method, setting or measure (with the nearest), for bad
            values, for two different runs under one label and seed, and for one under two labels,
            of which a store would keep one.
    """
    for module in modules:
        load_method_file(module)
    top = {key: value for key, value in grid.items() if key != "modules"}
    blocks, measures = top.pop("runs", [{}]), read_measures(top.pop("measures", DEFAULT))
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SettingsError("runs: expected blocks that begin with [[runs]]")
    shared, flat = _flat(top), [_flat(block) for block in blocks]
    if any({"outputs", "machine.outputs"} & keys.keys() for keys in (shared, *flat)):
        raise SettingsError("grid: outputs is the sweep's, not a run's; give --outputs")
    _check_texts(shared)
    _check_keys(shared, shared.get("profile") or DEFAULT_PROFILE)
    runs = [run for block in flat for run in _block(block, shared, measures, find_notebook)]
    if not runs:
        raise SettingsError(
            'the grid has no run: give methods = ["simcse"] or notebooks = ["03"], and '
            'seeds = "1-4"'
        )
    _mention_unused(modules, runs)
    return _each_once(runs)


def _each_once(runs: Sequence[Run]) -> list[Run]:
    """Runs without repeated ones; refuse one label of two runs, and two labels of one."""
    names: dict[tuple[str, int], Run] = {}
    labels: dict[tuple[object, ...], str] = {}
    for run in runs:
        same = (run.method, run.config.model_dump_json(), run.parameters)
        if (first := labels.setdefault(same, run.label)) != run.label:
            raise SettingsError(
                f"{first!r} and {run.label!r} are the same run: they differ in no setting that it "
                "reads, or another setting overrides it; leave one out"
            )
        if names.setdefault((run.label, run.seed), run) != run:
            raise SettingsError(
                f"two runs are called {run.label!r} and differ; give one block a label of its own, "
                "with {setting} in it"
            )
    return list(names.values())


def one_run(method: str, settings: Mapping[str, Any], modules: Sequence[Path] = ()) -> Run:
    """The run of a method; files with methods are loaded first.

    Args:
        settings: By dotted path; also profile, preset, seed, measures and label.
    """
    for module in modules:
        load_method_file(module)
    settings = dict(settings)
    seeds = parse_seeds(settings.pop("seeds", settings.pop("seed", 42)))
    if len(seeds) > 1:
        raise SettingsError(
            f"train does one run, these settings are {len(seeds)}; `cselab sweep` does several"
        )
    measures = read_measures(settings.pop("measures", DEFAULT))
    profile, preset = settings.pop("profile", DEFAULT_PROFILE), settings.pop("preset", None)
    label = str(settings.pop("label", method))
    config = configure(method, profile, seed=seeds[0], preset=preset, changes=settings)
    return Run(label, method, config, measures=measures)


def read_measures(value: Any) -> tuple[str, ...]:
    """Names of measures, from a list or from text with commas."""
    parts = (part.strip() for text in _listed(value) for part in str(text).split(","))
    measures = tuple(dict.fromkeys(parts))
    if not measures:
        raise SettingsError('measures is empty; leave it out, or give measures = ["sts"]')
    for measure in measures:
        if measure not in MEASURES:
            raise SettingsError(f"unknown measure {measure!r}; {suggest(measure, MEASURES)}")
    return measures


def _mention_unused(modules: Sequence[Path], runs: Sequence[Run]) -> None:
    """Say which files have no method that is run; of several processes, in the first."""
    nodes = [run.config.method for run in runs if not run.notebook]
    used = set()
    for node in nodes:
        used.add(node.method)
        nodes += node.parts
    for module in modules:
        names = registered_by(module)
        if not used & set(names) and not rank_and_world()[0]:
            print(f"{module.name}: no run uses {', '.join(names)}; name it among the methods")


def parse_seeds(value: Any) -> list[int]:
    """Seeds as a list, from `[1, 2]`, `7`, `"1-4"` or `"1,3,8-10"`."""
    parts = value if isinstance(value, (list, tuple)) else str(value).split(",")
    seeds: list[int] = []
    for part in (str(part).strip() for part in parts):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise SettingsError(f'seeds: expected numbers such as [1, 2] or "1-4", got {value!r}')
        if int(last or first) < int(first):
            raise SettingsError(f'seeds: {part!r} runs backwards; write it as "{last}-{first}"')
        if int(last or first) >= 2**31:
            raise SettingsError(f"seeds: {part} is out of range; a seed is below {2**31}")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def _flat(block: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """TOML's tables of a dotted key as dotted paths; `terms` is one value."""
    flat: dict[str, Any] = {}
    for name, value in block.items():
        if isinstance(value, dict) and name != "terms":
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def _block(
    block: dict[str, Any],
    top: dict[str, Any],
    measures: tuple[str, ...],
    find_notebook: FindNotebook | None,
) -> list[Run]:
    """The product of a block's axes, for each of its methods and notebooks."""
    own = _own_keys(block, top)
    profile, preset = own["profile"] or DEFAULT_PROFILE, own["preset"]
    defaults = {key: _listed(value) for key, value in top.items() if key not in (*OWN, *block)}
    axes = {key: _listed(value) for key, value in block.items() if key not in OWN}
    seeds = parse_seeds(next((own[key] for key in ("seeds", "seed") if own[key] is not None), 42))
    varied = [key for key, values in (axes | defaults).items() if len(values) > 1]
    notebooks = [str(name) for name in _listed(own["notebooks"] or ())]
    if notebooks:
        _check_keys(axes, profile)
        if find_notebook is None:
            raise SettingsError(f"notebooks={notebooks}: this grid takes methods alone")
    points = [
        (dict(zip((*defaults, *axes), values, strict=True)), seed)
        for *values, seed in itertools.product(*defaults.values(), *axes.values(), seeds)
    ]
    runs: list[Run] = []

    def add(name: str, method: str, config: Any, point: dict[str, Any], **notebook: Any) -> None:
        label = _label(own["label"], name, {**point, "seed": config.seed})
        read = [key for key in varied if notebook or config.takes(key)]
        label = label or ", ".join([name, *(f"{key}={_shown(point[key])}" for key in read)])
        runs.append(Run(label, method, config, measures=measures, **notebook))

    for method, (point, seed) in itertools.product(_listed(own["methods"] or ()), points):
        shared, changes = ({key: point[key] for key in keys} for keys in (defaults, axes))
        config = configure(
            method, profile, seed=seed, preset=preset, defaults=shared, changes=changes
        )
        add(method, method, config, point)
    for name, (point, seed) in itertools.product(notebooks, points):
        assert find_notebook is not None  # else it has raised
        path, declared = find_notebook(name)
        setup = set_up(profile, seed=seed, preset=preset, settings=point)
        settings = {**point, "seed": seed, "preset": preset, "profile": profile}
        parameters = _notebook_parameters(path, declared, settings)
        add(path.stem, str(path), setup, point, parameters=parameters)
    return runs


def _own_keys(block: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """A block's keys that are no settings, from itself or the top; None where neither has them."""
    own = {key: block.get(key, top.get(key)) for key in OWN}
    for one, other in (("seed", "seeds"), ("seeds", "seed")):
        if one in block and other not in block:
            own[other] = None
    _check_texts(own)
    if own["seeds"] is not None and own["seed"] is not None:
        raise SettingsError(
            f"seed={own['seed']} and seeds={own['seeds']!r} are both given; give one of them"
        )
    for name in _listed(own["methods"] or ()):
        registered(name)
    return own


def _check_texts(keys: Mapping[str, Any]) -> None:
    """Refuse an axis of what a whole block has one of."""
    for key in ("label", "profile", "preset"):
        if not isinstance(keys.get(key) or "", str):
            raise SettingsError(
                f"grid: {key} takes one text, got {keys[key]!r}; write it in quotes"
            )


def _check_keys(axes: Mapping[str, Any], profile: str) -> None:
    """Refuse settings that fit no method."""
    first = {k: next(iter(_listed(axis)), None) for k, axis in axes.items() if k not in OWN}
    known = known_settings(first, profile)
    for key in first:
        if key not in known:
            names = [*setting_names(profile), *OWN, "measures", "modules", "runs"]
            hint = nearest(key, names) or "cselab settings lists them"
            raise SettingsError(f"grid: unknown key {key!r}; {hint}")


def _label(label: str | None, name: str, point: Mapping[str, Any]) -> str:
    """The label with the values of the settings that it names, such as `{caels}`."""
    values = {**{key: _shown(value) for key, value in point.items()}, "method": name}

    def value(match: re.Match) -> str:
        if match[1] not in values:
            raise SettingsError(
                f"label {label!r}: {match[1]!r} is neither a setting of its block nor 'method'; "
                f"use one of {', '.join([*point, 'method'])}"
            )
        return values[match[1]]

    return re.sub(r"\{([^{}]*)\}", value, label or "")


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return ",".join(name if w == 1 else f"{name}:{w}" for name, w in value.items())
    return str(value)


def _notebook_parameters(
    notebook: Path, declared: Collection[str], settings: Mapping[str, Any]
) -> tuple[tuple[str, str], ...]:
    """Names and values for the notebook's cell, as typed on a command line."""
    settings = {name: value for name, value in settings.items() if value is not None}
    for name in settings:
        if not {name, "settings"} & set(declared):
            raise SettingsError(
                f"notebook {notebook.stem} has no parameter {name!r}; {suggest(name, declared)}"
            )
    return tuple((n, v if isinstance(v, str) else json.dumps(v)) for n, v in settings.items())


def _listed(value: Any) -> list:
    return list(value) if isinstance(value, (list, tuple)) else [value]
