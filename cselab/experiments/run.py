"""A run: the tree of its method, its data and its machine, at the size of a profile."""

import contextlib
import functools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from cselab import config
from cselab.config import Config, explained
from cselab.data.settings import DataConfig
from cselab.data.sources import embedded_dir
from cselab.errors import SettingsError, nearest, suggest
from cselab.experiments.profiles import PROFILES, Profile
from cselab.methods import AnyMethod, MethodConfig, method_names, registered
from cselab.paths import check_readable, expanded

PRESETS = ("paper", "released")


class Machine(Config):
    """Device and outputs: nothing here changes a number.

    Examples:
        >>> from cselab.experiments import configure
        >>> configure("simcse", changes={"device": "cpu"}).machine.device
        'cpu'
    """

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    outputs: Path = Path("outputs")


class Setup(Config):
    """Settings that runs of several methods share; `set_up` makes one."""

    profile: str
    seed: int = Field(42, ge=0, lt=2**31)
    """Of the root; `MethodConfig.seeded` gives every node its own."""
    preset: Literal["paper", "released"] = "paper"
    data: DataConfig
    machine: Machine = Machine()


class RunConfig(Setup):
    """Everything a run depends on; `configure` makes one. The method is a tree of nodes.

    Examples:
        >>> from cselab.experiments import configure
        >>> run = configure("jtcse", "tiny", changes={"caels": 2, "towers.temperature": 0.05})
        >>> run.method.caels, run.method.temperature, run.method.towers[0].temperature
        (2, 0.1, 0.05)
    """

    method: AnyMethod

    def with_value(self, place: config.Path, value: Any) -> "RunConfig":
        """As of any configuration; a new seed is that of the whole tree."""
        run = super().with_value(place, value)
        if place != ("seed",):
            return run
        return run.model_copy(update={"method": run.method.seeded(run.seed)})


def set_up(
    profile: str = "tiny",
    *,
    seed: int | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Setup:
    """Settings of data and machine at a profile's size.

    Args:
        profile: As in `configure`, like seed and preset.
        settings: Values by dotted path; those of methods are left out.

    Raises:
        SettingsError: As `configure`.
    """
    if profile not in PROFILES:
        raise SettingsError(f"unknown profile {profile!r}; {suggest(profile, PROFILES)}")
    if preset not in (None, *PRESETS):
        raise SettingsError(f"unknown preset {preset!r}; {suggest(preset, PRESETS)}")
    given = {"seed": seed, "preset": preset}
    try:
        setup = Setup(
            profile=profile,
            data=PROFILES[profile].data,
            **{name: value for name, value in given.items() if value is not None},
        )
    except ValidationError as error:
        raise SettingsError(explained(error)) from None
    return setup.changed(setup.fitting(settings or {}))


def configure(
    method: str | MethodConfig,
    profile: str = "tiny",
    *,
    seed: int | None = None,
    preset: str | None = None,
    defaults: Mapping[str, Any] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> RunConfig:
    """The run of a method: the paper's configuration, at the size of a profile.

    The released code's differences (if asked for), the `defaults` that fit, and `changes` follow in
    this order.

    Args:
        method: A registered name, or a configuration, which is taken as it is but for changes.
        profile: "tiny", "small" or "paper".
        seed: Seed of the whole tree; None: 42.
        preset: "released" for the differences of the methods' released code; None: "paper".
        defaults: Settings for many methods alike, by dotted path; those that do not fit this method
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
    defaults, changes = dict(defaults or {}), dict(changes or {})
    if of_run := {"profile", "preset"} & {*defaults, *changes}:
        raise SettingsError(f"{min(of_run)!r} is of a whole run; give it beside the settings")
    setup = dict(set_up(profile, seed=seed, preset=preset))
    try:
        node = registered(method).Config() if isinstance(method, str) else method
        run = RunConfig(**setup, method=node)
    except ValidationError as error:
        raise SettingsError(explained(error)) from None
    changes = run.flattened(changes)
    if not isinstance(method, str):
        return _changed(run, defaults, changes)
    # methods of nodes first: a profile's values depend on them
    run = run.changed(_methods(run, run.fitting(defaults)) | _methods(run, changes))
    sized = _changed(_at_size(run, PROFILES[profile]), defaults, changes)
    if family(sized.method) == "roberta":
        sized = _changed(_at_size(run, PROFILES[profile].for_roberta()), defaults, changes)
    if preset == "released":  # which depends on the backbone
        sized = sized.model_copy(update={"method": released(sized.method)})
        sized = _changed(sized, defaults, changes)
    return sized


def _at_size(run: RunConfig, profile: Profile) -> RunConfig:
    return run.model_copy(update={"method": profile.apply(run.method).seeded(run.seed)})


def _changed(run: RunConfig, defaults: Mapping[str, Any], changes: Mapping[str, Any]) -> RunConfig:
    """`changes` override `defaults`; terms that they add take the default hyperparameters."""
    run = run.changed(changes)
    return run.changed(run.fitting(defaults)).changed(changes) if defaults else run


def _methods(run: RunConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `changes` that name the method of a node or of a tuple of nodes."""

    def names_nodes(path: str, value: Any) -> bool:
        if not all(isinstance(name, str) for name in value):
            return False
        nodes = [run.value_at(place) for place in run.matches(path)]
        return any(
            isinstance(one[0] if isinstance(one, tuple) and one else one, MethodConfig)
            for one in nodes
        )

    return {
        path: value
        for path, value in changes.items()
        if path.split(".")[-1] == "method"
        or (isinstance(value, (str, list, tuple)) and names_nodes(path, value))
    }


def released(node: MethodConfig) -> MethodConfig:
    """The tree with every node as its own repository's code has it."""
    node = node.with_parts(lambda part, _: released(part))
    # a method without a term has none of its differences
    return node.changed(node.fitting(released_values(node, family(node))))


def released_values(node: MethodConfig, backbones: str = "bert") -> dict[str, Any]:
    """Settings of a method's released code by dotted path.

    Args:
        node: The method's configuration.
        backbones: A family of backbones, "bert" or "roberta".
    """
    values = {}
    for path, value in registered(node.method).released.items():
        if isinstance(value, Mapping):
            if backbones not in value:
                continue
            value = value[backbones]
        values[path] = value(node) if callable(value) else value
    return values


def family(node: MethodConfig) -> str:
    """ "roberta" or "bert": whose released settings a backbone takes; of several, the first."""
    name = next(_models(node), "")
    for folder in (embedded_dir() / "backbones" / name, expanded(name)):
        check_readable(folder / "config.json")
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
        refused = []
        for run in fitting:
            try:
                flat = run.flattened({path: value})
                run.changed({".".join(full): flat[p] for p in flat for full in run.matches(p)})
            except SettingsError as error:
                refused.append(error)
        if len(refused) == len(fitting):
            raise refused[0]


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
    return [run.changed(_methods(run, run.fitting(settings))) for run in _default_runs(profile)]


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
