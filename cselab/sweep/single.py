"""One run without a cluster: `cselab train`, in one process or in all that a launcher started."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cselab.errors import SettingsError
from cselab.methods.registry import method_sources
from cselab.sweep import task
from cselab.sweep.grid import OWN, expand
from cselab.sweep.store import Store
from cselab.sweep.task import Job, Place
from cselab.training.distributed import rank_and_world


def train_one(
    method: str,
    given: Mapping[str, Any],
    outputs: Path,
    store: Path | None,
    modules: Sequence[Path] = (),
) -> None:
    """Train and measure a method; print its scores, and keep them in a store if there is one.

    Args:
        method: A registered name.
        given: Settings, and profile, seed or preset, by dotted path.
        outputs: The folder of steps.
        store: Path of the store, or None.
        modules: Files with methods of one's own.

    Raises:
        SettingsError: With the nearest name, for an unknown method or setting.
    """
    grid = {name: value for name, value in given.items() if name in (*OWN, "measures")}
    axes = {name: [value] for name, value in given.items() if name not in grid}  # of one value each
    grid["runs"] = [{"methods": [method], **axes}]
    runs = expand(grid, Path("notebooks"), modules=modules)
    if len(runs) > 1:
        raise SettingsError(
            f"train does one run, these settings are {len(runs)}; `cselab sweep` does several"
        )
    (run,) = runs
    known = Store(store) if store else None
    started = time.perf_counter()
    session = task.session_of(run.config, str(outputs.resolve()))
    task.check_run(run, session)
    rows = task.measured(run, session)
    if rank_and_world()[0]:
        return
    for row in rows:
        print(f"{row.measure:11} {row.task:14} {row.value:8.3f}")
    if known:
        seconds = time.perf_counter() - started
        sources = tuple(map(method_sources, modules))
        job = Job.of(run)
        (plan,) = task.plans([job], Place(str(store), str(outputs.resolve()), sources))
        environment = session.workspace.environment
        if not known.add(task.result(job, plan, seconds, "", rows, environment)):
            task.tell_other_labels(known, {plan.key: run.label})
