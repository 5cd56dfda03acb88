"""A run: the tree of its method, its data, its machine; and how one is written down."""

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from cselab.config import Config, explained
from cselab.data.config import DataConfig
from cselab.data.sources import embedded_dir
from cselab.errors import SettingsError, nearest, suggest
from cselab.experiments.profiles import PROFILES, Profile
from cselab.methods import AnyMethod, MethodConfig, method_names, registered
from cselab.paths import expanded

PRESETS = ("paper", "released")


class Machine(Config):
    """Where a run is computed and kept: nothing here changes a number.

    Examples:
        >>> from cselab.experiments import configure
        >>> configure("simcse", changes={"device": "cpu"}).machine.device
        'cpu'
    """

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    outputs: Path = Path("outputs")


class RunConfig(Config):
    """Everything a run depends on; `configure` builds it. What trains is `method`, a tree.

    Examples:
        >>> from cselab.experiments import configure
        >>> run = configure("jtcse", "tiny", changes={"caels": 2, "towers.temperature": 0.05})
        >>> run.method.caels, run.method.temperature, run.method.towers[0].temperature
        (2, 0.1, 0.05)
    """

    profile: str
    seed: int = Field(42, ge=0, lt=2**31)
    """Of the root; `MethodConfig.seeded` gives every node its own."""
    preset: str = "paper"
    method: AnyMethod
    data: DataConfig
    machine: Machine = Machine()

    def flattened(self, changes: Mapping[str, Any], before: tuple[str, ...] = ()) -> dict[str, Any]:
        """Changes by full dotted path.

        A method's name may stand in the place of a node: `teacher="tncse"` is `teacher.method`, and
        a list of names is those of its members.

        Args:
            changes: Values by dotted path, or nested.
            before: The path that they are in.
        """
        flat: dict[str, Any] = {}
        for path, value in super().flattened(changes, before).items():
            members = self._members(path) if isinstance(value, (str, list, tuple)) else []
            if members and isinstance(value, str):
                flat[f"{path}.method"] = value
            elif members and _names_each_of(members, value):  # towers=["simcse", "esimcse"]
                flat |= {f"{path}.{i}.method": name for i, name in enumerate(value)}
            else:
                flat[path] = value
        return flat

    def _members(self, path: str) -> list[tuple[Any, ...]]:
        """Nodes and tuples of nodes that a path means, a node as a tuple of one."""
        values = (self.value_at(place) for place in self.present(tuple(path.split("."))))
        found = [value if isinstance(value, tuple) else (value,) for value in values]
        return found if any(isinstance(n, MethodConfig) for some in found for n in some) else []

    def fitting(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Those of `changes` that fit, by full path.

        A change that fits several settings equally well (the steps of both members of "uc") goes to
        each of them. Where two changes mean the same setting, the longer path counts:
        "towers.steps" against the "steps" of a sum. A hyperparameter does not add its term.

        Args:
            changes: Values by dotted path.
        """
        by_length = sorted(self.flattened(changes).items(), key=lambda item: item[0].count("."))
        found: dict[str, Any] = {}
        index = self.index()
        for path, value in by_length:
            for place in self.nearest_places(path, index):
                *term, field = place
                of_term = field != "weight" and term[-2:-1] == ["terms"]
                given = {".".join(term), ".".join(term[:-1])} & found.keys()
                if not of_term or given or self.present(place, index):
                    found[".".join(place)] = value
        return found

    def with_value(self, place: tuple[str, ...], value: Any) -> "RunConfig":
        """The run with another value of one setting; a new seed is that of the whole tree.

        Args:
            place: Full path of the setting.
            value: The new value.
        """
        run = super().with_value(place, value)
        if place != ("seed",):
            return run
        return run.model_copy(update={"method": run.method.seeded(run.seed)})


def configure(
    method: str | MethodConfig,
    profile: str = "tiny",
    *,
    seed: int | None = None,
    preset: str | None = None,
    usual: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The run of a method: the paper's configuration, at the size of a profile.

    The released code's differences (if asked for), the `usual` settings that fit, and `changes`
    follow in this order.

    Args:
        method: A registered name, or a configuration, which is taken as it is but for changes.
        profile: "tiny", "small" or "paper".
        seed: Seed of the whole tree; None: 42.
        preset: "paper", or "released" for the differences of the methods' released code; None:
            "paper".
        usual: Settings by dotted path, for many methods alike; those that do not fit this method
            are left out.
        changes: Settings by dotted path that have to fit.

    Raises:
        SettingsError: Naming the nearest valid name, for an unknown method, profile, preset or
            setting, and for a bad value.

    Examples:
        >>> from cselab.experiments import configure
        >>> paper = configure("simcse", "paper").method
        >>> paper.backbone, paper.schedule.batch_size, paper.temperature
        ('google-bert/bert-base-uncased', 64, 0.05)
        >>> configure("simcse", changes={"temperature": 0.1}).method.temperature
        0.1
    """
    if profile not in PROFILES:
        raise SettingsError(f"unknown profile {profile!r}; {suggest(profile, PROFILES)}")
    if preset not in (None, *PRESETS):
        raise SettingsError(f"unknown preset {preset!r}; {suggest(preset, PRESETS)}")
    usual, changes = dict(usual or {}), dict(changes or {})
    if of_run := {"profile", "preset"} & {*usual, *changes}:
        raise SettingsError(f"{min(of_run)!r} is of a whole run; give it beside the settings")
    try:
        seed = 42 if seed is None else seed
        node = registered(method).Config() if isinstance(method, str) else method
        run = RunConfig(
            profile=profile,
            seed=seed,
            preset=preset or "paper",
            method=node,
            data=PROFILES[profile].data,
        )
    except ValidationError as error:
        raise SettingsError(explained(error)) from None
    given = run.flattened(changes)
    if isinstance(method, str):  # the methods of nodes first: a profile's values depend on them
        run = run.changed(_methods({**run.fitting(usual), **given}))
        found = _sized(run, PROFILES[profile], usual, given)
        if family(found.method) == "roberta":
            found = _sized(run, PROFILES[profile].for_roberta(), usual, given)
    else:
        found = _with(run, usual, given)
    if isinstance(method, str) and preset == "released":  # which depends on the backbone
        found = _with(found.model_copy(update={"method": released(found.method)}), usual, given)
    return found


def _sized(
    run: RunConfig, profile: Profile, usual: Mapping[str, Any], given: Mapping[str, Any]
) -> RunConfig:
    node = profile.apply(run.method).seeded(run.seed)
    return _with(run.model_copy(update={"method": node}), usual, given)


def _with(run: RunConfig, usual: Mapping[str, Any], given: Mapping[str, Any]) -> RunConfig:
    """What is given counts; terms that it adds take the usual hyperparameters."""
    run = run.changed(given)
    return run.changed(run.fitting(usual)).changed(given) if usual else run


def _names_each_of(members: list[tuple[Any, ...]], value: Any) -> bool:
    """Whether `value` is a list of one name for each member; another list is for pydantic to
    refuse."""
    return (
        isinstance(value, (list, tuple))
        and all(isinstance(name, str) for name in value)
        and all(len(value) == len(some) for some in members)
    )


def _methods(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in changes.items() if path.split(".")[-1] == "method"}


def released(node: MethodConfig) -> MethodConfig:
    """The tree with every node as its own repository's code has it."""
    node = node.with_parts(lambda part, _: released(part))
    for difference in registered(node.method).differences:
        if difference.preset:
            wanted = difference.changes(node, family(node)).items()
            there = {path: value for path, value in wanted if node.present(tuple(path.split(".")))}
            node = node.changed(there)  # a method without a term has none of its differences
    return node


def family(node: MethodConfig) -> str:
    """ "roberta" or "bert": whose released settings a backbone takes; of several, the first."""
    name = next(_models(node), "")
    for folder in (embedded_dir() / "backbones" / name, expanded(name)):
        if name and (folder / "config.json").is_file():
            name = _model_type(folder / "config.json")
    return "roberta" if "roberta" in name.lower() else "bert"


def _model_type(path: Path) -> str:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["model_type"]
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{path} is no model's configuration ({type(error).__name__}: {error}); give a folder "
            "that save_pretrained wrote"
        ) from None
    return str(found)


def _models(node: MethodConfig) -> Iterator[str]:
    """Pretrained models of a tree, the first part's before the second's."""
    if node.pretrained_model:
        yield node.pretrained_model
    for part in node.parts:
        yield from _models(part)


def check_settings(settings: Mapping[str, Any], profile: str = "tiny") -> None:
    """Check settings against all methods.

    Args:
        settings: Values by dotted path.
        profile: Name of a profile.

    Raises:
        SettingsError: For a setting that fits no method, with the nearest name, and for a value
            that all methods which have the setting refuse.
    """
    runs = _runs(profile, settings)
    for path, value in settings.items():
        fitting = [run for run in runs if run.takes(path)]
        if not fitting:
            hint = nearest(path, setting_names(profile)) or "cselab settings lists them"
            raise SettingsError(f"unknown setting {path!r}; {hint}")
        refused = [error for run in fitting if (error := _refusal(run, path, value))]
        if len(refused) == len(fitting):
            raise refused[0]


def _refusal(run: RunConfig, path: str, value: Any) -> SettingsError | None:
    try:
        given = run.flattened({path: value})
        run.changed(
            {".".join(place): v for p, v in given.items() for place in run.nearest_places(p)}
        )
    except SettingsError as error:
        return error
    return None


def known_settings(settings: Mapping[str, Any], profile: str = "tiny") -> set[str]:
    """Those of `settings` that fit any method, also one that they put in the place of another.

    Args:
        settings: Values by dotted path.
        profile: Name of a profile.

    Returns:
        Dotted paths.
    """
    runs = _runs(profile, settings)
    return {path for path in settings if any(run.takes(path) for run in runs)}


def _runs(profile: str, settings: Mapping[str, Any]) -> list[RunConfig]:
    """A run of each method, with the methods that `settings` put in the place of others."""
    return [run.changed(_methods(run.fitting(settings))) for run in _default_runs(profile)]


def setting_names(profile: str = "tiny") -> set[str]:
    """Names and dotted names of the settings of all methods."""
    runs = _default_runs(profile)
    return set().union(*(run.names() for run in runs)) | {"profile", "seed", "preset"}


def _default_runs(profile: str) -> list[RunConfig]:
    """Without own methods with an invalid default, which are refused when they are used."""
    runs = []
    for name in method_names():
        with contextlib.suppress(SettingsError):
            runs.append(_default_run(registered(name), profile))
    return runs


@functools.lru_cache(maxsize=256)
def _default_run(kind: Any, profile: str) -> RunConfig:
    """Kept by the class, for a method of a notebook's cell may be registered again."""
    return configure(kind.Config.name, profile)
