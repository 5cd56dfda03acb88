"""Run notebooks, sequentially or in parallel, each in its own kernel process, and write pages."""

import itertools
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat

from cselab.errors import CselabError, suggest
from cselab.headless.engine import NotebookFailed, execute
from cselab.headless.malloc import MALLOC
from cselab.headless.page import write_page
from cselab.headless.parameters import assign
from cselab.headless.progress import Durations, LiveLine, clock
from cselab.headless.record import RunRecord
from cselab.headless.report import Outcome, write_index
from cselab.processors import cpu_count

ANSI = re.compile(r"\x1b\[[0-9;]*m")
"""Colours of a traceback; removed unless it is printed on a terminal."""


def find_notebooks(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Notebooks of a folder, each once, in the order of the names, or of the numbers.

    Args:
        folder: The folder to look in.
        names: Numbers ("03"), stems or paths; none: all numbered ones.

    Raises:
        CselabError: For a folder without notebooks, a name that is none of them, and two notebooks
            of one name, whose outputs would be the same files.
    """
    numbered = {path.stem: path for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))}
    # not in the default run
    others = {path.stem: path for path in folder.glob("[a-z]*.ipynb")}
    by_name = {**{stem[:2]: path for stem, path in numbered.items()}, **numbered, **others}
    chosen = []
    if not numbered and not all(name.endswith(".ipynb") for name in names or [""]):
        raise CselabError(f"no notebooks in {folder}; run from the project's folder")
    for name in names or numbered:
        path = by_name.get(name) or by_name.get(name.zfill(2))
        if path is None and name.endswith(".ipynb") and Path(name).is_file():
            path = Path(name)
        if path is None:
            raise CselabError(f"no notebook {name!r}; {suggest(name, [*numbered, *others])}")
        chosen.append(path)
    found: dict[str, Path] = {}
    for path in chosen:
        if (first := found.setdefault(path.stem, path)).resolve() != path.resolve():
            raise CselabError(f"{first} and {path} have one name; run them one after the other")
    return list(found.values())


def title_of(notebook: Path) -> str:
    """Title of a notebook: its first heading, else its name."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown" and cell.source.startswith("# "):
            return cell.source.splitlines()[0].removeprefix("# ")
    return notebook.stem


def run(
    notebooks: Sequence[Path],
    parameters: Mapping[str, str],
    outputs: Path,
    *,
    name: str | None = None,
    timeout: int | None = None,
    limit: int | None = None,
    fail_fast: bool = False,
    jobs: int = 1,
    resume: bool = False,
) -> bool:
    """Execute notebooks.

    Parameters are checked before the first kernel starts.

    Args:
        notebooks: Notebooks of `find_notebooks`.
        parameters: Texts by name, as typed.
        outputs: Folder of outputs; the run's folder in it is `runs/<name>`.
        name: Name of the run folder; None: the time.
        timeout: Seconds for each cell.
        limit: Seconds for each notebook.
        fail_fast: Whether the first failure ends the run.
        jobs: Number of notebooks at a time, which share the cores. If two need the same cached
            step, one computes it and the other waits.
        resume: Continue the run `name`; finished notebooks are not executed again.

    Returns:
        Whether all of them finished.

    Raises:
        CselabError: For unknown or invalid parameters, an existing run folder, and fewer than one
            job.
    """
    if jobs < 1:
        raise CselabError(f"--jobs {jobs}: expected 1 or more notebooks at a time")
    values = assign(parameters, notebooks)
    folder = _run_folder(outputs, name, resume)
    record = RunRecord(folder / "run.json", notebooks, parameters)
    outcomes = {stem: outcome for stem, outcome in record.outcomes.items() if not outcome.failure}
    durations = Durations(outputs / "durations.json")
    profile = parameters.get("profile", "")
    all_jobs = [
        Job(
            f"[{i}/{len(notebooks)}] {notebook.stem}",
            notebook,
            values[notebook],
            folder,
            timeout,
            limit,
            durations.seconds.get(f"{notebook.stem}:{profile}"),
            live=jobs == 1,
            stems=frozenset(each.stem for each in notebooks),
        )
        for i, notebook in enumerate(notebooks, 1)
    ]
    todo = [job for job in all_jobs if job.notebook.stem not in outcomes]
    if outcomes:
        print(f"{len(outcomes)} of {len(notebooks)} notebooks had finished")
    index = write_index(folder, list(outcomes.values()), dict(parameters))
    started = time.monotonic()
    variables = {"CSELAB_RUN_DIR": str(folder), "CSELAB_OUTPUTS": str(outputs.resolve()), **MALLOC}
    if jobs > 1 and "OMP_NUM_THREADS" not in os.environ:
        variables["OMP_NUM_THREADS"] = str(max(1, cpu_count() // jobs))
    with _environment(**variables):
        for outcome in _outcomes(todo, jobs, fail_fast):
            outcomes[outcome.stem] = outcome
            record.write(outcomes)
            if not outcome.failure:
                durations.add(f"{outcome.stem}:{profile}", outcome.seconds)
            stems = (job.notebook.stem for job in all_jobs)
            in_order = [outcomes[stem] for stem in stems if stem in outcomes]
            index = write_index(folder, in_order, dict(parameters))
    _link_latest(outputs, folder)
    print(f"{clock(time.monotonic() - started)} in all; report: {index}")
    return not any(outcome.failure for outcome in outcomes.values())


@dataclass(frozen=True)
class Job:
    """One notebook of a run.

    Attributes:
        label: Label of its progress line.
        notebook: Path.
        parameters: Values by name.
        folder: Folder of the run.
        timeout: As in `run`.
        limit: As in `run`.
        expected: Seconds that it took before.
        live: Whether its progress line may be redrawn.
        stems: Stems of all notebooks of the run.
    """

    label: str
    notebook: Path
    parameters: dict[str, Any]
    folder: Path
    timeout: int | None
    limit: int | None
    expected: float | None
    live: bool
    stems: frozenset[str]


def _outcomes(todo: Sequence[Job], jobs: int, fail_fast: bool) -> Iterator[Outcome]:
    """Outcomes as notebooks end; after a failure that ends the run, those of what runs then.

    Parallel jobs need processes, because papermill changes the working folder.
    """
    waiting = iter(todo)
    if jobs == 1:
        for outcome in map(_execute, waiting):
            yield outcome
            if outcome.failure and fail_fast:
                return
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # no more than run at once: what a pool has taken, it cannot give back
        running = {pool.submit(_execute, job) for job in itertools.islice(waiting, jobs)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for outcome in (future.result() for future in ended):
                if outcome.failure and fail_fast:
                    waiting = iter(())
                yield outcome
                running |= {pool.submit(_execute, job) for job in itertools.islice(waiting, 1)}


def _execute(job: Job) -> Outcome:
    """Run one notebook, show its progress and write its page."""
    notebook, executed, failure = job.notebook, job.folder / job.notebook.name, ""
    line = LiveLine(job.label, job.expected, live=job.live)
    with line:
        try:
            execute(
                notebook,
                executed,
                job.parameters,
                log=job.folder / f"{notebook.stem}.log",
                cwd=notebook.parent.resolve(),
                timeout=job.timeout,
                limit=job.limit,
                on_cell=line.on_cell,
            )
            line.close("finished")
        except NotebookFailed as error:
            failure = str(error)
            line.close(f"FAILED: {failure}")
            detail = error.detail if sys.stderr.isatty() else ANSI.sub("", error.detail)
            print(detail, file=sys.stderr, flush=True)
    if executed.is_file():
        page = job.folder / f"{notebook.stem}.html"
        write_page(executed, page, title_of(notebook), beside=job.stems)
    return Outcome(notebook.stem, title_of(notebook), line.elapsed, failure)


def _run_folder(outputs: Path, name: str | None, resume: bool) -> Path:
    if name and (Path(name).name != name or name.startswith(".")):
        raise CselabError(f"--name {name!r}: expected a plain folder name, such as five-seeds")
    folder = outputs.resolve() / "runs" / (name or time.strftime("%Y%m%d-%H%M%S"))
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        raise CselabError(
            f"run folder {folder} exists; choose another --name, continue it with --resume, or "
            "delete it"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CselabError(
            f"cannot write to {folder} ({error.strerror}); choose another --outputs"
        ) from None
    return folder


def _link_latest(outputs: Path, folder: Path) -> None:
    """Link `outputs/latest` to the newest run, if the file system has links."""
    link = outputs.resolve() / "latest"
    try:
        link.unlink(missing_ok=True)
        link.symlink_to(folder.relative_to(link.parent), target_is_directory=True)
    except OSError:
        pass


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """Set environment variables until the block ends."""
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
