"""A run: the tree of its method, its data and its machine, at the size of a profile."""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from cselab import config
from cselab.config import DEFAULT_PROFILE, Config
from cselab.data.settings import DataConfig
from cselab.errors import SettingsError, nearest, suggest
from cselab.experiments.presets import family, released
from cselab.experiments.profiles import PROFILES, Profile
from cselab.methods import AnyMethod, MethodConfig, method_names, registered

PRESETS = ("paper", "released")


class Machine(Config):
    """Device and outputs: nothing here changes a number."""

    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    outputs: Path = Path("outputs")
    save_every: int = Field(0, ge=0)
    """Steps between two checkpoints of a training, rounded up to its evaluations; 0: at each."""


class Setup(Config):
    """Settings that runs of several methods share; `set_up` makes one."""

    profile: str
    seed: int = Field(42, ge=0, lt=2**31)
    """The root's; `MethodConfig.seeded` gives every node its own."""
    one_seed: bool = False
    """Towers have the root's seed too, as in the papers' scripts."""
    preset: Literal["paper", "released"] = "paper"
    data: DataConfig
    machine: Machine = Machine()


class RunConfig(Setup):
    """Everything a run depends on; `configure` makes one. The method is a tree of nodes."""

    method: AnyMethod

    def with_value(self, place: config.Path, value: Any) -> "RunConfig":
        """As of any configuration; a new seed is that of the whole tree."""
        run = super().with_value(place, value)
        return run.seeded() if place in (("seed",), ("one_seed",)) else run

    def seeded(self) -> "RunConfig":
        """The run with its seed in all nodes of the tree."""
        method = self.method.seeded(self.seed, one_seed=self.one_seed)
        return self.model_copy(update={"method": method})


def set_up(
    profile: str = DEFAULT_PROFILE,
    *,
    seed: int | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Setup:
    """Settings of data and machine at a profile's size, as in `configure`.

    Args:
        settings: Values by dotted path; those of methods are left out.
    """
    if profile not in PROFILES:
        raise SettingsError(f"unknown profile {profile!r}; {suggest(profile, PROFILES)}")
    if preset not in (None, *PRESETS):
        raise SettingsError(f"unknown preset {preset!r}; {suggest(preset, PRESETS)}")
    asked = {"seed": seed, "preset": preset}
    values = {name: value for name, value in asked.items() if value is not None}
    size = PROFILES[profile]
    machine = Machine(save_every=size.save_every)
    setup = Setup.checked(profile=profile, data=size.data, machine=machine, **values)
    return setup.changed(setup.fitting(settings or {}))


def configure(
    method: str | MethodConfig,
    profile: str = DEFAULT_PROFILE,
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
        profile: "english", "tiny", "small" or "paper".
        seed: Seed of the whole tree; None: 42.
        preset: "released" for the differences of the methods' released code; None: "paper".
        defaults: Settings for many methods alike, by dotted path; those that do not fit this method
            are left out. Of a configuration they set data and machine only.
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
    if whole := {"profile", "preset"} & {*defaults, *changes}:
        raise SettingsError(f"{min(whole)!r} is of a whole run; give it beside the settings")
    setup = dict(set_up(profile, seed=seed, preset=preset, settings=defaults))
    node = registered(method).Config.checked() if isinstance(method, str) else method
    run = RunConfig.checked(**setup, method=node)
    changes = run.flattened(changes)
    if not isinstance(method, str):
        return run.changed(changes)
    # methods of nodes first: a profile's values depend on them
    run = run.changed(_methods(run, run.fitting(defaults)) | _methods(run, changes))
    default = _at_size(run, PROFILES[profile])
    sized = _changed(default, defaults, changes)
    if (kind := family(sized.method)) != "bert":
        sized = _changed(_at_size(run, PROFILES[profile].for_family(kind)), defaults, changes)
        sized = _with_outsiders(sized, default, defaults | changes)
    if preset == "released":  # which depends on the backbone
        sized = sized.model_copy(update={"method": released(sized.method)})
        sized = _changed(sized, defaults, changes)
    return sized


def _at_size(run: RunConfig, profile: Profile) -> RunConfig:
    return run.model_copy(update={"method": profile.apply(run.method)}).seeded()


def _with_outsiders(run: RunConfig, default: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """The run with the default backbones of its outsiders, or those that a path of them names."""
    for place, node, _ in list(run.walk()):
        for name in node.outsiders if isinstance(node, MethodConfig) else ():
            named = [v for path, v in settings.items() if path.endswith(f"{name}.backbone")]
            for backbone in run.matches(".".join((*place, name, "backbone"))):
                value = named[0] if named else default.value_at(backbone)
                run = run.with_value(backbone, value)
    return run


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


def check_settings(settings: Mapping[str, Any], profile: str = DEFAULT_PROFILE) -> None:
    """Check settings, by dotted path, against all methods.

    Raises:
        SettingsError: For a setting that fits no method, with the nearest name, and for a value
            that all methods which have the setting refuse.
    """
    runs = _RunsOfAll(profile, settings)
    for path, value in settings.items():
        refused = None
        for run in runs:
            if run.takes(path):
                try:
                    flat = run.flattened({path: value})
                    run.changed({".".join(full): flat[p] for p in flat for full in run.matches(p)})
                    break
                except SettingsError as error:
                    refused = refused or error
        else:
            if refused:
                raise refused
            hint = nearest(path, setting_names(profile)) or "cselab settings lists them"
            raise SettingsError(f"unknown setting {path!r}; {hint}")


def known_settings(settings: Mapping[str, Any], profile: str = DEFAULT_PROFILE) -> set[str]:
    """Paths of those `settings` that fit any method, also one that they put in another's place."""
    runs = _RunsOfAll(profile, settings)
    return {path for path in settings if any(run.takes(path) for run in runs)}


def setting_names(profile: str = DEFAULT_PROFILE) -> set[str]:
    """Names and dotted names of the settings of all methods."""
    names = (run.names() for run in _RunsOfAll(profile, {}))
    return {"profile", "seed", "preset"}.union(*names)


class _RunsOfAll:
    """A run of each method, with the methods that `settings` put in the place of others.

    Each is made when it is asked for: most settings are those of the first.
    """

    def __init__(self, profile: str, settings: Mapping[str, Any]):
        self.profile, self.settings = profile, settings
        self.made: dict[str, RunConfig] = {}

    def __iter__(self) -> Iterator[RunConfig]:
        for name in sorted(method_names(), key=lambda name: name != "jtcse"):
            if name not in self.made:
                try:
                    run = _default_run(registered(name), self.profile)
                except SettingsError:  # an own method's invalid default is refused when it is used
                    continue
                self.made[name] = run.changed(_methods(run, run.fitting(self.settings)))
            yield self.made[name]


@functools.lru_cache(maxsize=256)
def _default_run(kind: Any, profile: str) -> RunConfig:
    """Kept by the class, for a method of a notebook's cell may be registered again."""
    return configure(kind.Config.name, profile)
