"""Sweeps on dask.distributed: the task graph is the runs' trees, a task's key its node's key."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from distributed import Client, Future, as_completed

from cselab.errors import CselabError
from cselab.experiments.board import Board
from cselab.experiments.cache import digest
from cselab.experiments.grid import Run
from cselab.experiments.keys import node_key, run_key, trained_parts
from cselab.experiments.run import Setup
from cselab.experiments.store import Store
from cselab.experiments.tasks import (
    SweepFiles,
    check_run,
    fingerprint,
    for_this_machine,
    logged,
    new_result,
    open_cache,
    run_task,
    train_task,
)
from cselab.methods import MethodConfig
from cselab.methods.registry import method_sources


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
        outputs: The folder of steps and logs.
        modules: Files with methods of one's own; their source travels to the workers.
        retries: Number of retries of a run whose process raised an error that is neither bad input
            nor divergence. A run whose worker died starts again elsewhere, from its last
            checkpoint, up to dask's `distributed.scheduler.allowed-failures`.

    Raises:
        CselabError: For missing inputs (one line a reason), and for a lost scheduler: finished runs
            are in the store, and the same command goes on.
    """
    files = SweepFiles(outputs.resolve(), tuple(map(method_sources, modules)))
    scores, by_key = Store(store), _by_key(runs, files.outputs)
    done = scores.done(by_key)
    scores.mention_other_labels({key: by_key[key].label for key in done})
    with Board([run.label for run in by_key.values()], len(client.nthreads())) as board:
        for result in scores.results(done):
            board.add(result, reused=True)
        todo = {key: run for key, run in by_key.items() if key not in done}
        _check_inputs(todo.values(), files.outputs)
        _check_same_data(client, todo.values(), files)
        futures = {_submit(client, key, run, files, retries): key for key, run in todo.items()}
        for future in as_completed(futures):
            if future.status == "cancelled":
                raise CselabError(
                    f"scheduler {client.scheduler.address} is lost; {board.finished} of "
                    f"{len(by_key)} runs are in {store}; the same command goes on"
                )
            run, outcome = by_key[futures[future]], _outcome(future, files.outputs)
            cache = open_cache(run.config, files.outputs)
            result = new_result(run, futures[future], cache, outcome)
            scores.add(result)
            board.add(result)
    return board


def _by_key(runs: Sequence[Run], outputs: Path) -> dict[str, Run]:
    """Runs by key; two labels of one key differ in settings that change no result (a device)."""
    by_key: dict[str, Run] = {}
    for run in runs:
        run = for_this_machine(run, outputs)
        first = by_key.setdefault(run_key(run, open_cache(run.config, outputs)), run)
        if first.label != run.label:
            raise CselabError(
                f"{first.label!r} and {run.label!r} are the same run: nothing that they differ in "
                "changes a result; leave one out"
            )
    return by_key


def _check_inputs(runs: Iterable[Run], outputs: Path) -> None:
    """Check one seed of each run; raise CselabError with a line a reason."""
    labels: dict[str, list[str]] = {}
    for run in {(run.label, run.method): run for run in runs}.values():
        try:
            with logged(outputs / "sweep.log"):
                check_run(run, open_cache(run.config, outputs))
        except CselabError as error:
            reason = str(error).removeprefix(f"{run.method}: ")
            labels.setdefault(reason, []).append(run.label)
    if labels:
        lines = [f"{reason} ({', '.join(names)})" for reason, names in labels.items()]
        raise CselabError("no run was started: " + "\n  also: ".join(lines))


def _check_same_data(client: Client, runs: Iterable[Run], files: SweepFiles) -> None:
    """Raise CselabError unless all workers read the same data as this process."""
    for run in {run.config.data: run for run in runs}.values():
        here = open_cache(run.config, files.outputs).data.fingerprint
        setup = Setup(**{name: getattr(run.config, name) for name in Setup.model_fields})
        text = setup.model_dump_json()
        options = {"pure": False, "allow_other_workers": True}
        on_workers = client.gather(
            {
                worker: client.submit(fingerprint, text, files, workers=[worker], **options)
                for worker in client.nthreads()
            }
        )
        if set(on_workers.values()) != {here}:
            raise CselabError(
                f"workers see different data ({on_workers}; here {here}); give all the same "
                "data_dir, or one folder that they share"
            )


def _submit(client: Client, key: str, run: Run, files: SweepFiles, retries: int) -> Future:
    """The future of a run, after those of the trainings that it starts from; dask runs one task for
    all who share a training."""
    config, cache = run.config.model_dump_json(), open_cache(run.config, files.outputs)
    shared = digest(files)  # runs of other folders may be on the same scheduler

    def trainings(node: MethodConfig) -> list[Future]:
        futures = []
        for part in trained_parts(node):
            arguments = (config, part.model_dump_json(), node_key(cache, part), files)
            name = f"train-{node_key(cache, part)}-{shared}"
            before = trainings(part)
            futures.append(
                client.submit(train_task, *arguments, *before, key=name, retries=retries)
            )
        return futures

    before = [] if run.notebook else trainings(run.config.method)
    arguments = (config, run.method, run.parameters, run.measures, key, files)
    return client.submit(run_task, *arguments, *before, key=f"run-{key}-{shared}", retries=retries)


def _outcome(future: Future, outputs: Path) -> Mapping[str, Any]:
    """Columns of the run's row: those that the worker returned, or its error."""
    if future.status == "finished":
        return future.result()
    error = future.exception()
    log = next(iter(getattr(error, "__notes__", ())), outputs / "sweep-logs")
    return {"error": f"{type(error).__name__}: {error}; see {log}"}
