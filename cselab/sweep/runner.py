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
from cselab.methods.registry import method_sources
from cselab.paths import replacing
from cselab.sweep import task
from cselab.sweep.board import Board
from cselab.sweep.grid import Run
from cselab.sweep.store import Store
from cselab.sweep.task import Job, Place, Plan


def sweep(
    client: Client,
    runs: Sequence[Run],
    store: Path,
    outputs: Path,
    *,
    modules: Sequence[Path] = (),
    retries: int = 1,
) -> Board:
    """Do those of `runs` that are not in the store, and show how they go.

    Everything that the runs will read is looked for before the first of them starts.

    Args:
        client: Client of `connected`.
        runs: Runs of `expand`.
        store: Path of the store.
        outputs: The folder of steps and logs.
        modules: Files with methods of one's own; their source travels to the workers.
        retries: Number of retries of a run whose process raised what is neither bad input nor
            divergence. A run whose worker died starts again elsewhere, from its last checkpoint, up
            to dask's `distributed.scheduler.allowed-failures`.

    Returns:
        The board, which says how all ended.

    Raises:
        CselabError: Where something is missing (one line a reason), where a sweep on another
            scheduler has the store, and where the scheduler is lost: what was finished is in the
            store then, and the same command goes on.
    """
    address = client.scheduler.address
    sources = tuple(map(method_sources, modules))
    place = Place(str(store.resolve()), str(outputs.resolve()), sources)
    with _alone_on(store, address):
        known = Store(store)
        jobs = [Job.of(run) for run in runs]
        planned = _planned(client, jobs, place)
        finished = known.done([plan.key for plan in planned.values()])
        keyed = _keyed(planned)
        task.tell_other_labels(known, {key: keyed[key].label for key in finished})
        with Board([job.label for job in keyed.values()], len(client.nthreads())) as board:
            for key in finished:
                board.found(keyed[key], task.summary(known, key))
            todo = {
                job: plan
                for job, plan in planned.items()
                if plan.key not in finished and keyed[plan.key] is job
            }
            _checked(client, list(todo), place)
            futures, trainings = _submitted(client, todo, place, retries)
            for future in as_completed(futures):
                job = futures[future]
                plan = planned[job]
                if future.status == "cancelled":
                    raise CselabError(
                        f"scheduler {address} is lost; {board.finished} of {len(keyed)} runs are "
                        f"in {store}; the same command goes on"
                    )
                if future.status == "error":
                    error = _reason(future, _log(plan, trainings, place))
                    known.add(task.result(job, plan, 0.0, error))
                board.ended(job, task.summary(known, plan.key))
    return board


def _keyed(planned: Mapping[Job, Plan]) -> dict[str, Job]:
    """Jobs by key. What a store takes for one run has one label, also where settings differ that
    do not count in it (a device, beams of a translator without a beam search)."""
    keyed: dict[str, Job] = {}
    for job, plan in planned.items():
        if (first := keyed.setdefault(plan.key, job)).label != job.label:
            raise CselabError(
                f"{first.label!r} and {job.label!r} are the same run: nothing that they differ in "
                "changes a result; leave one out"
            )
    return keyed


def _planned(client: Client, jobs: Sequence[Job], place: Place) -> dict[Job, Plan]:
    """What each run is, as the workers find it. Every worker is asked: they have the data, it has
    to be the same one everywhere, and what a process does only once (imports, drawing synthetic
    text) is done in all at the same time."""
    name = hashlib.sha256(repr((jobs, place)).encode()).hexdigest()[:16]
    asked = {
        worker: client.submit(
            task.plans,
            jobs,
            place,
            key=f"plans-{name}-{worker}",
            pure=False,
            workers=[worker],
            allow_other_workers=True,
        )
        for worker in client.nthreads()
    }
    found = client.gather(asked)
    if len({tuple(plan.key for plan in plans) for plans in found.values()}) > 1:
        data = {worker: sorted({p.data for p in plans}) for worker, plans in found.items()}
        raise CselabError(
            f"workers see different data ({data}); give all the same data_dir, or one folder that "
            "they share"
        )
    return dict(zip(jobs, next(iter(found.values())), strict=True))


def _checked(client: Client, jobs: Sequence[Job], place: Place) -> None:
    """One run for each of its seeds is enough. On a worker, which has the data."""
    distinct = {(job.label, job.method): job for job in jobs}
    found = client.submit(task.problems, list(distinct.values()), place, pure=False).result()
    if found:
        lines = [f"{error} ({', '.join(labels)})" for error, labels in found.items()]
        raise CselabError("no run was started: " + "\n  also: ".join(lines))


def _submitted(
    client: Client, todo: Mapping[Job, Plan], place: Place, retries: int
) -> tuple[dict[Future, Job], dict[str, Future]]:
    """Futures of runs, and by key those of the trainings they start from, one task for all who
    share it: the task graph is the runs' trees."""
    here = hashlib.sha256(repr(place).encode()).hexdigest()[:8]  # other folders, same scheduler
    trainings: dict[str, Future] = {}
    for job, plan in todo.items():
        for training in plan.trainings:  # those that come before a training are before it here
            if training.key not in trainings:
                trainings[training.key] = client.submit(
                    task.prepare,
                    job,
                    training,
                    place,
                    *(trainings[key] for key in training.after),
                    key=f"train-{training.key}-{here}",
                    retries=retries,
                )
    futures = {
        client.submit(
            task.execute,
            job,
            plan,
            place,
            *(trainings[key] for key in plan.after),
            key=f"run-{plan.key}-{here}",
            retries=retries,
        ): job
        for job, plan in todo.items()
    }
    return futures, trainings


def _log(plan: Plan, trainings: Mapping[str, Future], place: Place) -> Path:
    """What the task printed that ended a run: the run's own, or a training before it."""
    failed = (before.key for before in plan.trainings if trainings[before.key].status == "error")
    return task.log_of(place, next(failed, plan.key))


def _reason(future: Future, log: Path) -> str:
    error = future.exception()
    if isinstance(error, KilledWorker):
        died = error.allowed_failures + 1
        return f"its workers died, {died} in all (out of memory, or killed); see {log}"
    return f"{type(error).__name__}: {error}; see {log}"


@contextlib.contextmanager
def _alone_on(store: Path, address: str) -> Iterator[None]:
    """The only sweep on a store, but for others on the same scheduler, which does a run once
    whoever asks for it."""
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
            f"store {store} is in use by a sweep (process {other.get('process', '?')}); choose "
            f"another --store, or join it with --scheduler {other.get('scheduler', 'ADDRESS')}"
        ) from None
    try:
        process = f"{os.getpid()} on {socket.gethostname()}"
        with replacing(owner) as work:
            work.write_text(json.dumps({"scheduler": address, "process": process}))
        yield
    finally:
        owner.unlink(missing_ok=True)
        lock.release()
