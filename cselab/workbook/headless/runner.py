"""Run notebooks, sequentially or in parallel, each in its own kernel process, and write pages."""

import errno
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import Any

from rich.progress import (
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cselab.errors import CselabError, Interrupted, suggest
from cselab.machine import MALLOC, clock, cpu_count, gpu_names
from cselab.paths import absolute
from cselab.workbook.chapters import NAMED, by_part, starting_order
from cselab.workbook.headless.engine import NotebookFailed, execute
from cselab.workbook.headless.page import write_page
from cselab.workbook.headless.parameters import assign, read_cells, read_parameters
from cselab.workbook.headless.record import open_record
from cselab.workbook.headless.report import Outcome, write_index

Job = Callable[[], Outcome]
ANSI = re.compile(r"\x1b\[[0-9;]*m")
"""Colours of a traceback; removed unless it is printed on a terminal."""


def find_notebooks(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Notebooks of a folder, each once, in the order of the names.

    Args:
        names: Numbers ("03"), stems, paths, "core" or "electives"; none: all numbered ones, core
            chapters first.

    Raises:
        CselabError: For a folder without notebooks, a name that is none of them, and two notebooks
            of one name, whose outputs would be the same files.
    """
    names = [each for name in names for each in NAMED.get(name, [name])]
    by_stem = {path.stem: path for path in sorted(folder.glob("*.ipynb"))}
    # the others are not in the default run
    numbered = {stem: path for stem, path in by_stem.items() if re.match(r"[0-9]{2}_", stem)}
    by_name = {**by_stem, **{stem[:2]: path for stem, path in numbered.items()}}
    if not (by_stem if names else numbered) and not all(map(_is_path, names or [""])):
        kind = " with a number, such as 01_name.ipynb" if by_stem else ""
        raise CselabError(f"no notebooks in {folder}{kind}; give the path of one, or `cselab init`")
    chosen: dict[str, Path] = {}
    for name in names or [stem for stems in by_part(numbered).values() for stem in stems]:
        path = by_name.get(name) or by_name.get(name.zfill(2))
        if path is None and _is_path(name) and absolute(name).is_file():
            path = absolute(name)
        if path is None:
            raise CselabError(f"no notebook {name!r}; {suggest(name, by_stem)}")
        if path.stem == "index":
            raise CselabError(f"{path}: its page would be the run's index.html; rename it")
        if (first := chosen.setdefault(path.stem, path)).resolve() != path.resolve():
            raise CselabError(f"{first} and {path} have one name; run them one after the other")
    return list(chosen.values())


def _is_path(name: str) -> bool:
    return name.endswith(".ipynb")


def find_parameters(folder: Path, name: str) -> tuple[Path, set[str]]:
    """A notebook of a folder by number, name or path, and the names of its parameters."""
    (notebook,) = find_notebooks(folder, [name])
    return notebook, set(read_parameters(notebook))


def title_of(notebook: Path) -> str:
    """Title of a notebook: its first heading, else its name."""
    for cell in read_cells(notebook):
        if cell.kind == "markdown" and cell.source.startswith("# "):
            return cell.source.splitlines()[0].removeprefix("# ").strip() or notebook.stem
    return notebook.stem


def run(
    notebooks: Sequence[Path],
    parameters: Mapping[str, str],
    outputs: Path,
    *,
    name: str | None = None,
    timeout: int | None = None,
    limit: int | None = None,
    jobs: int | None = 1,
    resume: bool = False,
) -> bool:
    """Execute notebooks and return whether all of them finished.

    Parameters are checked before the first kernel starts.

    Args:
        parameters: Texts by name, as typed.
        outputs: Folder of outputs; the run's folder in it is `runs/<name>`, by default the time.
        timeout: Seconds for each cell.
        limit: Seconds for each notebook.
        jobs: Number of notebooks at a time, which share the cores and cached steps, and start in
            the order of `starting_order`. Where there are several GPUs, each notebook has one of
            them, and further notebooks wait; None: as many as there are GPUs, or 1.
        resume: Continue the run `name`; finished notebooks are not executed again.

    Raises:
        CselabError: For unknown or invalid parameters, and an existing run folder.
        Interrupted: For an interrupt, with the command that goes on.
    """
    gpus = gpu_names()
    if jobs is None:
        jobs = max(1, min(len(gpus), len(notebooks)))
    elif jobs < 1:
        raise CselabError(f"--jobs {jobs}: expected 1 or more notebooks at a time")
    elif len(gpus) > 1:
        jobs = min(jobs, len(gpus))
    values = assign(parameters, notebooks)
    folder = _run_folder(outputs, name, resume)
    record = open_record(folder / "run.json", notebooks, parameters)
    outcomes = {stem: outcome for stem, outcome in record.outcomes.items() if not outcome.failure}
    record.outcomes = outcomes
    titles = {notebook.stem: title_of(notebook) for notebook in notebooks}
    waiting = {each.stem: each for each in notebooks if each.stem not in outcomes}
    todo = {
        stem: partial(
            _execute,
            waiting[stem],
            values[waiting[stem]],
            folder,
            titles[stem],
            label=f"[{list(titles).index(stem) + 1}/{len(notebooks)}] {stem}",
            timeout=timeout,
            limit=limit,
            live=jobs == 1,
            stems=frozenset(titles),
        )
        for stem in (waiting if jobs == 1 else starting_order(waiting))
    }
    if outcomes:
        print(f"{len(outcomes)} of {len(notebooks)} notebooks had finished")
    running: list[str] = []
    index = folder / "index.html"

    def write_report(goes_on: bool = True) -> None:
        states: dict[str, Any] = {"running": running, "goes_on": goes_on}
        _report(write_index, folder, titles, outcomes, dict(parameters), **states)

    def say_started(stem: str) -> None:
        running.append(stem)
        write_report()

    print(f"report, kept current: {index}", flush=True)
    started = time.monotonic()
    variables = {"CSELAB_RUN_DIR": str(folder), "CSELAB_OUTPUTS": str(outputs.resolve()), **MALLOC}
    if jobs > 1 and "OMP_NUM_THREADS" not in os.environ:
        variables["OMP_NUM_THREADS"] = str(max(1, cpu_count() // jobs))
    try:
        with environment(**variables), closing(_outcomes(todo, jobs, gpus, say_started)) as ended:
            for outcome in ended:
                outcomes[outcome.stem] = outcome
                running.remove(outcome.stem)
                record.write(folder / "run.json")
                write_report()
                finished = [each for each in outcomes.values() if not each.failure]
                if finished == [outcome]:
                    print(f"the first page to read: {folder / outcome.stem}.html", flush=True)
    except KeyboardInterrupt:
        command = f"cselab run --resume {folder.name} --outputs {outputs}"
        raise Interrupted(f"interrupted; to go on: {command}") from None
    finally:
        running.clear()
        write_report(goes_on=False)
    _link_latest(outputs, folder)
    print(f"{clock(time.monotonic() - started)} in all; report: {index}")
    return not any(outcome.failure for outcome in outcomes.values())


def _outcomes(
    todo: Mapping[str, Job], jobs: int, gpus: Sequence[str], say_started: Callable[[str], object]
) -> Generator[Outcome, None, None]:
    """Outcomes as notebooks end, of several at a time in processes, since papermill changes the
    working folder; of several GPUs, each process has one."""
    if jobs == 1:
        for stem, job in todo.items():
            say_started(stem)
            yield job()
        return
    context = get_context("spawn")
    free: SimpleQueue[str] = context.SimpleQueue()
    for gpu in gpus:
        free.put(gpu)
    several = {"initializer": _take_gpu, "initargs": (free,)} if len(gpus) > 1 else {}
    options: dict[str, Any] = {"mp_context": context, **several}
    left = iter(todo.items())
    running: set[Future[Outcome]] = set()
    with ProcessPoolExecutor(jobs, **options) as pool:
        try:
            ended: Collection[Future[Outcome]] = ()
            while True:
                for stem, job in islice(left, jobs - len(running)):
                    running.add(_submit(pool, job))
                    say_started(stem)
                yield from (future.result() for future in ended)
                if not running:
                    return
                ended, running = wait(running, return_when=FIRST_COMPLETED)
        except BaseException:  # an interrupt, which the pool would not pass on
            for process in list(pool._processes.values()):
                process.terminate()
            raise


def _take_gpu(free: "SimpleQueue[str]") -> None:
    """Take one of the free GPUs for the notebooks of this process."""
    os.environ["CUDA_VISIBLE_DEVICES"] = free.get()


def _submit(pool: ProcessPoolExecutor, job: Job) -> Future[Outcome]:
    """Submit a job to a process that ignores Ctrl-C, at which it would print a traceback."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # a new process inherits it
    try:
        return pool.submit(job)
    finally:
        signal.signal(signal.SIGINT, before)


def _execute(
    notebook: Path,
    parameters: dict[str, Any],
    folder: Path,
    title: str,
    *,
    label: str,
    live: bool,
    stems: Collection[str],
    **limits: int | None,
) -> Outcome:
    """Run one notebook and write its page, with links to those of `stems`; its cells are counted
    in a line that is redrawn, if it is the only one (`live`) on a terminal."""
    executed, log = folder / notebook.name, folder / f"{notebook.stem}.log"
    started, failure, detail, stopped = time.monotonic(), "", "", ""
    options: dict[str, Any] = {"log": log, "cwd": notebook.parent.resolve(), **limits}
    columns = (TextColumn("{task.description}  cell", markup=False), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    live = live and sys.stdout.isatty()
    with Progress(*columns, *times, transient=True, disable=not live) as bar:
        line = bar.add_task(label, total=None)
        if not live:
            print(label, flush=True)
        try:
            options["on_cell"] = lambda index, total: bar.update(
                line, completed=index + 1, total=total
            )
            stopped = execute(notebook, executed, parameters, **options)
        except Exception as error:  # also of papermill, as for a notebook that is gone
            if getattr(error, "errno", None) == errno.ENOSPC:
                raise  # the others would fail too
            failure = str(error) if isinstance(error, NotebookFailed) else _in_one_line(error)
            detail = getattr(error, "detail", f"see {log}")
    seconds = time.monotonic() - started
    outcome = f"FAILED: {failure}" if failure else "finished" + f" early: {stopped}" * bool(stopped)
    print(f"{label}  {outcome}  {clock(seconds)}", flush=True)
    if failure:
        print(detail if sys.stderr.isatty() else ANSI.sub("", detail), file=sys.stderr, flush=True)
    if executed.is_file():
        page = folder / f"{notebook.stem}.html"
        _report(write_page, executed, page, title, beside=stems, folder=notebook.parent)
    return Outcome(notebook.stem, title, seconds, failure, stopped)


def _report(write: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Write a page, which never ends a run."""
    try:
        write(*arguments, **options)
    except Exception as error:  # of many types: whatever a notebook put into its outputs
        print(f"no page of {arguments[0]} ({_in_one_line(error)})", file=sys.stderr, flush=True)


def _in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def _run_folder(outputs: Path, name: str | None, resume: bool) -> Path:
    if name and (Path(name).name != name or name.startswith(".")):
        raise CselabError(f"--name {name!r}: expected a plain folder name, such as five-seeds")
    folder = outputs.resolve() / "runs" / (name or time.strftime("%Y%m%d-%H%M%S"))
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        raise CselabError(f"run folder {folder} exists; choose another --name, or --resume it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"cannot write to {folder} ({error.strerror})"
        raise CselabError(f"{reason}; choose another --outputs") from None
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
def environment(**variables: str) -> Iterator[None]:
    """Set environment variables until the block ends."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
