"""Run notebooks, one after the other or some at a time, each in its own kernel process, and leave pages to look at."""

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat

from cselab.batch.engine import NotebookFailed, execute
from cselab.batch.page import write_page
from cselab.batch.parameters import assign
from cselab.batch.progress import Durations, LiveLine, clock
from cselab.batch.record import RunRecord
from cselab.batch.report import Outcome, write_index
from cselab.errors import CselabError, suggest

MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": "4000000000",
    "MALLOC_MMAP_THRESHOLD_": "4000000000",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Of processes that train, from before they start, for glibc reads it once. A freed tensor's memory is kept: by default large blocks go
back to the system and the next step faults them in again, which costs a small model a seventh of its training on a CPU. And it is asked
for in huge pages, where the system gives them to those that ask (Linux's `madvise`): a tenth more."""

ANSI = re.compile(r"\x1b\[[0-9;]*m")
"""Colours of a traceback, for a terminal only."""


def find_notebooks(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Notebooks of `folder` by number ("03"), stem or path, in the order given; without names all numbered ones, in order."""
    there = {path.stem: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}
    if not there:
        raise CselabError(f"no notebooks in {folder}; run from the project's folder")
    others = {path.stem: path for path in folder.glob("[a-z]*.ipynb")}  # by their name only, not by default
    by_name = {**{stem[:2]: path for stem, path in there.items()}, **there, **others}
    chosen = []
    for name in names or there:
        path = (
            by_name.get(name)
            or by_name.get(name.zfill(2))
            or (Path(name) if name.endswith(".ipynb") and Path(name).is_file() else None)
        )
        if path is None:
            raise CselabError(f"no notebook {name!r}; {suggest(name, [*there, *others])}")
        chosen.append(path)
    return chosen


def title_of(notebook: Path) -> str:
    """The first heading."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            return cell.source.splitlines()[0].removeprefix("# ")
    return notebook.stem


def run(
    notebooks: Sequence[Path],
    given: Mapping[str, str],
    outputs: Path,
    *,
    name: str | None = None,
    timeout: int | None = None,
    limit: int | None = None,
    fail_fast: bool = False,
    jobs: int = 1,
    resume: bool = False,
) -> bool:
    """Execute `notebooks` with the parameters `given` (texts, as typed); True when all finished.

    timeout, limit: seconds that a cell, and that a notebook, may take.
    resume: the run folder `name` may be there; its notebooks that finished are not executed again.
    jobs: how many at a time; each then gets its share of the cores. Where two need the same stage, one computes it and the
        other waits.

    Everything is checked before the first kernel starts. Raises CselabError for unknown or mistyped parameters, for a
    run folder that is taken, and for fewer than one job.
    """
    if jobs < 1:
        raise CselabError(f"--jobs {jobs}: expected 1 or more notebooks at a time")
    values = assign(given, notebooks)
    folder = _run_folder(outputs, name, resume)
    record = RunRecord(folder / "run.json", notebooks, given)
    outcomes = {stem: outcome for stem, outcome in record.outcomes.items() if not outcome.failure}
    durations = Durations(outputs / "durations.json")
    profile = given.get("profile", "")
    jobs_of = [
        Job(
            f"[{i}/{len(notebooks)}] {notebook.stem}", notebook, values[notebook], folder, timeout, limit,
            durations.seconds.get(f"{notebook.stem}:{profile}"), live=jobs == 1,
        )
        for i, notebook in enumerate(notebooks, 1)
    ]  # fmt: skip
    todo = [job for job in jobs_of if job.notebook.stem not in outcomes]
    if outcomes:
        print(f"{len(outcomes)} of {len(notebooks)} notebooks had finished")
    index = write_index(folder, list(outcomes.values()), dict(given))
    started = time.monotonic()
    variables = {"CSELAB_RUN_DIR": str(folder), "CSELAB_OUTPUTS": str(outputs.resolve()), **MALLOC}
    if jobs > 1 and "OMP_NUM_THREADS" not in os.environ:
        variables["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    with _environment(**variables), _outcomes(todo, jobs) as ended:
        for outcome in ended:
            outcomes[outcome.stem] = outcome
            record.write(outcomes)
            if not outcome.failure:
                durations.add(f"{outcome.stem}:{profile}", outcome.seconds)
            in_order = [outcomes[job.notebook.stem] for job in jobs_of if job.notebook.stem in outcomes]
            index = write_index(folder, in_order, dict(given))
            if outcome.failure and fail_fast:
                break
    _point_latest(outputs, folder)
    print(f"{clock(time.monotonic() - started)} in all; report: {index}")
    return not any(outcome.failure for outcome in outcomes.values())


@dataclass(frozen=True)
class Job:
    """One notebook of a run. expected: seconds it took before. live: whether its line may be redrawn."""

    label: str
    notebook: Path
    parameters: dict[str, Any]
    folder: Path
    timeout: int | None
    limit: int | None
    expected: float | None
    live: bool


@contextmanager
def _outcomes(todo: Sequence[Job], jobs: int) -> Iterator[Iterable[Outcome]]:
    """Outcomes as notebooks end: here, one after the other, or from processes (papermill changes the working folder)."""
    if jobs == 1:
        yield map(_execute, todo)
        return
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
    try:
        yield (future.result() for future in as_completed([pool.submit(_execute, job) for job in todo]))
    finally:
        pool.shutdown(cancel_futures=True)


def _execute(job: Job) -> Outcome:
    """Run one notebook, tell how it goes, and write its page."""
    notebook, executed, failure = job.notebook, job.folder / job.notebook.name, ""
    line = LiveLine(job.label, job.expected, live=job.live)
    with line:
        try:
            execute(
                notebook, executed, job.parameters, log=job.folder / f"{notebook.stem}.log",
                cwd=notebook.parent.resolve(), timeout=job.timeout, limit=job.limit, on_cell=line.on_cell,
            )  # fmt: skip
            line.close("finished")
        except NotebookFailed as error:
            failure = str(error)
            line.close(f"FAILED: {failure}")
            detail = error.detail if sys.stderr.isatty() else ANSI.sub("", error.detail)
            print(detail, file=sys.stderr, flush=True)
    if executed.is_file():
        write_page(executed, job.folder / f"{notebook.stem}.html", title_of(notebook))
    return Outcome(notebook.stem, title_of(notebook), line.elapsed, failure)


def _run_folder(outputs: Path, name: str | None, resume: bool) -> Path:
    if name and (Path(name).name != name or name.startswith(".")):
        raise CselabError(f"--name {name!r}: expected a plain name of a folder, such as five-seeds")
    folder = outputs.resolve() / "runs" / (name or time.strftime("%Y%m%d-%H%M%S"))
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        raise CselabError(
            f"run folder {folder} is taken; choose another --name, go on with it by --resume, or delete it"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CselabError(f"cannot write to {folder} ({error.strerror}); choose another --outputs") from None
    return folder


def _point_latest(outputs: Path, folder: Path) -> None:
    """`outputs/latest` is the newest run, where the file system has links."""
    link = outputs.resolve() / "latest"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(folder.relative_to(link.parent), target_is_directory=True)
    except OSError:
        pass


@contextmanager
def _environment(**variables: str):
    before = {key: os.environ.get(key) for key in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for key, value in before.items():
            if value is None:
                del os.environ[key]
            else:
                os.environ[key] = value
