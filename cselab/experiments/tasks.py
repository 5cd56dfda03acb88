"""Tasks of a sweep on a worker: a training that several runs share, a run, a notebook."""

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cselab.errors import CselabError
from cselab.experiments.measures import Row, measure
from cselab.experiments.run import RunConfig, Setup
from cselab.experiments.single_run import open_cache, process_name
from cselab.experiments.train import train, train_node
from cselab.methods import load_method_file
from cselab.methods.config import as_node
from cselab.paths import replacing

ONE_AT_A_TIME = threading.Lock()
"""For the runs of a process: torch's random state is the process's, not a thread's."""


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
                rows = measure(cache.data, train(run, cache).encoder, measures)
                outcome["environment"] = cache.environment
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
