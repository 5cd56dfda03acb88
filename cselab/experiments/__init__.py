"""Experiments: runs as trees of configurations, trained once and measured.

`configure(method, profile, ...)` gives a run, `train(run)` its encoder, `evaluate(run)` its scores;
`open_lab` is the same for a notebook.

To read: run.py, with profiles.py and presets.py; train.py, with training_rows.py; cache.py, with
run_data.py, keys.py and code.py; check.py, measures.py, lab.py. Sweeps: grid.py, sweep.py,
tasks.py, store.py, board.py, cluster.py.
"""

from cselab.experiments.cache import Cache
from cselab.experiments.check import check
from cselab.experiments.lab import Lab, open_lab
from cselab.experiments.measures import comparison
from cselab.experiments.profiles import PROFILES
from cselab.experiments.run import Machine, RunConfig, Setup, configure, set_up
from cselab.experiments.run_data import RunData
from cselab.experiments.train import Trained, evaluate, train

__all__ = [
    "PROFILES",
    "Cache",
    "Lab",
    "Machine",
    "RunConfig",
    "RunData",
    "Setup",
    "Trained",
    "check",
    "comparison",
    "configure",
    "evaluate",
    "open_lab",
    "set_up",
    "train",
]
