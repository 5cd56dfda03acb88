"""One run of a grid, in this process; its cache, its inputs and its row of a store."""

import functools
import os
import socket
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cselab.data.config import DataConfig
from cselab.data.sources import data_folder
from cselab.data.transfer import TRANSFER7, load_transfer
from cselab.experiments.cache import Cache, quiet_libraries
from cselab.experiments.check import check
from cselab.experiments.code import library_hash
from cselab.experiments.grid import Run
from cselab.experiments.keys import run_key
from cselab.experiments.measures import measure
from cselab.experiments.run import Machine, Setup
from cselab.experiments.store import Result, Store
from cselab.experiments.train import train
from cselab.training.distributed import rank_and_world


def train_and_measure(run: Run, outputs: Path, store: Path | None = None) -> None:
    """Do one run in this process, or in all that a launcher started, and print its scores.

    Args:
        store: Path of a store for the scores, or None.
    """
    scores, started = Store(store) if store else None, time.perf_counter()
    run = for_this_machine(run, outputs.resolve())
    cache = open_cache(run.config, outputs.resolve())
    check_run(run, cache)
    rows = measure(cache.data, train(run.config, cache).encoder, run.measures)
    if rank_and_world()[0]:
        return
    for row in rows:
        print(f"{row.measure:11} {row.task:14} {row.value:8.3f}")
    if scores:
        outcome = {"rows": [(*row,) for row in rows], "environment": cache.environment}
        outcome |= {"seconds": time.perf_counter() - started, "worker": process_name()}
        result = new_result(run, run_key(run, cache), cache, outcome)
        if not scores.add(result):
            scores.mention_other_labels({result.key: run.label})


def open_cache(setup: Setup, outputs: Path) -> Cache:
    """A run's cache, whose steps are the sweep's; one for all seeds on the same data."""
    return _cache_of(setup.data, setup.machine.device, outputs)


@functools.lru_cache(maxsize=4)
def _cache_of(data: DataConfig, device: str, outputs: Path) -> Cache:
    quiet_libraries()
    return Cache(Setup(profile="tiny", data=data, machine=Machine(device=device)), outputs)


def for_this_machine(run: Run, outputs: Path) -> Run:
    """The run in a precision that is fast here, with the folder of CSELAB_DATA, which another
    process may not have."""
    data = run.config.data
    data = data.model_copy(update={"data_dir": data.data_dir or data_folder()})
    config = run.config.model_copy(update={"data": data})
    if not run.notebook:
        config = open_cache(config, outputs).with_fast_precision(config)
    return replace(run, config=config)


def check_run(run: Run, cache: Cache) -> None:
    """Check all inputs of a run; a notebook checks its own."""
    if run.notebook:
        return
    check([run.config], cache)
    if "transfer" in run.measures:
        for name in TRANSFER7:
            load_transfer(name, cache.data.config.data_dir)


def new_result(run: Run, key: str, cache: Cache, outcome: Mapping[str, Any]) -> Result:
    """A run's row of the store; `outcome` has what its worker knows: rows, error, seconds, …"""
    return Result(
        key=key,
        label=run.label,
        method=Path(run.method).stem if run.notebook else run.method,
        seed=run.seed,
        profile=run.config.profile,
        settings=run.config.model_dump(mode="json"),
        source=library_hash(),
        data=cache.data.fingerprint,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        **outcome,
    )


def process_name() -> str:
    """The host and the number of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"
