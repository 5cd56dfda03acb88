"""What a worker does: one run from its configuration to rows in the store, or a training that
several runs start from."""

import contextlib
import functools
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from cselab.config import read_value
from cselab.data.config import DataConfig
from cselab.data.fingerprints import folder_hash
from cselab.data.sources import data_folder
from cselab.data.transfer import TRANSFER7, load_transfer
from cselab.errors import CselabError
from cselab.experiments.check import check
from cselab.experiments.code import code_of_modules
from cselab.experiments.config import Machine, RunConfig
from cselab.experiments.environment import library_hash
from cselab.experiments.keys import node_key, trained_parts
from cselab.experiments.lab import open_lab
from cselab.experiments.session import Session
from cselab.experiments.train import train, train_node
from cselab.experiments.workspace import Workspace
from cselab.methods import MethodConfig, load_method_file
from cselab.methods.config import as_node
from cselab.paths import replacing
from cselab.sweep.grid import Run
from cselab.sweep.measures import MAIN, MEASURES, Row
from cselab.sweep.store import Result, Store
from cselab.training.distributed import rank_and_world

ALONE = threading.Lock()
"""One run at a time in a process: torch's random state is the process's, not a thread's."""


class Place(NamedTuple):
    """Where a sweep keeps things, as its workers see it.

    Attributes:
        store: Path of the store.
        outputs: Folder of steps and logs.
        modules: Files of methods and what they import, which a worker may not have; see
            `cselab.methods.registry.method_sources`.
    """

    store: str
    outputs: str
    modules: tuple[tuple[tuple[str, bytes], ...], ...] = ()


class Job(NamedTuple):
    """A run as it travels to a worker.

    Its values are plain, for a method's class may be in no module that the worker has; see `Run`.
    """

    label: str
    method: str
    seed: int
    config: str
    given: tuple
    measures: tuple[str, ...]

    @classmethod
    def of(cls, run: Run) -> "Job":
        """The run's plain values."""
        text = run.config.model_copy(
            update={"data": _with_folder(run.config.data)}
        ).model_dump_json()
        return cls(run.label, run.method, run.seed, text, run.given, run.measures)

    def run(self) -> Run:
        """The run again; its method has to be registered."""
        config = RunConfig.model_validate_json(self.config)
        return Run(self.label, self.method, self.seed, config, self.given, self.measures)


class Training(NamedTuple):
    """A training that runs start from.

    Attributes:
        key: Key of the training.
        node: Configuration of the training as JSON.
        after: Keys of the trainings before it.
    """

    key: str
    node: str
    after: tuple[str, ...]


class Plan(NamedTuple):
    """What a worker knows of one run before it starts.

    Attributes:
        key: Key of the run.
        data: Fingerprint of its data.
        trainings: Those before it.
        after: Keys of the last of them.
    """

    key: str
    data: str
    trainings: tuple[Training, ...]
    after: tuple[str, ...]


class Summary(NamedTuple):
    """Run summary returned to the client; the rest is in the store."""

    key: str
    error: str
    test: float | None
    dev: float | None
    seconds: float


def plans(jobs: Sequence[Job], place: Place) -> list[Plan]:
    """Keys of runs, of their data and of the trainings they share, as this worker finds them.

    Args:
        jobs: The runs.
        place: Where the sweep keeps things.
    """
    with _working(place):
        return [_plan(job.run(), place.outputs) for job in jobs]


def _plan(run: Run, outputs: str) -> Plan:
    session = session_of(run.config, outputs)
    data = data_fingerprint(session)
    if run.notebook:
        content = hashlib.sha256(run.notebook.read_bytes()).hexdigest()
        given = [(name, _without_paths(value)) for name, value in run.given]
        parts = [content, given, library_hash(), data]
        return Plan(_hash(parts), data, (), ())
    node = session.workspace.with_fast_precision(run.config).method
    measures = [run.measures, code_of_modules("cselab.sweep.measures"), data]
    found: dict[str, Training] = {}
    after = _trainings(session, node, found)
    key = _hash([node_key(session, node), run.seed, *measures])
    return Plan(key, data, tuple(found.values()), after)


def _without_paths(value: str) -> str:
    """A parameter of a notebook, as typed, with what a path holds in the place of the path."""
    listed = read_value(value)
    if isinstance(listed, list):
        return json.dumps([_without_paths(str(part)) for part in listed])
    return ",".join(map(_held, value.split(",")))


def _held(text: str) -> str:
    if os.path.isabs(text) and os.path.isfile(text):
        return hashlib.sha256(Path(text).read_bytes()).hexdigest()
    return folder_hash(Path(text)) if os.path.isabs(text) and os.path.isdir(text) else text


def _trainings(session: Session, node: MethodConfig, found: dict[str, Training]) -> tuple[str, ...]:
    """The nearest trainings before a node, by key; `found` collects all of them."""
    keys = []
    for part in trained_parts(node):
        key = node_key(session, part)
        if key not in found:
            after = _trainings(session, part, found)
            found[key] = Training(key, part.model_dump_json(), after)
        keys.append(key)
    return tuple(keys)


def _hash(parts: list) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:16]


@functools.lru_cache(maxsize=4)
def data_fingerprint(session: Session) -> str:
    """Sixteen hex digits of all text and pairs that runs on this data can read."""
    digest = hashlib.sha256(session.text.fingerprint.encode())
    for pairs in (*session.test_data, session.dev_pairs, session.synthetic_pairs):
        digest.update(pairs.fingerprint.encode())
    with contextlib.suppress(CselabError):  # a folder need not have any; who asks for them says so
        digest.update(session.triplets_hash.encode())
    return digest.hexdigest()[:16]


def problems(jobs: Sequence[Job], place: Place) -> dict[str, list[str]]:
    """What would end some of these runs sooner or later.

    Args:
        jobs: The runs.
        place: Where the sweep keeps things.

    Returns:
        By error, the labels of the runs.
    """
    found: dict[str, list[str]] = {}
    with _working(place):
        for job in jobs:
            run = job.run()
            try:
                check_run(run, session_of(run.config, place.outputs))
            except CselabError as error:
                reason = str(error).removeprefix(f"{run.method}: ")
                found.setdefault(reason, []).append(run.label)
    return found


def check_run(run: Run, session: Session) -> None:
    """Check that all that the run will read is there; a notebook checks its own.

    Args:
        run: The run.
        session: Session of the run's data.

    Raises:
        CselabError: Where something is missing.
    """
    if run.notebook:
        return
    check([run.config], session)
    if "transfer" in run.measures:
        for name in TRANSFER7:
            load_transfer(name, session.data.data_dir)


def prepare(job: Job, training: Training, place: Place, *_after: object) -> None:
    """Train what several runs start from.

    What goes wrong here, bad input or a divergence, is reported by the runs, which meet it again.

    Args:
        job: One of the runs.
        training: What they start from.
        place: Where the sweep keeps things.
        *_after: Trainings that the scheduler has to finish first.
    """
    with _working(place, log_of(place, training.key)), contextlib.suppress(CselabError):
        node = as_node(json.loads(training.node))
        train_node(session_of(job.run().config, place.outputs), node)


def execute(job: Job, plan: Plan, place: Place, *_after: object) -> Summary:
    """Do the run and write it to the store; what is there already is not done again.

    Bad input and divergence are results: they are written and not tried again. Anything else is
    raised, so that the scheduler may retry.

    Args:
        job: The run.
        plan: Keys of the run.
        place: Where the sweep keeps things.
        *_after: Trainings that the scheduler has to finish first.
    """
    store = Store(place.store)
    if store.done([plan.key]):
        return summary(store, plan.key)
    started = time.perf_counter()
    error, rows, environment = "", [], {}
    with _working(place, log_of(place, plan.key)):
        run = job.run()
        try:
            if run.notebook:
                rows = _notebook(run, plan.key, place)
            else:
                session = session_of(run.config, place.outputs)
                rows = measured(run, session)
                environment = session.workspace.environment
        except CselabError as found:
            error = str(found)
    seconds = time.perf_counter() - started
    store.add(result(job, plan, seconds, error, rows, environment))
    return summary(store, plan.key)


def measured(run: Run, session: Session) -> list[Row]:
    """Train, or find, the run's method and measure it.

    A measure besides the scores that fails is said and left out, unless nothing else is measured.
    """
    encoder = train(run.config, session).encoder
    rows: list[Row] = []
    failed = None
    for measure in run.measures:
        try:
            rows += MEASURES[measure](session, encoder)
        except Exception as error:  # also a full memory
            if measure in MAIN:
                raise
            failed = error
            if not rank_and_world()[0]:
                reason = " ".join(str(error).split())[:200]
                print(f"{measure} is left out ({type(error).__name__}: {reason})")
    if failed and not rows:
        raise failed
    return list({(row.measure, row.task): row for row in rows}.values())  # "sts" has dev too


def result(
    job: Job,
    plan: Plan,
    seconds: float,
    error: str,
    rows: Sequence[Row] = (),
    environment: dict | None = None,
) -> Result:
    """A run's row of the store.

    Args:
        job: The run.
        plan: Keys of the run.
        seconds: Running time in seconds.
        error: Empty for a finished one.
        rows: Numbers of the run.
        environment: Versions and hardware.
    """
    config = json.loads(job.config)
    method = Path(job.method).stem if job.method.endswith(".ipynb") else job.method
    return Result(
        key=plan.key,
        label=job.label,
        method=method,
        seed=job.seed,
        profile=config["profile"],
        settings=config,
        source=library_hash(),
        data=plan.data,
        seconds=round(seconds, 1),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        environment=environment or {},
        error=error,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        rows=[(*row,) for row in rows],
    )


def summary(store: Store, key: str) -> Summary:
    """Of a run in the store."""
    error, seconds, scores = store.summary(key)
    dev = next((value for (measure, _), value in scores.items() if measure == "dev"), None)
    return Summary(key, error, scores.get(("test", "average")), dev, seconds)


def tell_other_labels(store: Store, labels: Mapping[str, str]) -> None:
    """Say which runs the store has under another label.

    Args:
        store: The store.
        labels: Labels by key, of runs that are in the store.
    """
    kept = store.runs().set_index("key").label
    for label, old in dict.fromkeys((label, kept[key]) for key, label in labels.items()):
        if label != old:
            print(f"{label!r} is in {store.path} as {old!r}, and the report calls it so")


def log_of(place: Place, key: str) -> Path:
    """What a run, or a training that runs share, printed."""
    return Path(place.outputs) / "sweep-logs" / f"{key}.log"


def session_of(config: RunConfig, outputs: str) -> Session:
    """A run's session, whose steps are the sweep's; one for all seeds on the same data."""
    os.environ |= {
        "CSELAB_OUTPUTS": outputs,
        "CSELAB_RUN_DIR": str(Path(outputs) / "runs" / "sweep"),
    }
    return _session(config.machine.device, outputs, _with_folder(config.data))


def _with_folder(data: DataConfig) -> DataConfig:
    """The settings with the folder of CSELAB_DATA, which another process may not have, or have as
    another."""
    return data.model_copy(update={"data_dir": data.data_dir or data_folder()})


@functools.lru_cache(maxsize=4)
def _session(device: str, outputs: str, data: DataConfig) -> Session:
    open_lab("sweep", device=device, outputs=outputs)  # quiet; a training seeds itself
    return Session(Workspace(Machine(device=device, outputs=Path(outputs))), data)


def _notebook(run: Run, key: str, place: Place) -> list[Row]:
    """Execute the notebook in its own kernel; its rows are the scores it recorded."""
    from cselab.headless.report import read_rows  # with nbformat, a second and a half
    from cselab.headless.runner import environment
    from cselab.headless.runner import run as run_notebooks

    notebook, outputs = Path(run.method), Path(place.outputs)
    data, name = run.config.data.data_dir, f"sweep-{key}"
    with environment(**({"CSELAB_DATA": str(data)} if data else {})):
        if not run_notebooks([notebook], dict(run.given), outputs, name=name, resume=True):
            raise CselabError(f"notebook {notebook.stem} failed; see {outputs / 'runs' / name}")

    def refuse(line: str) -> None:
        raise CselabError(f"{line}; remove that folder to run the notebook again")

    recorded = read_rows(outputs / "runs" / name, say=refuse)
    rows = {(row["method"], row["task"]): row for row in recorded}
    if len(rows) < len(recorded):
        raise CselabError(
            f"notebook {notebook.stem} recorded a method with several seeds or settings, and a "
            "sweep keeps one score a method and task; sweep the notebook's seeds and settings"
        )
    return [Row(*name, row["score"], row["n"]) for name, row in rows.items()]


@contextlib.contextmanager
def _working(place: Place, log: Path | None = None) -> Iterator[None]:
    """One run at a time, with the sweep's methods; what it prints goes to a file."""
    log = log or Path(place.outputs) / "sweep.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with (
        ALONE,
        log.open("a", encoding="utf-8") as file,
        contextlib.redirect_stdout(file),
        contextlib.redirect_stderr(file),
    ):
        _load_modules(place)
        yield


def _load_modules(place: Place) -> None:
    """Register the sweep's own methods, from files that are written once by content."""
    for files in place.modules:
        digest = hashlib.sha256(repr(files).encode()).hexdigest()[:12]
        folder = Path(place.outputs) / "methods" / digest
        for name, content in files:
            if not (path := folder / name).is_file():
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as work:
                    work.write_bytes(content)
        load_method_file(folder / files[0][0])
