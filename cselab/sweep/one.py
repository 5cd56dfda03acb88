"""One run of a sweep without a cluster: `cselab train`, in one process or in all that a launcher has started."""

import time
from collections.abc import Mapping
from pathlib import Path

from cselab.errors import SettingsError
from cselab.sweep import task
from cselab.sweep.grid import expand
from cselab.sweep.store import Store
from cselab.training.distributed import rank_and_world


def train_one(method: str, given: Mapping[str, str], outputs: Path, store: Path | None) -> None:
    """Train and measure a system with the settings `given`, as typed; print its scores, and keep them in `store` if there is one.

    Raises SettingsError, with the nearest name, for an unknown method or setting.
    """
    runs = expand({"methods": [method], **given}, Path("notebooks"))
    if len(runs) > 1:
        raise SettingsError(f"train does one run, these settings are {len(runs)}; `cselab sweep` does several")
    (run,) = runs
    known = Store(store) if store else None
    started = time.perf_counter()
    lab = task.lab_of(run.settings, str(outputs.resolve()))
    task.check_run(run, lab)
    rows = task.measured(run, lab)
    if rank_and_world()[0]:
        return
    for row in rows:
        print(f"{row.measure:11} {row.task:14} {row.value:8.3f}")
    if known:
        seconds = time.perf_counter() - started
        data = task.data_fingerprint(run.settings, str(outputs.resolve()))
        known.add(task.result(run, task.key_of(run, data), data, seconds, "", rows, lab.environment))
