"""Commands for the notebooks and the machine they run on."""

import re
import shutil
from pathlib import Path
from typing import Annotated

import typer

from cselab.cli.doctor import examine
from cselab.cli.options import KEPT, OF_OUTPUTS, OUTPUTS, given_settings, notebooks_folder
from cselab.config import check_words
from cselab.errors import SettingsError
from cselab.paths import shipped


def run(
    notebooks: Annotated[
        list[str] | None,
        typer.Argument(help="Numbers, names, paths, core, electives; default: all numbered."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="english, tiny, small or paper; short for -p profile=…")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="A setting, name=value; may be repeated.")
    ] = None,
    outputs: Annotated[
        Path, typer.Option(help="Folder of runs, finished steps and caches.", envvar=OUTPUTS)
    ] = KEPT,
    name: Annotated[
        str | None, typer.Option(help="Name of the run's folder; default: the time.")
    ] = None,
    resume: Annotated[
        str | None, typer.Option(help="Name of a run to continue; finished notebooks are kept.")
    ] = None,
    timeout: Annotated[int | None, typer.Option(help="Maximum seconds per cell.")] = None,
    notebook_timeout: Annotated[
        int | None, typer.Option(help="Maximum seconds per notebook.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of notebooks at a time, at most one for each of several GPUs; default: "
            "one for each GPU, or 1."
        ),
    ] = None,
) -> None:
    """Execute notebooks headless, each in its own kernel process, and write pages and scores. The
    report is there from the start, and says what waits, runs and has finished.

    \b
    cselab run                                        the workbook, core chapters first
    cselab run 02 03 07 -p seed=1 --jobs 2            another seed, two at a time
    cselab run --profile small -p data_dir=~/data     real sentences and tests
    cselab run --resume 20260131-093000               what is left of that run
    """
    from cselab.workbook.headless.parameters import absolute_paths, known_parameters

    settings = given_settings(parameter, taken=(*OF_OUTPUTS, *(("profile",) if profile else ())))
    own = [path for path in map(Path, notebooks or ()) if path.is_file()]
    # what follows imports nbconvert, which takes seconds
    check_words(settings, known_parameters([*notebooks_folder().glob("*.ipynb"), *own]))
    from cselab.workbook.headless.record import read_record
    from cselab.workbook.headless.runner import find_notebooks
    from cselab.workbook.headless.runner import run as run_notebooks

    settings = {key: absolute_paths(key, value) for key, value in settings.items()}
    if profile:
        settings["profile"] = profile
    if resume is not None:
        if notebooks or settings or name:
            raise SettingsError(
                "--resume takes notebooks, parameters and name from the run it goes on with; "
                "give none"
            )
        asked = read_record(outputs / "runs" / resume / "run.json")
        notebooks, settings = asked.notebooks, asked.given
    chosen = find_notebooks(notebooks_folder(), notebooks or ())
    if not run_notebooks(
        chosen,
        settings,
        outputs,
        name=resume or name,
        timeout=timeout,
        limit=notebook_timeout,
        jobs=jobs,
        resume=resume is not None,
    ):
        raise typer.Exit(1)


def init(
    folder: Annotated[Path, typer.Argument(help="Folder for notebooks/ and outputs/.")] = Path(),
) -> None:
    """Copy the workbook's notebooks, and the grids of the recorded studies, into a folder, where
    `cselab run`, `cselab sweep` and JupyterLab find them.

    \b
    cselab init my-study && cd my-study && cselab run 02
    """
    targets = {
        folder / "notebooks": shipped("notebooks"),
        folder / "outputs" / "reference" / "grids": shipped("reference") / "grids",
    }
    made = []
    try:
        for target in targets:
            if target.exists():
                raise SettingsError(f"{target} exists; give another folder, or move it away first")
        for target, source in targets.items():
            made.append(target)
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
    except OSError as error:
        for target in made:
            shutil.rmtree(target, ignore_errors=True)
        # shutil lists its errors as text
        reason = error.strerror or re.findall(r"\[Errno \d+\] ([^:]+)", str(error))[0]
        raise SettingsError(f"cannot write to {folder} ({reason}); choose another folder") from None
    print(f"{len(list(folder.glob('notebooks/*.ipynb')))} notebooks in {folder / 'notebooks'}")


def doctor(
    outputs: Annotated[Path, typer.Option(help="Folder for the runs.", envvar=OUTPUTS)] = KEPT,
) -> None:
    """Say what works on this machine, what is missing, and what to do about it.

    \b
    cselab doctor                                     exit code 1 if something is broken
    CSELAB_DATA=~/data cselab doctor                  with a data folder
    """
    healthy = True
    for finding in examine(outputs):
        mark = "BROKEN" if finding.broken else "missing" if finding.fix else "ok"
        print(f"{mark:7}  {finding.subject:14} {finding.found}", flush=True)
        if finding.fix:
            print(f"         {'':14} → {finding.fix}")
        healthy &= not finding.broken
    if not healthy:
        raise typer.Exit(1)


def list_notebooks() -> None:
    """Show the notebooks and their parameters with their defaults."""
    from cselab.workbook.headless.parameters import read_parameters
    from cselab.workbook.headless.runner import find_notebooks, title_of

    for notebook in find_notebooks(notebooks_folder()):
        print(title_of(notebook))
        parameters = read_parameters(notebook).values()
        print("   ", ", ".join(f"{one.name}={one.default!r}" for one in parameters))
