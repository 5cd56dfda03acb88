"""The command line: `cselab init`, `doctor`, `list`, `settings`, `run`, `train`, `sweep`, `report`,
`export`, `mteb`, `pretrain`, `card`, `train-translator`, `grade`."""

import errno
import shutil
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from cselab.errors import CselabError, Interrupted, SettingsError
from cselab.paths import project_path, shipped
from cselab.pretraining import commands

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
OUTPUTS = "CSELAB_OUTPUTS"
"""The variable whose folder is the default of --outputs."""
KEPT = project_path("outputs")
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""UsageError of click, or of the copy of click that typer carries."""


def _notebooks_folder() -> Path:
    here = Path("notebooks")
    return here if here.is_dir() else shipped("notebooks")


@app.callback()
def _about() -> None:
    """A research workbook for contrastive sentence embeddings."""


@app.command()
def run(
    notebooks: Annotated[
        list[str] | None, typer.Argument(help="Numbers, names or paths of notebooks; default: all.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="tiny, small or paper; short for -p profile=…")
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
        int, typer.Option(help="Number of notebooks at a time; they share the cores.")
    ] = 1,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Stop at the first notebook that fails.")
    ] = False,
) -> None:
    """Execute notebooks headless, each in its own kernel process, and write pages and scores.

    \b
    cselab run                                        the default workbook
    cselab run 02 03 07 -p seed=1 --jobs 2            another seed, two at a time
    cselab run --profile small -p data_dir=~/data     real sentences and tests
    cselab run --resume 20260131-093000               what is left of that run
    """
    from cselab.headless.record import read_record
    from cselab.headless.runner import find_notebooks
    from cselab.headless.runner import run as run_notebooks

    given = _given(parameter, taken=("profile",) if profile else ())
    if profile:
        given["profile"] = profile
    if resume:
        if notebooks or given or name:
            raise SettingsError(
                "--resume takes notebooks, parameters and name from the run it goes on with; "
                "give none"
            )
        asked = read_record(outputs / "runs" / resume / "run.json")
        notebooks, given = asked["notebooks"], asked["given"]
    chosen = find_notebooks(_notebooks_folder(), notebooks or ())
    if not run_notebooks(
        chosen,
        given,
        outputs,
        name=resume or name,
        timeout=timeout,
        limit=notebook_timeout,
        fail_fast=fail_fast,
        jobs=jobs,
        resume=bool(resume),
    ):
        raise typer.Exit(1)


@app.command()
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
    for target in targets:
        if target.exists():
            raise SettingsError(f"{target} exists; give another folder, or move it away first")
    for target, source in targets.items():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
    print(f"{len(list(folder.glob('notebooks/*.ipynb')))} notebooks in {folder / 'notebooks'}")


@app.command()
def doctor(
    outputs: Annotated[Path, typer.Option(help="Folder for the runs.", envvar=OUTPUTS)] = KEPT,
) -> None:
    """Say what works on this machine, what is missing, and what to do about it.

    \b
    cselab doctor                                     exit code 1 if something is broken
    CSELAB_DATA=~/data cselab doctor                  with a data folder
    """
    from cselab.experiments.doctor import examine

    marks, broken = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN "}, False
    for finding in examine(outputs):
        print(f"{marks[finding.state]}  {finding.subject:14} {finding.found}", flush=True)
        if finding.fix:
            print(f"         {'':14} → {finding.fix}")
        broken |= finding.state == "broken"
    if broken:
        raise typer.Exit(1)


Outputs = Annotated[Path, typer.Option(help="Folder of finished steps and logs.", envvar=OUTPUTS)]
StorePath = Annotated[Path, typer.Option(help="The SQLite file with the results.")]
STORE = KEPT / "sweep.sqlite"


Modules = Annotated[
    list[str] | None,
    typer.Option(
        "-m", "--method", help="A method by name, or a .py file with methods of your own."
    ),
]


@app.command()
def settings(
    method: Annotated[str, typer.Argument(help="A method by name.")] = "jtcse",
    profile: Annotated[str, typer.Option(help="tiny, small or paper.")] = "tiny",
    preset: Annotated[
        str | None, typer.Option(help="paper, or released (the authors' code).")
    ] = None,
    modules: Annotated[
        list[Path] | None, typer.Option("-m", help="A .py file with methods of your own.")
    ] = None,
) -> None:
    """Show every setting of a method with its value and where the value comes from.

    \b
    cselab settings jtcse                             with the tiny profile
    cselab settings tncse --profile paper --preset released
    """
    from cselab.experiments.config import configure
    from cselab.methods import load_method_file

    for module in modules or ():
        load_method_file(module)
    run = configure(method, profile, preset=preset)
    for place, value, source in run.leaves():
        path = ".".join(place[place[0] == "method" and len(place) > 1 :])
        print(f"{path:42} {value!s:24} {source}".rstrip())


@app.command()
def train(
    method: Annotated[str, typer.Argument(help="A method by name, e.g. jtcse.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="A setting, path=value; may be repeated.")
    ] = None,
    modules: Annotated[
        list[Path] | None, typer.Option("-m", help="A .py file with methods of your own.")
    ] = None,
    outputs: Outputs = KEPT,
    store: Annotated[
        Path | None, typer.Option(help="A SQLite file for the scores; default: none.")
    ] = None,
) -> None:
    """Train and evaluate one method; under accelerate, several processes share each batch.

    \b
    cselab train jtcse -p seed=1 -p towers.temperature=0.1
    cselab train mine -m my_method.py -p corpus=my.txt -p tasks=my_pairs.tsv
    accelerate launch --num_processes 4 -m cselab train jtcse -p profile=paper
    """
    from cselab.sweep.single import train_one

    given = _given(parameter, taken=("methods", "notebooks"))
    train_one(method, _read(given), outputs, store, modules or ())


@app.command()
def sweep(
    grid: Annotated[
        Path | None,
        typer.Argument(
            help="A TOML file; --seeds and -p apply to every block that does not set them itself."
        ),
    ] = None,
    method: Modules = None,
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
    only: Annotated[
        list[str] | None, typer.Option(help="Labels, * and ? as in a shell; may be repeated.")
    ] = None,
    store: StorePath = STORE,
    outputs: Outputs = KEPT,
    workers: Annotated[
        int | None, typer.Option(help="Number of local processes; default: cores / --threads.")
    ] = None,
    threads: Annotated[int, typer.Option(help="Number of torch threads per process.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a dask scheduler, instead of a local one.")
    ] = None,
    retries: Annotated[
        int,
        typer.Option(help="Retries of a failed run; none after bad input or divergence."),
    ] = 1,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the runs and stop.")] = False,
) -> None:
    """Do a grid of runs on a dask cluster; runs that are already in the store are not repeated.

    \b
    cselab sweep -m simcse -m jtcse --seeds 1-4                    eight runs of the tiny profile
    cselab sweep -m my_method.py -m mine -m simcse --seeds 1-3     a method of your own
    cselab sweep -m jtcse --seeds 1-5 -p "caels=1|2|3|6"           an axis
    cselab sweep outputs/reference/grids/synthetic.toml --seeds 1-3 --only "JTCSE*"
    cselab sweep grid.toml --scheduler tcp://host:8786             on SLURM, Kubernetes, SSH
    cselab report                                                  the results
    """
    from cselab.sweep.cluster import connected, cpu_count
    from cselab.sweep.grid import expand, module_files, read_grid
    from cselab.sweep.runner import sweep as do

    named = [name for name in method or () if not name.endswith(".py")]
    modules = [Path(name) for name in method or () if name.endswith(".py")]
    if grid and (named or notebook):
        raise SettingsError("give a grid, or --method and --notebook, not both")
    taken = ("methods", "notebooks", *(("seeds", "seed") if seeds else ()))
    given = _given(parameter, taken=taken)
    axes = {path: _axis(value) for path, value in given.items()}
    declared = read_grid(grid) if grid else {"methods": named, "notebooks": notebook or []}
    if grid:
        modules += module_files(declared, grid.parent)
    whole = {**declared, **({"seeds": seeds} if seeds else {}), **axes}
    runs = expand(whole, _notebooks_folder(), modules=modules)
    patterns = only or ["*"]
    runs = [one for one in runs if any(fnmatchcase(one.label, pattern) for pattern in patterns)]
    if not runs:
        raise SettingsError(f"--only {' '.join(patterns)}: no run of the grid has such a label")
    if dry:
        for one in runs:
            print(f"{one.label}, seed {one.seed}")
        return
    print(f"{len(runs)} runs; opening the cluster and the data …", flush=True)
    count = cpu_count() // threads if workers is None else workers
    with connected(scheduler, count, threads) as client:
        board = do(client, runs, store, outputs, modules=modules, retries=retries)
    if board.failed:
        raise typer.Exit(1)


@app.command()
def report(
    store: StorePath = STORE,
    against: Annotated[
        str | None,
        typer.Option(help="The label that others are compared with; the first by default."),
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Labels, * and ? as in a shell; may be repeated.")
    ] = None,
    claims: Annotated[
        Path | None, typer.Option(help="A TOML file with claims of papers to check.")
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Folder for index.html, report.md and the tables.")
    ] = KEPT / "report",
) -> None:
    """Write tables and figures of a store as HTML, Markdown and CSV: mean ± sd over seeds, paired
    tests, our scores beside the papers'.

    \b
    cselab report                                       of outputs/sweep.sqlite, into outputs/report
    cselab report --against sum --only "jtcse*" --only sum
    cselab report --claims outputs/reference/claims.toml           each with its verdict
    """
    from cselab.reporting.report import write_report

    print(write_report(store, folder, against=against, only=only or ("*",), claims=claims))


@app.command("list")
def list_notebooks() -> None:
    """Show the notebooks and their parameters with their defaults."""
    from cselab.headless.parameters import read_parameters
    from cselab.headless.runner import find_notebooks, title_of

    for notebook in find_notebooks(_notebooks_folder()):
        print(title_of(notebook))
        parameters = read_parameters(notebook).values()
        print(
            "    "
            + ", ".join(f"{parameter.name}={parameter.default!r}" for parameter in parameters)
        )


@app.command()
def export(
    encoder: Annotated[
        Path, typer.Argument(help="A saved encoder, e.g. outputs/steps/simcse-fr-…/encoder.")
    ],
    folder: Annotated[Path, typer.Argument(help="Folder of the exported encoder.")],
) -> None:
    """Write a trained encoder as a folder that sentence-transformers opens.

    \b
    cselab export outputs/steps/jtcse-1a2b3c/encoder my-jtcse
    SentenceTransformer("my-jtcse", trust_remote_code=True)     of a twin
    """
    from cselab.models import export, load

    export(load(encoder), folder)
    print(folder)


@app.command()
def mteb(
    encoder: Annotated[
        Path, typer.Argument(help="A folder that cselab.load opens: saved, exported, or stock.")
    ],
    benchmark: Annotated[
        str | None, typer.Option(help="offline, a table of a paper, or a benchmark of mteb.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="A task of mteb or of cselab; may be repeated.")
    ] = None,
    languages: Annotated[
        list[str] | None, typer.Option(help="Such as de or deu; may be repeated.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, first_last, …; by default, the folder's own.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Let mteb load its own data.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="A data folder; CSELAB_DATA by default.")
    ] = None,
    outputs: Outputs = KEPT,
    name: Annotated[
        str | None, typer.Option(help="Name of the encoder in the results; default: its folder's.")
    ] = None,
) -> None:
    """Evaluate an encoder with mteb, and show its scores beside the papers'; finished tasks are
    kept (docs/how-to/mteb.md).

    \b
    cselab mteb outputs/steps/jtcse-…/encoder                        all tasks with local data
    cselab mteb my-encoder --task STS17 --task STS12 --languages en
    cselab mteb my-encoder --benchmark jtcse-classification --hub    Table II, from the hub
    """
    from cselab.reporting.mteb_report import evaluate_folder

    report = evaluate_folder(
        encoder,
        outputs / "mteb",
        benchmark=benchmark,
        tasks=task or (),
        languages=languages or (),
        pooling=pooling,
        folder=data_dir,
        hub=hub,
        name=name,
    )
    print(report)


@app.command()
def grade(
    method_file: Annotated[Path, typer.Argument(help="A .py file that registers one method.")],
    seeds: Annotated[str, typer.Option(help='Such as "101-105" or "1,3".')] = "101-105",
    profile: Annotated[str, typer.Option(help="tiny, small or paper.")] = "tiny",
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="A setting, path=value; may be repeated.")
    ] = None,
) -> None:
    """Grade a method for the assignment "beat SimCSE over five seeds" (docs/how-to/teaching.md).

    \b
    cselab grade my_method.py
    cselab grade my_method.py --seeds 201-205
    """
    from cselab.course.grade import grade as grade_method
    from cselab.sweep.grid import parse_seeds

    settings = _read(_given(parameter))
    print(grade_method(method_file, seeds=parse_seeds(seeds), profile=profile, settings=settings))


def _given(parameters: list[str] | None, *, taken: tuple[str, ...] = ()) -> dict[str, str]:
    """Names and values of `-p`; taken: names that an option of the command sets."""
    found: dict[str, str] = {}
    for name, value in map(_split, parameters or ()):
        if name in found or name in taken:
            where = "by -p" if name in found else "by the command's own option or argument"
            raise SettingsError(f"-p {name}={value}: {name} is given {where} too; give it once")
        found[name] = value
    return found


def _read(given: dict[str, str]) -> dict[str, object]:
    """Parse the values of settings."""
    from cselab.config import read_value

    return {path: read_value(value) for path, value in given.items()}


def _axis(text: str) -> object:
    """A value, or the values between bars as an axis; a list is one value."""
    from cselab.config import read_value

    values = [read_value(part) for part in text.split("|")]
    return values if len(values) > 1 or isinstance(values[0], list) else values[0]


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.replace(".", "_").isidentifier():
        raise SettingsError(f"-p {text!r}: expected name=value, e.g. -p seed=1")
    return name, value


app.command()(commands.pretrain)
app.command()(commands.card)
app.command("train-translator")(commands.train_translator)


def main() -> None:
    """Entry point: bad input prints one line and exits with code 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except CselabError as error:
        sys.exit(_fail(str(error)))
    except USAGE_ERROR as error:
        message = error.format_message()
        if "\n" in message:  # `cselab` alone asks for the help
            error.show()
            sys.exit(error.exit_code)
        command = error.ctx.command_path if error.ctx else "cselab"
        sys.exit(_fail(f"{message.rstrip('.')}; see `{command} --help`"))
    except Interrupted as error:
        print(error, file=sys.stderr)
        sys.exit(130)
    except typer.Abort:
        sys.exit("Aborted!")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.exit(
            _fail(
                f"no space left on the disk while writing {error.filename or 'outputs'}: free "
                "some, or set --outputs"
            )
        )


def _fail(message: str) -> int:
    print(f"cselab: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
