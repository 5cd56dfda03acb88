"""Trainings that are on disk, to look at side by side."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from cselab.errors import SettingsError
from cselab.evaluation import StsReport
from cselab.experiments.code import code_of
from cselab.experiments.scores import phenomena, score
from cselab.experiments.session import Session
from cselab.methods import registered
from cselab.models import load


class FinishedRun(NamedTuple):
    """A training that is on disk, with its scores.

    Attributes:
        history: `FitResult.history`.
        report: Scores on the tests.
        phenomena: Spearman x100 by what was changed in the synthetic pairs.
    """

    history: Sequence[Mapping[str, float]]
    report: StsReport
    phenomena: Mapping[str, float]


def finished_runs(session: Session) -> dict[str, Callable[[], FinishedRun]]:
    """What opens each finished training of the present code, newest first.

    Names say method, seed, best dev score and the beginning of the step's key; settings are in its
    `step.json`. Damaged ones are left out, with a line.

    Args:
        session: Whose workspace is searched.

    Returns:
        By name, a function without arguments that loads the encoder and scores it.
    """
    found: dict[str, Callable[[], FinishedRun]] = {}
    paths = session.workspace.steps_dir.glob("*/fit.json")
    for path in sorted(paths, key=lambda path: -path.stat().st_mtime):
        try:
            stamp = json.loads((path.parent / "step.json").read_text())
            fit, inputs = json.loads(path.read_text()), stamp["inputs"]
            if _is_current(inputs):
                key = path.parent.name[-12:-8]
                seed = inputs["config"]["seed"]
                name = f"{stamp['name']}, seed {seed}, dev {fit['best_dev']:.1f} [{key}]"
                found[name] = partial(_open, session, path.parent, fit)
        except (OSError, ValueError, KeyError, TypeError) as error:
            reason = " ".join(str(error).split())
            print(f"{path.parent} is damaged ({reason}), so it is left out", file=sys.stderr)
    return found


def _is_current(inputs: dict) -> bool:
    try:
        return inputs["code"] == code_of(registered(inputs["config"]["method"]))
    except SettingsError:  # a method of a file or cell that is not loaded
        return False


def _open(session: Session, folder: Path, fit: dict) -> FinishedRun:
    encoder = load(folder / "encoder").to(session.device)
    report = score(session, encoder)
    return FinishedRun(fit["history"], report, phenomena(session, encoder, report))
