"""Every system by its name: how a lab gets its encoder, and which trainings it shares with others. What sweeps are made of."""

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch

from cselab import stages
from cselab.errors import CselabError, SettingsError, suggest
from cselab.lab import Lab
from cselab.models import Ensemble, Flowed, SentenceEncoder, TwinEncoder, Whitened
from cselab.settings import Settings
from cselab.stages.training import NOT_OF_TOWERS, OF_DECODERS, OF_TERMS, OF_TWINS
from cselab.training.distributed import rank_and_world

SINGLE = (
    "simcse", "imsimcse", "tncse_single", "simcse_noise", "consert", "esimcse", "diffcse", "arccse", "infocse", "promptbert", "pcl",
    "sncse", "whitenedcse", "promcse", "iscse", "scd",
)  # fmt: skip
"""Methods of one tower that learn from text alone."""
AFTER_TWINS = ("single_*", "distil_*", "supervised_*", "bellm_*", "nli", "triplets", "tasks", "pivots", *OF_DECODERS)
AFTER_TOWERS = ("stage2_*", *NOT_OF_TOWERS, *OF_TWINS, *AFTER_TWINS)
"""Settings, * as in a shell, that what other systems start from does not depend on."""


@runtime_checkable
class Encoder(Protocol):
    """Anything with `encode(sentences) -> (n, d)`."""

    def encode(self, sentences: list[str]): ...


@dataclass(frozen=True)
class System:
    """build: trains, or finds, the encoder of a lab. needs: systems whose trainings it starts from. ignores: settings, * as in a shell,
    that do not change it where it is needed, so that those who need it share it. trained: by steps, so that it can be rehearsed."""

    build: Callable[[Lab], Encoder]
    needs: tuple[str, ...] = ()
    ignores: tuple[str, ...] = ()
    trained: bool = True

    def common(self, settings: Settings) -> Settings:
        """`settings` with what it ignores as the profile has it: equal for all who can share its training."""
        names = [name for name in Settings.model_fields if any(fnmatchcase(name, pattern) for pattern in self.ignores)]
        return settings.changed(**dict.fromkeys(names))


def _single(method: str) -> System:
    """A single-tower method; in the world its second view is the round trip, in the papers dropout's."""
    return System(lambda lab: stages.single(lab, method, pivot=stages.view_pivot(lab)).encoder)


def _summed(method: str) -> System:
    """Two towers of `method`, one a pivot, summed and not trained together: what a twin's gain is to be measured from."""
    return System(lambda lab: stages.tower_sum(lab, method))


def _joint(method: str) -> System:
    return System(lambda lab: stages.joint(lab, method).encoder, ("tower_i", "tower_ii"), AFTER_TWINS)


def _supervised(method: str) -> System:
    return System(
        lambda lab: stages.supervised(lab, method).encoder, ignores=("stage2_*", "distil_*", *OF_TERMS, *OF_TWINS)
    )


def _mapped(kind: type[Whitened] | type[Flowed]) -> Callable[[Lab], Encoder]:
    """The untrained backbone, with a map after it that is fitted to the text."""
    return lambda lab: kind(stages.backbone_encoder(lab).encode, list(islice(stages.sentences(lab), 10_000)))


def _edfse(lab: Lab) -> Ensemble:
    return stages.edfse(lab, lab.settings.pivots)


def _teachers(lab: Lab) -> list[SentenceEncoder]:
    """RankCSE's: the two SimCSE towers (the paper's are SimCSE base and large)."""
    return [stages.tower(lab, which).encoder for which in ("i", "ii")]


def _jtcse(lab: Lab) -> TwinEncoder:
    return stages.joint(lab, "jtcse").encoder


def _uc(lab: Lab) -> Ensemble:
    """A twin and an outsider that learned from triplets by its own terms; those that are set are the twin's."""
    outsider = stages.supervised(lab, "simcse_supervised", **dict.fromkeys(OF_TERMS))
    return Ensemble.uc(_jtcse(lab), outsider.encoder)


def _distilled(name: str, teacher: Callable[[Lab], TwinEncoder | Ensemble]) -> Callable[[Lab], Encoder]:
    return lambda lab: stages.distilled(lab, teacher(lab), name).encoder


SYSTEMS: dict[str, System] = {
    "sif": System(stages.sif_mean, trained=False),
    "untrained": System(stages.backbone_encoder),
    "whitened": System(_mapped(Whitened), trained=False),
    "flow": System(_mapped(Flowed), trained=False),
    **{name: _single(name) for name in SINGLE},
    **{
        f"tower_{which}": System(lambda lab, which=which: stages.tower(lab, which).encoder, ignores=AFTER_TOWERS)
        for which in ("i", "ii")
    },
    "towers": System(stages.tower_sum, ("tower_i", "tower_ii")),
    **{f"{name}_towers": _summed(name) for name in ("esimcse", "diffcse", "infocse", "imsimcse", "tncse_single")},
    "edfse": System(_edfse, ("tower_i", "tower_ii"), tuple(name for name in AFTER_TOWERS if name != "pivots")),
    "tncse": _joint("tncse"),
    "jtcse": _joint("jtcse"),
    "rankcse": System(lambda lab: stages.ranked(lab, _teachers(lab)).encoder, ("tower_i", "tower_ii"), AFTER_TWINS),
    "rankcse_towers": System(lambda lab: stages.ranked_sum(lab, _teachers(lab)), ("tower_i", "tower_ii")),
    **{name: _supervised(name) for name in ("simcse_supervised", "angle", "bellm")},
    "uc": System(_uc, ("jtcse", "simcse_supervised"), ("distil_*",)),
    "edfse_d": System(_distilled("edfse-d", _edfse), ("edfse",)),
    "tncse_d": System(_distilled("tncse-d", lambda lab: stages.joint(lab, "tncse").encoder), ("tncse",)),
    "jtcse_d": System(_distilled("jtcse-d", _jtcse), ("jtcse",)),
    "uc_d": System(_distilled("uc-d", _uc), ("uc",)),
}
"""Baselines, papers' methods, ensembles and their students ("_d"); each is trained by its stages, once."""


def system(name: str) -> System:
    """Raises SettingsError, with the nearest name, for an unknown one."""
    if name not in SYSTEMS:
        raise SettingsError(f"unknown method {name!r}; {suggest(name, SYSTEMS)}")
    return SYSTEMS[name]


def check(lab: Lab, *names: str) -> None:
    """Find and open all that training and measuring the systems `names` will read, before the first step of any.

    Text, tests and dev pairs are read; the systems are built from start to end (backbones, poolers, terms, cross-attention layers,
    triplets, translators, teachers) with no step of training. Says in one line which data was found.

    Raises what the run itself would have raised hours later: SettingsError, DataError, ModelError.
    """
    tests, dev, text = stages.test_data(lab), stages.dev_pairs(lab), stages.sentences(lab)
    with tempfile.TemporaryDirectory(prefix="cselab-check-") as folder, torch.random.fork_rng(devices=[]):
        rehearsal = lab.with_settings()
        rehearsal.rehearsal = Path(folder)
        for name in names:
            one = system(name)
            try:
                (one.build if one.trained else stages.backbone_encoder)(rehearsal)
            except CselabError as error:  # the path of a stand-in would mean nothing to the user
                message = re.sub(rf"{re.escape(folder)}/\S+?/encoder(/tower_ii?)?", lab.settings.backbone, str(error))
                raise type(error)(f"{name}: {message}") from None
    if rank_and_world()[0]:
        return
    print(
        f"checked: {len(text):,} sentences ({text.source}); dev {dev.task}, tests {', '.join(data.task for data in tests)} "
        f"({tests[0].source.kind}); {', '.join(names)} can be built"
    )
