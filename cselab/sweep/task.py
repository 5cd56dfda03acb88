"""What a worker does: one run from settings to rows in the store, or a training that several runs start from."""

import contextlib
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cselab import open_lab, stages
from cselab.batch.report import read_rows
from cselab.batch.runner import run as run_notebooks
from cselab.data.transfer import TRANSFER7, load_transfer
from cselab.environment import source_hash
from cselab.errors import CselabError
from cselab.lab import Lab, settings_hash
from cselab.settings import Settings
from cselab.sweep import measures
from cselab.sweep.grid import Run
from cselab.sweep.measures import MEASURES, Row
from cselab.sweep.store import Result, Store
from cselab.systems import check, system

ALONE = threading.Lock()
"""One run at a time in a process: torch's random state belongs to the process, not to a thread."""
OF_DATA = (
    "profile",
    "data_dir",
    "hub",
    "corpus",
    "sentences",
    "tasks",
    "dev_task",
    "dev_pairs",
    "world_pairs",
    "nli",
    "triplets",
)
"""Settings that say which data a run reads; the translators' are in its own."""


class Place(NamedTuple):
    """Where a sweep keeps things, as its workers see it."""

    store: str
    outputs: str


class Told(NamedTuple):
    """What the process that asked gets to know of a run; the rest is in the store."""

    key: str
    error: str
    test: float | None
    dev: float | None
    seconds: float


def data_fingerprint(settings: Settings, outputs: str) -> str:
    """Of all text and pairs that runs with these settings can read: sixteen hex digits."""
    with ALONE, _said_to(Path(outputs) / "sweep.log"):
        lab = lab_of(settings, outputs)
        digest = hashlib.sha256(stages.sentences(lab).fingerprint.encode())
        for pairs in (*stages.test_data(lab), stages.dev_pairs(lab), stages.world_pairs(lab)):
            digest.update(pairs.fingerprint.encode())
        with contextlib.suppress(CselabError):  # a folder need not have any; who asks for them says so
            digest.update(repr(stages.nli_triplets(lab)).encode())
    return digest.hexdigest()[:16]


def problems(runs: Sequence[Run], outputs: str) -> dict[str, list[str]]:
    """What would end some of these runs sooner or later: the error, and the labels of the runs that it would end."""
    found: dict[str, list[str]] = {}
    with ALONE, _said_to(Path(outputs) / "sweep.log"):
        for run in runs:
            try:
                check_run(run, lab_of(run.settings, outputs))
            except CselabError as error:
                found.setdefault(str(error).removeprefix(f"{run.what}: "), []).append(run.label)
    return found


def check_run(run: Run, lab: Lab) -> None:
    """Raises CselabError where something that the run will read is missing; a notebook checks its own."""
    if run.notebook:
        return
    check(lab, run.what)
    if "transfer" in run.measures:
        for name in TRANSFER7:
            load_transfer(name, lab.settings.data_dir)


def key_of(run: Run, data: str) -> str:
    """What makes a run the same run: system or notebook, settings, measures, the library's source, and the data."""
    what = hashlib.sha256(run.notebook.read_bytes()).hexdigest() if run.notebook else run.what
    how = hashlib.sha256(Path(measures.__file__).read_bytes()).hexdigest()  # not part of the source that trains
    parts = [what, settings_hash(run.settings), run.measures, how, source_hash(), data]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def prepare(name: str, settings: Settings, outputs: str, *_after: object) -> None:
    """Train what several runs start from. What goes wrong here, bad input or a divergence, is told by the runs, which meet it again."""
    with ALONE, _said_to(Path(outputs) / "sweep.log"), contextlib.suppress(CselabError):
        system(name).build(lab_of(settings, outputs))


def execute(run: Run, key: str, data: str, place: Place, *_after: object) -> Told:
    """Do the run and write it to the store; what is there already is not done again.

    Bad input and divergence are results: they are written and not tried again. Anything else is raised, so that the scheduler may
    retry.
    """
    store = Store(place.store)
    if store.done([key]):
        return told(store, key)
    started = time.perf_counter()
    error, rows, environment = "", [], {}
    with ALONE, _said_to(log_of(place, key)):
        try:
            if run.notebook:
                rows, environment = _notebook(run, key, place)
            else:
                lab = lab_of(run.settings, place.outputs)
                rows, environment = measured(run, lab), lab.environment
        except CselabError as found:
            error = str(found)
    store.add(result(run, key, data, time.perf_counter() - started, error, rows, environment))
    return told(store, key)


def measured(run: Run, lab: Lab) -> list[Row]:
    """Train, or find, the run's system and measure it."""
    encoder = system(run.what).build(lab)
    return [row for measure in run.measures for row in MEASURES[measure](lab, encoder)]


def result(
    run: Run,
    key: str,
    data: str,
    seconds: float,
    error: str,
    rows: list[Row] | None = None,
    environment: dict | None = None,
) -> Result:
    """A run's row of the store."""
    settings = run.settings
    return Result(
        key=key, label=run.label, what=run.notebook.stem if run.notebook else run.what, seed=settings.seed, profile=settings.profile,
        settings=settings.model_dump(mode="json", exclude_unset=True, exclude={"profile"}), source=source_hash(), data=data,
        seconds=round(seconds, 1), worker=f"{socket.gethostname()}:{os.getpid()}", environment=environment or {}, error=error,
        finished=datetime.now(UTC).isoformat(timespec="seconds"), rows=[tuple(row) for row in rows or ()],
    )  # fmt: skip


def told(store: Store, key: str) -> Told:
    """Of a run in the store."""
    error, seconds, scores = store.summary(key)
    return Told(
        key,
        error,
        scores.get(("test", "average")),
        next((v for (m, _), v in scores.items() if m == "dev"), None),
        seconds,
    )


def log_of(place: Place, key: str) -> Path:
    """What a run printed."""
    return Path(place.outputs) / "sweep-logs" / f"{key}.log"


def lab_of(settings: Settings, outputs: str) -> Lab:
    """A run's lab, whose stages are the sweep's."""
    given = settings.model_dump(exclude_unset=True, exclude={"outputs"})
    os.environ |= {"CSELAB_OUTPUTS": outputs, "CSELAB_RUN_DIR": str(Path(outputs) / "runs" / "sweep")}
    return open_lab("sweep", outputs=outputs, **given)


def _notebook(run: Run, key: str, place: Place) -> tuple[list[Row], dict]:
    """Execute the notebook in its own kernel; its rows are the scores it recorded."""
    given = {name: str(value) for name, value in run.given}
    outputs = Path(place.outputs)
    if not run_notebooks([run.notebook], given, outputs, name=f"sweep-{key}", resume=True):
        raise CselabError(f"notebook {run.notebook.stem} failed; see {outputs / 'runs' / f'sweep-{key}'}")
    recorded = read_rows(outputs / "runs" / f"sweep-{key}")
    return [Row(row["method"], row["task"], row["score"], row["n"]) for row in recorded], {}


@contextlib.contextmanager
def _said_to(log: Path) -> Iterator[None]:
    """What is printed goes to a file: a worker's terminal is another's."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        yield
