"""Find and open all inputs of a run before its first training step."""

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from cselab.errors import CselabError
from cselab.experiments.config import RunConfig
from cselab.experiments.session import Session, refuse_tests_as_dev
from cselab.experiments.train import train_node
from cselab.experiments.workspace import Workspace
from cselab.training.distributed import rank_and_world


def check(runs: Sequence[RunConfig], session: Session | None = None) -> None:
    """Find and open all inputs of `runs`, for training and evaluation, before the first step.

    Text, tests and dev pairs are read; the methods are built from start to end (backbones, poolers,
    terms, cross-attention layers, triplets, translators, teachers) without a training step. Prints
    one line that says which data was found, and one for a measure that the dev pairs do not allow.

    Args:
        runs: Runs that share one `data`.
        session: A session that has already read the data; None: a new one.

    Raises:
        SettingsError: For a setting that does not fit; the run would raise it, too, hours later.
        DataError: For text, tests or translations that are missing or malformed.
        ModelError: For a model that does not load, or does not fit the method.

    Examples:
        >>> from cselab.experiments import check, configure
        >>> small = {"sentences": 200, "batch_size": 32}
        >>> check([configure("simcse", changes=small)])  # doctest: +NORMALIZE_WHITESPACE
        checked: 200 sentences (embedded (synthetic text)); dev Synthetic,
        tests Synthetic (embedded); simcse can be built
    """
    if session is None:
        session = Session(Workspace(runs[0].machine), runs[0].data)
    tests, dev, text = session.test_data, session.dev_pairs, session.text
    refuse_tests_as_dev(dev, tests)
    with tempfile.TemporaryDirectory(prefix="cselab-check-") as folder:
        rehearsal = Session(session.workspace, session.data, Path(folder))
        rehearsal.text, rehearsal.dev_pairs = text, dev
        for run in runs:
            try:
                with torch.random.fork_rng(devices=[]):
                    train_node(rehearsal, run.method)
            except CselabError as error:  # the path of a stand-in would mean nothing to the user
                backbone = _backbone_name(run)
                stand_in = rf"{re.escape(folder)}/\S+?/encoder(/tower_ii?)?"
                message = re.sub(stand_in, backbone.replace("\\", "/"), str(error))
                raise type(error)(f"{run.method.method}: {message}") from None
    if rank_and_world()[0]:
        return
    names = ", ".join(dict.fromkeys(run.method.method for run in runs))
    print(
        f"checked: {len(text):,} sentences ({text.source}); dev {dev.task}, "
        f"tests {', '.join(data.task for data in tests)} ({tests[0].source.kind}); "
        f"{names} can be built"
    )
    if not dev.same_meaning.any():
        print(
            f"alignment is left out: no pair of dev {dev.task} is rated above 4 of 5 (or 0.8 of 1)"
        )


def _backbone_name(run: RunConfig) -> str:
    places = [place for place, _ in run.paths() if place[-1] in ("backbone", "decoder")]
    return run.value_at(places[0]) if places else ""
