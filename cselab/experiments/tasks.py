"""One run, in this process or as tasks of a sweep on a worker."""

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
from typing import Any, NamedTuple

from cselab.data.settings import DataConfig
from cselab.data.sources import data_folder
from cselab.data.transfer import TRANSFER7, load_transfer
from cselab.errors import CselabError
from cselab.experiments.cache import Cache, quiet_libraries
from cselab.experiments.check import check
from cselab.experiments.code import library_hash
from cselab.experiments.grid import Run
from cselab.experiments.keys import run_key
from cselab.experiments.measures import CURVE, LONG, Row, measure
from cselab.experiments.run import Machine, RunConfig, Setup
from cselab.experiments.store import Result, Store
from cselab.experiments.train import train, train_node, trips_of
from cselab.methods import MethodConfig, load_method_file
from cselab.methods.nodes import as_node
from cselab.paths import replacing
from cselab.training.distributed import rank_and_world

ONE_AT_A_TIME = threading.Lock()
"""For the runs of a process: torch's random state is the process's, not a thread's."""


def train_and_measure(run: Run, outputs: Path, store: Path | None = None) -> None:
    """Do one run in this process, or in all that a launcher started, and print its scores.

    Args:
        store: Path of a store for the scores, or None.
    """
    scores, started = Store(store) if store else None, time.perf_counter()
    run = for_this_machine(run, outputs.resolve())
    cache = open_cache(run.config, outputs.resolve())
    check_run(run, cache)
    rows = _measured(run.config, run.measures, cache)
    if rank_and_world()[0]:
        return
    for row in rows:
        if row.measure not in LONG:
            print(f"{row.measure:11} {row.task:14} {row.value:8.3f}")
    if scores:
        outcome: dict[str, Any] = {"rows": [(*row,) for row in rows], "worker": process_name()}
        environment = cache.environment | translators(run.config.method, cache)
        outcome |= {"seconds": time.perf_counter() - started, "environment": environment}
        result = new_result(run, run_key(run, cache), cache, outcome)
        if not scores.add(result):
            scores.mention_other_labels({result.key: run.label})


def _measured(run: RunConfig, measures: Sequence[str], cache: Cache) -> list[Row]:
    """Train a run; its numbers, and its dev score at each evaluation, from step 0 on."""
    trained = train(run, cache)
    curve = [Row(CURVE, str(row["step"]), row["dev"], 0) for row in trained.fit.get("history", ())]
    return measure(cache.data, trained.encoder, measures) + curve


def open_cache(setup: Setup, outputs: Path) -> Cache:
    """A run's cache, whose steps are the sweep's; one for all seeds on the same data."""
    machine = Machine(device=setup.machine.device, save_every=setup.machine.save_every)
    return _keep_cache(setup.data, machine, outputs)


@functools.lru_cache(maxsize=4)
def _keep_cache(data: DataConfig, machine: Machine, outputs: Path) -> Cache:
    quiet_libraries()
    return Cache(Setup(profile="tiny", data=data, machine=machine), outputs)


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
    if any("transfer" in name for name in run.measures):
        for name in TRANSFER7:
            load_transfer(name, cache.data.config.data_dir, hub=cache.data.config.hub)


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


def translators(node: MethodConfig, cache: Cache) -> dict[str, str]:
    """Pivots, and fingerprints of their translators, whose round trips a tree reads."""
    found = {f"{one.pivot} {cache.translator(one).fingerprint}" for one in trips_of(node)}
    return {"translators": ", ".join(sorted(found))} if found else {}


def process_name() -> str:
    """The host and the number of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class SweepFiles(NamedTuple):
    """Folder of steps and logs, and users' method files, each with the files that it imports."""

    outputs: Path
    modules: tuple[tuple[tuple[str, bytes], ...], ...] = ()


def fingerprint(setup: str, files: SweepFiles) -> str:
    """Hash of all data that runs with this setup, as JSON, read here."""
    return open_cache(Setup.model_validate_json(setup), files.outputs).data.fingerprint


def train_task(config: str, node: str, key: str, files: SweepFiles, *_before: object) -> None:
    """Train a node that several runs start from.

    Bad input and divergence are left to the runs, which meet them again.
    """
    with _working(files, key), contextlib.suppress(CselabError):
        cache = open_cache(RunConfig.model_validate_json(config), files.outputs)
        train_node(cache, as_node(json.loads(node)))


def run_task(
    config: str,
    method: str,
    parameters: tuple[tuple[str, str], ...],
    measures: tuple[str, ...],
    key: str,
    files: SweepFiles,
    *_before: object,
) -> dict[str, Any]:
    """Do a run; returns columns of its row in the store.

    Bad input and divergence are outcomes, which are not tried again.
    """
    started = time.perf_counter()
    outcome: dict[str, Any] = {"worker": process_name()}
    with _working(files, key):
        try:
            if method.endswith(".ipynb"):
                data_dir = Setup.model_validate_json(config).data.data_dir
                rows = _run_notebook(Path(method), parameters, data_dir, key, files.outputs)
            else:
                run = RunConfig.model_validate_json(config)
                cache = open_cache(run, files.outputs)
                rows = _measured(run, measures, cache)
                outcome["environment"] = cache.environment | translators(run.method, cache)
            outcome["rows"] = [(*row,) for row in rows]
        except CselabError as error:
            outcome["error"] = str(error)
    return {**outcome, "seconds": time.perf_counter() - started}


def _run_notebook(
    notebook: Path,
    parameters: Sequence[tuple[str, str]],
    data_dir: Path | None,
    key: str,
    outputs: Path,
) -> list[Row]:
    """Run a notebook by `cselab run`; its rows are the scores that it recorded."""
    name = f"sweep-{key}"
    folder = outputs / "runs" / name
    command = [sys.executable, "-m", "cselab", "run", "--outputs", str(outputs)]
    if (folder / "run.json").is_file():
        command += ["--resume", name]
    else:
        command += [str(notebook), "--name", name]
        command += [word for n, value in parameters for word in ("-p", f"{n}={value}")]
    environment = {**os.environ, **({"CSELAB_DATA": str(data_dir)} if data_dir else {})}
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
def _working(files: SweepFiles, key: str) -> Iterator[None]:
    """One run at a time, with the sweep's methods; its output goes to a log."""
    log = files.outputs / "sweep-logs" / f"{key}.log"
    with ONE_AT_A_TIME, logged(log):
        try:
            _load_modules(files)
            yield
        except Exception as error:
            error.add_note(str(log))
            raise


@contextlib.contextmanager
def logged(log: Path) -> Iterator[None]:
    """Redirect output to `log`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        log.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        yield


def _load_modules(files: SweepFiles) -> None:
    """Register the sweep's own methods, from files that are written once by content."""
    for sources in files.modules:
        name = hashlib.sha256(repr(sources).encode()).hexdigest()[:12]
        folder = files.outputs / "methods" / name
        for file, content in sources:
            if not (path := folder / file).is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as work:
                    work.write_bytes(content)
        load_method_file(folder / sources[0][0])
