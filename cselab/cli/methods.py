"""Commands that train methods and compare them."""

import re
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from cselab.cli.options import (
    KEPT,
    OF_GRIDS,
    OF_OUTPUTS,
    STORE,
    Only,
    Outputs,
    Parameters,
    StorePath,
    axis,
    given_settings,
    notebooks_folder,
    parsed,
)
from cselab.config import DEFAULT_PROFILE, check_words
from cselab.errors import SettingsError
from cselab.machine import cpu_count
from cselab.paths import absolute

Modules = Annotated[
    list[Path] | None, typer.Option("-m", help="A .py file with methods of your own.")
]


def settings(
    method: Annotated[str, typer.Argument(help="A method by name.")] = "jtcse",
    profile: Annotated[str, typer.Option(help="english, tiny, small or paper.")] = DEFAULT_PROFILE,
    preset: Annotated[
        str | None, typer.Option(help="paper, or released (the authors' code).")
    ] = None,
    modules: Modules = None,
) -> None:
    """Show every setting of a method with its value and where the value comes from.

    \b
    cselab settings jtcse                             with the default profile
    cselab settings tncse --profile paper --preset released
    """
    from cselab.experiments.run import configure
    from cselab.methods import load_method_file

    for module in modules or ():
        load_method_file(module)
    run = configure(method, profile, preset=preset)
    for place, value, source in run.leaves():
        path = ".".join(place[place[0] == "method" and len(place) > 1 :])
        print(f"{path:42} {value!s:24} {source}".rstrip())


def train(
    method: Annotated[str, typer.Argument(help="A method by name, e.g. jtcse.")],
    parameter: Parameters = None,
    modules: Modules = None,
    outputs: Outputs = KEPT,
    store: Annotated[
        Path | None, typer.Option(help="A SQLite file for the scores; default: none.")
    ] = None,
) -> None:
    """Train and evaluate one method; under accelerate, several processes share each batch.

    \b
    cselab train jtcse -p seed=1 -p towers.temperature=0.1
    cselab train align_uniform -m my_method.py -p corpus=my.txt -p tasks=my_pairs.tsv
    accelerate launch --num_processes 4 -m cselab train jtcse -p profile=paper
    """
    settings = given_settings(parameter, taken=("methods", "notebooks", *OF_OUTPUTS))
    if not modules:
        check_words(settings, OF_GRIDS)
    from cselab.experiments.grid import one_run
    from cselab.experiments.tasks import train_and_measure

    train_and_measure(one_run(method, parsed(settings), modules or ()), outputs, store)


def sweep(
    grid: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file; --seeds and -p apply to every block that does not set them itself."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "-m",
            "--method",
            help="A method by name, or a .py file with methods of your own; all of them, unless "
            "some are named.",
        ),
    ] = None,
    notebook: Annotated[
        list[str] | None, typer.Option("--notebook", "-n", help="A notebook; may be repeated.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help='Such as "1-4" or "1,3".')] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option(
            "-p", help="A setting, path=value, or an axis, path=value|value; may be repeated."
        ),
    ] = None,
    only: Only = None,
    store: StorePath = None,
    outputs: Outputs = KEPT,
    workers: Annotated[
        int | None, typer.Option(help="Number of local processes; default: cores / --threads.")
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Number of torch threads per process.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a dask scheduler, instead of a local one.")
    ] = None,
    retries: Annotated[
        int, typer.Option(help="Retries of a failed run; none after bad input or divergence.")
    ] = 1,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="Print the runs and what they need.")
    ] = False,
) -> None:
    """Do a grid of runs on a dask cluster; runs that are already in the store are not repeated.

    \b
    cselab sweep -m simcse -m jtcse --seeds 1-4                    eight runs of the default profile
    cselab sweep -m my_method.py -m simcse --seeds 1-3             a method of your own
    cselab sweep -m jtcse --seeds 1-5 -p "caels=1|2|3|6"           an axis
    cselab sweep outputs/reference/grids/synthetic-papers.toml --seeds 1-3 --only "JTCSE*"
    cselab sweep grid.toml --scheduler tcp://host:8786             on SLURM, Kubernetes, SSH
    cselab report                                                  the results
    """
    from cselab.experiments.cluster import connected
    from cselab.experiments.grid import expand, module_files, read_grid
    from cselab.experiments.sweep import sweep as run_sweep
    from cselab.methods.registry import registered_by
    from cselab.workbook.headless.runner import find_parameters

    modules = [absolute(name) for name in method or () if name.endswith(".py")]
    named = [name for name in method or () if not name.endswith(".py")]
    if grid and (named or notebook):
        raise SettingsError("give a grid, or --method and --notebook, not both")
    taken = ("methods", "modules", "notebooks", *OF_OUTPUTS, *(("seeds", "seed") if seeds else ()))
    settings = given_settings(parameter, taken=taken)
    axes = {path: axis(value) for path, value in settings.items()}
    if grid:
        declared = read_grid(grid)
        modules += module_files(declared, grid.parent)
    else:
        mentioned = {*named, *re.findall(r"\w+", " ".join(settings.values()))}
        for own in map(registered_by, modules):  # of which nobody names a method, all are run
            named += own if mentioned.isdisjoint(own) else []
        declared = {"methods": named, "notebooks": notebook or []}
    whole = {**declared, **({"seeds": seeds} if seeds else {}), **axes}
    find_notebook = partial(find_parameters, notebooks_folder())
    runs = expand(whole, modules=modules, find_notebook=find_notebook)
    patterns = only or ["*"]
    runs = [one for one in runs if any(fnmatchcase(one.label, pattern) for pattern in patterns)]
    if not runs:
        raise SettingsError(f"--only {' '.join(patterns)}: no run of the grid has such a label")
    if dry:
        from cselab.experiments.estimate import estimate

        for one in runs:
            print(f"{one.label}, seed {one.seed}")
        print(f"{len(runs)} runs; {estimate(runs)}")
        return
    print(f"{len(runs)} runs; opening the cluster and the data …", flush=True)
    count = max(1, cpu_count() // threads) if workers is None else workers
    with connected(scheduler, count, threads) as client:
        board = run_sweep(
            client, runs, store or outputs / STORE, outputs, modules=modules, retries=retries
        )
    if board.failed:
        raise typer.Exit(1)


def report(
    store: StorePath = None,
    outputs: Outputs = KEPT,
    against: Annotated[
        str | None,
        typer.Option(help="The label that others are compared with; the first by default."),
    ] = None,
    only: Only = None,
    claims: Annotated[
        Path | None, typer.Option(help="A TOML file with claims of papers to check.")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            help="Folder for index.html, report.md and the tables; default: report in --outputs."
        ),
    ] = None,
) -> None:
    """Write tables and figures of a store as HTML, Markdown and CSV: mean ± sd over seeds, paired
    tests, our scores beside the papers'.

    \b
    cselab report                                       of outputs/sweep.sqlite, into outputs/report
    cselab report --against sum --only "jtcse*" --only sum
    cselab report --claims outputs/reference/claims.toml           each with its verdict
    """
    from cselab.study.sweep_report import write_report

    store, folder = store or outputs / STORE, folder or outputs / "report"
    print(write_report(store, folder, against=against, only=only or ("*",), claims=claims))


def grade(
    method_file: Annotated[Path, typer.Argument(help="A .py file that registers one method.")],
    seeds: Annotated[str, typer.Option(help='Such as "101-105" or "1,3".')] = "101-105",
    profile: Annotated[str, typer.Option(help="english, tiny, small or paper.")] = DEFAULT_PROFILE,
    parameter: Parameters = None,
) -> None:
    """Grade a method for the assignment "beat SimCSE over five seeds" (docs/how-to/teaching.md).

    \b
    cselab grade my_method.py
    cselab grade my_method.py --seeds 201-205
    """
    from cselab.experiments.grid import parse_seeds
    from cselab.workbook.course.grade import grade as grade_method

    settings = parsed(given_settings(parameter, taken=("profile", "seed", "seeds")))
    print(grade_method(method_file, seeds=parse_seeds(seeds), profile=profile, settings=settings))
