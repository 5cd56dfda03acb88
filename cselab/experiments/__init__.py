"""Experiments: runs as trees of configurations, trained once and measured.

`configure(method, profile, ...)` gives a run, `train(run)` its encoder, `evaluate(run)` its scores;
`open_lab` is the same for a notebook.
"""

from cselab.experiments.check import check
from cselab.experiments.config import Machine, RunConfig, configure
from cselab.experiments.lab import Lab, open_lab
from cselab.experiments.profiles import PROFILES
from cselab.experiments.scores import comparison, evaluate
from cselab.experiments.session import Session
from cselab.experiments.train import Trained, train
from cselab.experiments.workspace import Workspace

__all__ = [
    "PROFILES",
    "Lab",
    "Machine",
    "RunConfig",
    "Session",
    "Trained",
    "Workspace",
    "check",
    "comparison",
    "configure",
    "evaluate",
    "open_lab",
    "train",
]
