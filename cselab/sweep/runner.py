"""A sweep: which runs are left, which trainings they share, and how they end."""

import contextlib
import hashlib
import json
import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from distributed import Client, Future, as_completed
from distributed.scheduler import KilledWorker
from filelock import FileLock, Timeout

from cselab.errors import CselabError
from cselab.lab import settings_hash
from cselab.settings import Settings
from cselab.sweep import task
from cselab.sweep.board import Board
from cselab.sweep.grid import Run
from cselab.sweep.store import Store
from cselab.systems import system


def sweep(client: Client, runs: Sequence[Run], store: Path, outputs: Path, *, retries: int = 1) -> Board:
    """Do those of `runs` that are not in the store, and show how they go; the board says how all ended.

    retries: of a run whose process raised what is neither bad input nor divergence. A run whose worker died starts again elsewhere, from
        its last checkpoint, up to dask's `distributed.scheduler.allowed-failures`.

    Everything that the runs will read is looked for before the first of them starts.

    Raises CselabError where something is missing (one line a reason), where a sweep on another scheduler
    has the store, and where the scheduler is lost: what was finished is in the store then, and the same command goes on.
    """
    address = client.scheduler.address
    place = task.Place(str(store.resolve()), str(outputs.resolve()))
    with _alone_on(store, address):
        known = Store(store)
        keyed, data = _keyed(client, runs, place)
        there = known.done(keyed)
        with Board([run.label for run in keyed.values()], len(client.nthreads())) as board:
            for key in there:
                board.found(keyed[key], task.told(known, key))
            todo = {key: run for key, run in keyed.items() if key not in there}
            _checked(client, list(todo.values()), place)
            futures = _submitted(client, todo, data, place, retries)
            for future in as_completed(futures):
                key = futures[future]
                if future.status == "cancelled":
                    raise CselabError(
                        f"scheduler {address} is lost; {board.finished} of {len(keyed)} runs are in {store}; the same command goes on"
                    )
                if future.status == "error":
                    error = _reason(future, task.log_of(place, key))
                    known.add(task.result(keyed[key], key, data[key], 0.0, error))
                board.ended(keyed[key], task.told(known, key))
    return board


def _keyed(client: Client, runs: Sequence[Run], place: task.Place) -> tuple[dict[str, Run], dict[str, str]]:
    """Runs by their keys, and the fingerprint of each one's data. Every worker takes it: they have the data, it has to be the same one
    everywhere, and what a process does only once (imports, drawing the world) is done in all at the same time."""
    groups = {run: {name: getattr(run.settings, name) for name in task.OF_DATA} for run in runs}
    names = {run: hashlib.sha256(repr(group).encode()).hexdigest()[:16] for run, group in groups.items()}
    some = {name: run.settings for run, name in names.items()}
    asked = {
        name: {
            worker: client.submit(
                task.data_fingerprint, settings, place.outputs,
                key=f"data-{name}-{worker}", pure=False, workers=[worker], allow_other_workers=True,
            )
            for worker in client.nthreads()
        }
        for name, settings in some.items()
    }  # fmt: skip
    found = {}
    for name, of_workers in client.gather(asked).items():
        if len(set(of_workers.values())) > 1:
            raise CselabError(
                f"workers see different data ({of_workers}); give all the same data_dir, or one folder that they share"
            )
        found[name] = next(iter(of_workers.values()))
    keyed = {task.key_of(run, found[names[run]]): run for run in runs}
    return keyed, {key: found[names[run]] for key, run in keyed.items()}


def _checked(client: Client, runs: Sequence[Run], place: task.Place) -> None:
    """One run for each of its seeds is enough. On a worker, which has the data."""
    distinct = {(run.what, run.measures, run.settings.changed(seed=None)): run for run in runs}
    found = client.submit(task.problems, list(distinct.values()), place.outputs, pure=False).result()
    if found:
        lines = [f"{error} ({', '.join(labels)})" for error, labels in found.items()]
        raise CselabError("no run was started: " + "\n  also: ".join(lines))


def _submitted(
    client: Client, todo: Mapping[str, Run], data: Mapping[str, str], place: task.Place, retries: int
) -> dict[Future, str]:
    """Futures of runs, with the trainings they start from before them, one task for all who share it."""
    here = hashlib.sha256(repr(place).encode()).hexdigest()[:8]  # sweeps with other folders may use the same scheduler
    trainings: dict[str, Future] = {}

    def needed(name: str, settings: Settings) -> list[Future]:
        found = []
        for need in system(name).needs:
            common = system(need).common(settings)
            key = f"train-{need}-{settings_hash(common)}-{here}"
            if key not in trainings:
                trainings[key] = client.submit(
                    task.prepare, need, common, place.outputs, *needed(need, common), key=key, retries=retries
                )
            found.append(trainings[key])
        return found

    return {
        client.submit(
            task.execute, run, key, data[key], place, *([] if run.notebook else needed(run.what, run.settings)),
            key=f"run-{key}-{here}", retries=retries,
        ): key
        for key, run in todo.items()
    }  # fmt: skip


def _reason(future: Future, log: Path) -> str:
    error = future.exception()
    if isinstance(error, KilledWorker):
        return f"its workers died, {error.allowed_failures + 1} in all (out of memory, or killed); see {log}"
    return f"{type(error).__name__}: {error}; see {log}"


@contextlib.contextmanager
def _alone_on(store: Path, address: str) -> Iterator[None]:
    """The only sweep on a store, but for others on the same scheduler, which does a run once whoever asks for it."""
    lock, owner = FileLock(f"{store}.lock"), Path(f"{store}.owner.json")
    store.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        other = json.loads(owner.read_text()) if owner.is_file() else {}
        if other.get("scheduler") == address:
            yield
            return
        raise CselabError(
            f"store {store} is in use by a sweep (process {other.get('process', '?')}); choose another --store, or join it with "
            f"--scheduler {other.get('scheduler', 'ADDRESS')}"
        ) from None
    try:
        owner.write_text(json.dumps({"scheduler": address, "process": f"{os.getpid()} on {socket.gethostname()}"}))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
