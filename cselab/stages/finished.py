"""Trainings that are on disk, to look at side by side."""

import json
from collections.abc import Callable
from pathlib import Path

from cselab.environment import source_hash
from cselab.lab import Lab
from cselab.models import load
from cselab.stages.scores import phenomena, score
from cselab.views import Run


def finished(lab: Lab) -> dict[str, Callable[[], Run]]:
    """What opens each finished training of this library version, newest first: loads its encoder and scores it.

    Names say method, seed, best dev score and the beginning of the stage's key; settings are in its `stage.json`.
    """
    found = {}
    for path in sorted(lab.stages_dir.glob("*/fit.json"), key=lambda path: -path.stat().st_mtime):
        stamp, fit = json.loads((path.parent / "stage.json").read_text()), json.loads(path.read_text())
        if stamp["inputs"]["source"] == source_hash():
            name = f"{stamp['name']}, seed {stamp['inputs']['seed']}, dev {fit['best_dev']:.1f} [{path.parent.name[-12:-8]}]"
            found[name] = lambda folder=path.parent, history=fit["history"]: _open(lab, folder, history)
    return found


def _open(lab: Lab, folder: Path, history: list) -> Run:
    encode = load(folder / "encoder").to(lab.device).encode
    report = score(lab, encode)
    return Run(history, report, phenomena(lab, encode, report))
