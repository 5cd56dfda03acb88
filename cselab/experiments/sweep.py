"""Sweeps on dask.distributed: the task graph is the runs' trees, a task's key its node's key."""

import contextlib
import functools
import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from distributed import Client, Future, as_completed

from cselab.config import read_value
from cselab.data.fingerprints import folder_hash
from cselab.data.settings import DataConfig
from cselab.data.sources import data_folder
from cselab.data.transfer import TRANSFER7, load_transfer
from cselab.errors import CselabError
from cselab.experiments.board import Board
from cselab.experiments.cache import Cache, quiet_libraries
from cselab.experiments.check import check
from cselab.experiments.code import code_of_modules, code_of_notebook, library_hash
from cselab.experiments.grid import Run
from cselab.experiments.keys import digest, node_key, trained_parts
from cselab.experiments.measures import MAIN, MEASURES, Row
from cselab.experiments.run import Machine, RunConfig, Setup
from cselab.experiments.store import Result, Store
from cselab.experiments.train import train, train_node
from cselab.methods import MethodConfig, load_method_file
from cselab.methods.nodes import as_node
from cselab.methods.registry import method_sources
from cselab.paths import replacing
from cselab.training.distributed import rank_and_world

ONE_AT_A_TIME = threading.Lock()
"""For the runs of a process: torch's random state is the process's, not a thread's."""


class Place(NamedTuple):
    """Folder of steps and logs, and users' method files with the files that they import."""

    outputs: str
    modules: tuple[tuple[tuple[str, bytes], ...], ...] = ()


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
        retries: Number of retries of a run whose process raised an error that is neither bad input
            nor divergence. A run whose worker died starts again elsewhere, from its last
            checkpoint, up to dask's `distributed.scheduler.allowed-failures`.

    Raises:
        CselabError: For missing inputs (one line a reason), and for a lost scheduler: finished runs
            are in the store, and the same command goes on.
    """
    place = Place(str(outputs.resolve()), tuple(map(method_sources, modules)))
    known, runs = Store(store), [_for_this_machine(run, place) for run in runs]
    keyed = _by_key(runs, place)
    done = known.done(keyed)
    mention_other_labels(known, {key: keyed[key].label for key in done})
    with Board([run.label for run in keyed.values()], len(client.nthreads())) as board:
        for result in known.results(done):
            board.add(result, reused=True)
        todo = {key: run for key, run in keyed.items() if key not in done}
        _check_inputs(list(todo.values()), place)
        _check_same_data(client, list(todo.values()), place)
        futures = {
            _submit_run(client, key, run, place, retries): (key, run) for key, run in todo.items()
        }
        for future in as_completed(futures):
            key, run = futures[future]
            if future.status == "cancelled":
                raise CselabError(
                    f"scheduler {client.scheduler.address} is lost; {board.finished} of "
                    f"{len(keyed)} runs are in {store}; the same command goes on"
                )
            outcome = future.result() if future.status == "finished" else _failure(future, place)
            result = result_of(run, key, outcome, place)
            known.add(result)
            board.add(result)
    return board


def _by_key(runs: Sequence[Run], place: Place) -> dict[str, Run]:
    """Runs by key; two labels of one key differ in settings that change no result (a device)."""
    keyed: dict[str, Run] = {}
    for run in runs:
        if (first := keyed.setdefault(run_key(run, place), run)).label != run.label:
            raise CselabError(
                f"{first.label!r} and {run.label!r} are the same run: nothing that they differ in "
                "changes a result; leave one out"
            )
    return keyed


def run_key(run: Run, place: Place) -> str:
    """Sixteen hex digits of all that a run's numbers depend on."""
    cache = open_cache(run.config, place)
    data = cache.data.fingerprint
    if run.notebook:
        parameters = [(name, _without_paths(text)) for name, text in run.parameters]
        return digest([code_of_notebook(run.notebook), parameters, data])
    measures = [run.measures, code_of_modules("cselab.experiments.measures"), data]
    return digest([node_key(cache, run.config.method), run.seed, *measures])


def _without_paths(text: str) -> str:
    """A parameter of a notebook, as typed, with the hash of a path's content in its place."""
    values = read_value(text)
    if isinstance(values, list):
        return json.dumps([_without_paths(str(value)) for value in values])
    return ",".join(map(_content, text.split(",")))


def _content(text: str) -> str:
    path = Path(text)
    if path.is_absolute() and path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return folder_hash(path) if path.is_absolute() and path.is_dir() else text


def _for_this_machine(run: Run, place: Place) -> Run:
    """The run in a precision that is fast here, with the folder of CSELAB_DATA, which another
    process may not have."""
    data = run.config.data
    data = data.model_copy(update={"data_dir": data.data_dir or data_folder()})
    config = run.config.model_copy(update={"data": data})
    if not run.notebook:
        config = open_cache(config, place).with_fast_precision(config)
    return replace(run, config=config)


def _check_inputs(runs: Sequence[Run], place: Place) -> None:
    """Check one seed of each run; raise CselabError with a line a reason."""
    labels: dict[str, list[str]] = {}
    for run in {(run.label, run.method): run for run in runs}.values():
        try:
            with _logged(Path(place.outputs) / "sweep.log"):
                check_run(run, open_cache(run.config, place))
        except CselabError as error:
            reason = str(error).removeprefix(f"{run.method}: ")
            labels.setdefault(reason, []).append(run.label)
    if labels:
        lines = [f"{reason} ({', '.join(names)})" for reason, names in labels.items()]
        raise CselabError("no run was started: " + "\n  also: ".join(lines))


def check_run(run: Run, cache: Cache) -> None:
    """Check all inputs of a run; a notebook checks its own."""
    if run.notebook:
        return
    check([run.config], cache)
    if "transfer" in run.measures:
        for name in TRANSFER7:
            load_transfer(name, cache.data.config.data_dir)


def _check_same_data(client: Client, runs: Sequence[Run], place: Place) -> None:
    """Raise CselabError unless all workers read the same data as this process."""
    for run in {run.config.data: run for run in runs}.values():
        here = open_cache(run.config, place).data.fingerprint
        setup = Setup(**{name: getattr(run.config, name) for name in Setup.model_fields})
        text = setup.model_dump_json()
        options = {"pure": False, "allow_other_workers": True}
        asked = {
            worker: client.submit(_fingerprint, text, place, workers=[worker], **options)
            for worker in client.nthreads()
        }
        found = client.gather(asked)
        if set(found.values()) != {here}:
            raise CselabError(
                f"workers see different data ({found}; here {here}); give all the same data_dir, "
                "or one folder that they share"
            )


def _submit_run(client: Client, key: str, run: Run, place: Place, retries: int) -> Future:
    shared = digest(place)  # runs of other folders may be on the same scheduler
    before = []
    if not run.notebook:
        cache = open_cache(run.config, place)
        before = _submit_parts(client, cache, run, run.config.method, place, retries)
    return client.submit(
        run_task,
        run.config.model_dump_json(),
        run.method,
        run.parameters,
        run.measures,
        key,
        place,
        *before,
        key=f"run-{key}-{shared}",
        retries=retries,
    )


def _submit_parts(
    client: Client, cache: Cache, run: Run, node: MethodConfig, place: Place, retries: int
) -> list[Future]:
    """Futures of the trainings that a node starts from; dask runs one task for all who share it."""
    futures = []
    for part in trained_parts(node):
        key = node_key(cache, part)
        before = _submit_parts(client, cache, run, part, place, retries)
        futures.append(
            client.submit(
                train_task,
                run.config.model_dump_json(),
                part.model_dump_json(),
                key,
                place,
                *before,
                key=f"train-{key}-{digest(place)}",
                retries=retries,
            )
        )
    return futures


def _failure(future: Future, place: Place) -> "Outcome":
    error = future.exception()
    log = next(iter(getattr(error, "__notes__", ())), str(Path(place.outputs) / "sweep-logs"))
    return Outcome(error=f"{type(error).__name__}: {error}; see {log}")


class Outcome(NamedTuple):
    """The end of a run, as a worker returns it."""

    rows: tuple[Row, ...] = ()
    environment: Mapping[str, str] = {}
    seconds: float = 0.0
    error: str = ""
    worker: str = ""


def train_task(config: str, node: str, key: str, place: Place, *_before: object) -> None:
    """On a worker: train a node that several runs start from.

    Bad input and divergence are left to the runs, which meet them again.
    """
    with _working(place, key), contextlib.suppress(CselabError):
        cache = open_cache(RunConfig.model_validate_json(config), place)
        train_node(cache, as_node(json.loads(node)))


def run_task(
    config: str,
    method: str,
    parameters: tuple[tuple[str, str], ...],
    measures: tuple[str, ...],
    key: str,
    place: Place,
    *_before: object,
) -> Outcome:
    """On a worker: do a run. Bad input and divergence are outcomes, which are not tried again."""
    started = time.perf_counter()
    rows, environment, error = [], {}, ""
    with _working(place, key):
        try:
            if method.endswith(".ipynb"):
                data_dir = Setup.model_validate_json(config).data.data_dir
                rows = _run_notebook(Path(method), parameters, data_dir, key, place)
            else:
                run = RunConfig.model_validate_json(config)
                cache = open_cache(run, place)
                rows, environment = measure(run, measures, cache), cache.environment
        except CselabError as found:
            error = str(found)
    return Outcome(tuple(rows), environment, time.perf_counter() - started, error, _worker())


def train_and_measure(run: Run, outputs: Path, store: Path | None = None) -> None:
    """Do one run in this process, or in all that a launcher started, and print its scores.

    Args:
        store: Path of a store for the scores, or None.
    """
    place, known = Place(str(outputs.resolve())), Store(store) if store else None
    started = time.perf_counter()
    run = _for_this_machine(run, place)
    cache = open_cache(run.config, place)
    check_run(run, cache)
    rows = measure(run.config, run.measures, cache)
    if rank_and_world()[0]:
        return
    for row in rows:
        print(f"{row.measure:11} {row.task:14} {row.value:8.3f}")
    if known:
        seconds, key = time.perf_counter() - started, run_key(run, place)
        outcome = Outcome(tuple(rows), cache.environment, seconds, worker=_worker())
        if not known.add(result_of(run, key, outcome, place)):
            mention_other_labels(known, {key: run.label})


def _worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def measure(run: RunConfig, measures: Sequence[str], cache: Cache) -> list[Row]:
    """Train, or find, a run's encoder and measure it.

    A measure besides the scores that fails is mentioned and left out, unless it is the only one.
    """
    encoder = train(run, cache).encoder
    rows: list[Row] = []
    failed = None
    for name in measures:
        try:
            rows += MEASURES[name](cache.data, encoder)
        except Exception as error:  # also a full memory
            if name in MAIN:
                raise
            failed = error
            if not rank_and_world()[0]:
                reason = " ".join(str(error).split())[:200]
                print(f"{name} is left out ({type(error).__name__}: {reason})")
    if failed and not rows:
        raise failed
    return list({(row.measure, row.task): row for row in rows}.values())  # "sts" has dev too


def result_of(run: Run, key: str, outcome: Outcome, place: Place) -> Result:
    """A run's row of the store."""
    return Result(
        key=key,
        label=run.label,
        method=Path(run.method).stem if run.notebook else run.method,
        seed=run.seed,
        profile=run.config.profile,
        settings=run.config.model_dump(mode="json"),
        source=library_hash(),
        data=open_cache(run.config, place).data.fingerprint,
        seconds=round(outcome.seconds, 1),
        worker=outcome.worker,
        environment=dict(outcome.environment),
        error=outcome.error,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        rows=[(*row,) for row in outcome.rows],
    )


def mention_other_labels(store: Store, labels: Mapping[str, str]) -> None:
    """Print which runs, by key, the store has under another label."""
    kept = store.runs().set_index("key").label
    for label, old in dict.fromkeys((label, kept[key]) for key, label in labels.items()):
        if label != old:
            print(f"{label!r} is in {store.path} as {old!r}, and the report calls it so")


def open_cache(setup: Setup, place: Place) -> Cache:
    """A run's cache, whose steps are the sweep's; one for all seeds on the same data."""
    os.environ |= {
        "CSELAB_OUTPUTS": place.outputs,
        "CSELAB_RUN_DIR": str(Path(place.outputs) / "runs" / "sweep"),
    }
    return _cache_of(setup.data, setup.machine.device, place.outputs)


@functools.lru_cache(maxsize=4)
def _cache_of(data: DataConfig, device: str, outputs: str) -> Cache:
    quiet_libraries()
    machine = Machine(device=device, outputs=outputs)
    return Cache(Setup(profile="tiny", data=data, machine=machine))


def _fingerprint(setup: str, place: Place) -> str:
    return open_cache(Setup.model_validate_json(setup), place).data.fingerprint


def _run_notebook(
    notebook: Path,
    parameters: Sequence[tuple[str, str]],
    data_dir: Path | None,
    key: str,
    place: Place,
) -> list[Row]:
    """Run a notebook by `cselab run`; its rows are the scores that it recorded."""
    name = f"sweep-{key}"
    folder = Path(place.outputs) / "runs" / name
    command = [sys.executable, "-m", "cselab", "run", "--outputs", place.outputs]
    if (folder / "run.json").is_file():
        command += ["--resume", name]
    else:
        command += [str(notebook), "--name", name]
        command += [word for n, value in parameters for word in ("-p", f"{n}={value}")]
    environment = {**os.environ, **({"CSELAB_DATA": str(data_dir)} if data_dir else {})}
    environment.pop("CSELAB_RUN_DIR", None)
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    print(done.stdout, done.stderr)
    if done.returncode:
        raise CselabError(f"notebook {notebook.stem} failed; see {folder}")
    path = folder / "results.jsonl"
    try:
        recorded = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    except ValueError as error:
        raise CselabError(
            f"{path} is damaged ({error}); remove its folder to run the notebook again"
        ) from None
    rows = {(row["method"], row["task"]): row for row in recorded}
    settings = {(row["method"], row["task"], row["seed"], row["settings"]) for row in recorded}
    if len(rows) < len(settings):
        raise CselabError(
            f"notebook {notebook.stem} recorded a method with several seeds or settings, and a "
            "sweep keeps one score a method and task; sweep the notebook's seeds and settings"
        )
    return [Row(*name, row["score"], row["n"]) for name, row in rows.items()]


@contextlib.contextmanager
def _working(place: Place, key: str) -> Iterator[None]:
    """One run at a time, with the sweep's methods; its output goes to a log."""
    log = Path(place.outputs) / "sweep-logs" / f"{key}.log"
    with ONE_AT_A_TIME, _logged(log):
        try:
            _load_modules(place)
            yield
        except Exception as error:
            error.add_note(str(log))
            raise


@contextlib.contextmanager
def _logged(log: Path) -> Iterator[None]:
    """Redirect output to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield


def _load_modules(place: Place) -> None:
    """Register the sweep's own methods, from files that are written once by content."""
    for files in place.modules:
        name = hashlib.sha256(repr(files).encode()).hexdigest()[:12]
        folder = Path(place.outputs) / "methods" / name
        for file, content in files:
            if not (path := folder / file).is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as work:
                    work.write_bytes(content)
        load_method_file(folder / files[0][0])
