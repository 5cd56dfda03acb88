"""The command line: `cselab doctor`, `list`, `run`, `train`, `sweep`, `report`, `export`, `pretrain`, `card`, `train-translator`."""

import errno
import json
import sys
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import typer

from cselab.errors import CselabError, SettingsError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
PROJECT = Path(__file__).resolve().parents[1]
USAGE_ERROR = typer.BadParameter.__bases__[0]
"""UsageError of click, or of the copy of click that typer carries."""


def _notebooks_folder() -> Path:
    here = Path("notebooks")
    return here if here.is_dir() else PROJECT / "notebooks"


@app.callback()
def _about() -> None:
    """A research workbook for contrastive sentence embeddings."""


@app.command()
def run(
    notebooks: Annotated[
        list[str] | None, typer.Argument(help="Numbers, names or paths; none: the whole workbook.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="tiny, small or paper; short for -p profile=…")] = None,
    parameter: Annotated[list[str] | None, typer.Option("-p", help="name=value; may be given again.")] = None,
    outputs: Annotated[Path, typer.Option(help="Where runs, stages and caches are kept.")] = PROJECT / "outputs",
    name: Annotated[str | None, typer.Option(help="Name of the run's folder; the time by default.")] = None,
    resume: Annotated[str | None, typer.Option(help="Name of a run to go on with: what finished is kept.")] = None,
    timeout: Annotated[int | None, typer.Option(help="Seconds a cell may take.")] = None,
    notebook_timeout: Annotated[int | None, typer.Option(help="Seconds a whole notebook may take.")] = None,
    jobs: Annotated[int, typer.Option(help="Notebooks at a time; each gets its share of the cores.")] = 1,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first notebook that fails.")] = False,
) -> None:
    """Execute notebooks headless, each in its own kernel process, and leave HTML pages and the scores.

    \b
    cselab run                                        the default workbook
    cselab run 02 03 07 -p seed=1 --jobs 2            three notebooks with another seed, two at a time
    cselab run --profile small -p data_dir=~/data     real sentences and tests
    cselab run --resume 20260131-093000               what failed in that run, or was not reached, with its parameters
    """
    from cselab.batch.record import read_record
    from cselab.batch.runner import find_notebooks
    from cselab.batch.runner import run as run_notebooks

    given = _given(parameter, taken=("profile",) if profile else ())
    if profile:
        given["profile"] = profile
    if resume:
        if notebooks or given or name:
            raise SettingsError("--resume takes notebooks, parameters and name from the run it goes on with; give none")
        asked = read_record(outputs / "runs" / resume / "run.json")
        notebooks, given = asked["notebooks"], asked["given"]
    chosen = find_notebooks(_notebooks_folder(), notebooks or ())
    if not run_notebooks(
        chosen, given, outputs, name=resume or name, timeout=timeout, limit=notebook_timeout, fail_fast=fail_fast,
        jobs=jobs, resume=bool(resume),
    ):  # fmt: skip
        raise typer.Exit(1)


@app.command()
def doctor(outputs: Annotated[Path, typer.Option(help="Where runs would be kept.")] = PROJECT / "outputs") -> None:
    """Say what works on this machine, what is missing, and what to do about it.

    \b
    cselab doctor                                     exit code 1 if something that every run needs is broken
    CSELAB_DATA=~/data cselab doctor                  with a data folder
    """
    from cselab.doctor import examine

    marks, broken = {"ok": "ok     ", "missing": "missing", "broken": "BROKEN "}, False
    for finding in examine(outputs):
        print(f"{marks[finding.state]}  {finding.what:14} {finding.found}", flush=True)
        if finding.fix:
            print(f"         {'':14} → {finding.fix}")
        broken |= finding.state == "broken"
    if broken:
        raise typer.Exit(1)


Outputs = Annotated[Path, typer.Option(help="Where stages and logs are kept.")]
StorePath = Annotated[Path, typer.Option(help="The SQLite file with the results.")]
STORE = PROJECT / "outputs" / "sweep.sqlite"


@app.command()
def train(
    method: Annotated[str, typer.Argument(help="A method or system by name, e.g. jtcse.")],
    parameter: Annotated[
        list[str] | None, typer.Option("-p", help="A setting, name=value; may be given again.")
    ] = None,
    outputs: Outputs = PROJECT / "outputs",
    store: Annotated[Path | None, typer.Option(help="A store to keep the scores in; none by default.")] = None,
) -> None:
    """Train and measure one system, in this process or, under accelerate, in several that share each batch.

    \b
    cselab train jtcse -p seed=1
    accelerate launch --num_processes 4 -m cselab train jtcse -p profile=paper
    """
    from cselab.sweep.one import train_one

    train_one(method, _given(parameter, taken=("methods", "notebooks")), outputs, store)


@app.command()
def sweep(
    grid: Annotated[
        Path | None,
        typer.Argument(help="A TOML file; --seeds and -p are then for all its blocks that do not say otherwise."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", "-m", help="A method or system; may be given again.")
    ] = None,
    notebook: Annotated[
        list[str] | None, typer.Option("--notebook", "-n", help="A notebook; may be given again.")
    ] = None,
    seeds: Annotated[str | None, typer.Option(help='Such as "1-4" or "1,3".')] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-p", help="A setting, name=value, or an axis, name=value|value; may be given again."),
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Labels, * and ? as in a shell; may be given again.")] = None,
    store: StorePath = STORE,
    outputs: Outputs = PROJECT / "outputs",
    workers: Annotated[int | None, typer.Option(help="Processes of the local cluster; the cores by default.")] = None,
    threads: Annotated[int, typer.Option(help="For torch in each of them.")] = 1,
    scheduler: Annotated[str | None, typer.Option(help="Of a running dask cluster, instead of a local one.")] = None,
    retries: Annotated[
        int, typer.Option(help="Of a run that raised; bad input and divergence are not tried again.")
    ] = 1,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the runs and stop.")] = False,
) -> None:
    """Do a grid of runs on a dask cluster; those in the store already are not done again.

    \b
    cselab sweep -m simcse -m jtcse --seeds 1-4                    eight runs of the tiny profile
    cselab sweep -m jtcse --seeds 1-5 -p "caels=1|2|3|6"           an axis
    cselab sweep outputs/reference/grids/world.toml --seeds 1-3 --only "JTCSE*"
    cselab sweep grid.toml --scheduler tcp://host:8786             on SLURM, Kubernetes, SSH: see the README
    cselab report                                                  what came out
    """
    from cselab.sweep.cluster import connected, cores
    from cselab.sweep.grid import expand, read_grid
    from cselab.sweep.runner import sweep as do

    if grid and (method or notebook):
        raise SettingsError("give a grid, or --method and --notebook, not both")
    given = _given(parameter, taken=("methods", "notebooks", *(("seeds", "seed") if seeds else ())))
    axes = {name: value.split("|") if "|" in value else value for name, value in given.items()}
    declared = read_grid(grid) if grid else {"methods": method or [], "notebooks": notebook or []}
    runs = expand({**declared, **({"seeds": seeds} if seeds else {}), **axes}, _notebooks_folder())
    runs = [one for one in runs if not only or any(fnmatchcase(one.label, pattern) for pattern in only)]
    if not runs:
        raise SettingsError(f"--only {' '.join(only)}: no run of the grid has such a label")
    if dry:
        for one in runs:
            print(f"{one.label}, seed {one.settings.seed}")
        return
    print(f"{len(runs)} runs; opening the cluster and the data …", flush=True)
    with connected(scheduler, cores() // threads if workers is None else workers, threads) as client:
        board = do(client, runs, store, outputs, retries=retries)
    if board.failed:
        raise typer.Exit(1)


@app.command()
def report(
    store: StorePath = STORE,
    against: Annotated[
        str | None, typer.Option(help="The label that others are compared with; the first by default.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Labels, * and ? as in a shell; may be given again.")] = None,
    claims: Annotated[Path | None, typer.Option(help="A TOML file of papers' claims, to be checked.")] = None,
    folder: Annotated[Path, typer.Option(help="Where index.html, report.md and the tables go.")] = PROJECT
    / "outputs"
    / "report",
) -> None:
    """Tables and figures of a store: mean ± sd over seeds, paired tests, ours beside the papers', as HTML, Markdown and CSV.

    \b
    cselab report                                                  of outputs/sweep.sqlite, into outputs/report
    cselab report --against towers --only "jtcse*" --only towers
    cselab report --claims outputs/reference/claims.toml           each with its verdict
    """
    from cselab.sweep.report import write_report

    print(write_report(store, folder, against=against, only=only or ("*",), claims=claims))


@app.command("list")
def list_notebooks() -> None:
    """Show the notebooks and their parameters with their defaults."""
    from cselab.batch.parameters import read_parameters
    from cselab.batch.runner import find_notebooks, title_of

    for notebook in find_notebooks(_notebooks_folder()):
        print(title_of(notebook))
        parameters = read_parameters(notebook).values()
        print("    " + ", ".join(f"{parameter.name}={parameter.default!r}" for parameter in parameters))


class Kind(StrEnum):
    """What `cselab pretrain` makes."""

    bert = "bert"
    llama = "llama"


Inner = Annotated[int, typer.Option(help="Width of the feed-forward layers.")]
Device = Annotated[str, typer.Option(help="cpu, cuda or cuda:1.")]
Bf16 = Annotated[bool, typer.Option("--bf16", help="Faster where the processor has bfloat16 matrix units.")]
DataDir = Annotated[Path | None, typer.Option(help="The data folder; CSELAB_DATA by default.")]


@app.command()
def pretrain(
    folder: Annotated[Path, typer.Argument(help="Where the backbone goes; must not exist.")],
    kind: Annotated[Kind, typer.Option(help="The encoder, or the decoder for BeLLM.")] = Kind.bert,
    data_dir: DataDir = None,
    corpus: Annotated[
        list[str] | None, typer.Option(help="May be given again; all that may be shared, by default.")
    ] = None,
    steps: Annotated[int, typer.Option(help="Of 128 sentences each.", min=1)] = 9_000,
    batch_size: Annotated[int, typer.Option(help="Sentences a step.", min=2)] = 128,
    learning_rate: Annotated[float, typer.Option(help="After the warm-up.")] = 1e-3,
    layers: int = 6,
    width: int = 192,
    heads: int = 3,
    inner: Inner = 384,
    seed: int = 0,
    device: Device = "cpu",
    bf16: Bf16 = False,
) -> None:
    """Pretrain a small backbone from scratch; as the shipped ones were, by default. Interrupted, the same command goes on.

    \b
    cselab pretrain my-bert --data-dir ~/data --bf16
    cselab pretrain big-bert --data-dir ~/data --bf16 --device cuda --layers 12 --width 384 --heads 6 --inner 1536
    """
    from cselab.pretraining.recipe import TEXT, make

    card = make(
        kind.value, folder, data_dir, tuple(corpus or TEXT), steps=steps, batch_size=batch_size, learning_rate=learning_rate, layers=layers,
        width=width, heads=heads, inner=inner, seed=seed, device=device, bf16=bf16,
    )  # fmt: skip
    print(_numbers(card["measured"]))


@app.command()
def card(folder: Annotated[Path, typer.Argument(help="A pretrained backbone.")], data_dir: DataDir = None) -> None:
    """Measure a backbone's card again: held-out losses, next-sentence accuracy, STS scores before any training."""
    from cselab.pretraining.recipe import measure

    print(_numbers(measure(folder, data_dir)))


@app.command("train-translator")
def train_translator(
    folder: Annotated[Path, typer.Argument(help="Where the translator goes.")],
    parallel: Annotated[str, typer.Argument(help="A file of the data folder's parallel/, without .tsv.gz.")],
    test: Annotated[
        str | None, typer.Option(help="Another, for BLEU and chrF; <parallel>-test2016 by default.")
    ] = None,
    data_dir: DataDir = None,
    minutes: Annotated[float, typer.Option(help="Of training, whatever the machine does in them.")] = 10.0,
    dropout: Annotated[float, typer.Option(help="0.1 where the time is enough for thirty epochs.")] = 0.0,
    width: int = 192,
    heads: int = 3,
    inner: Inner = 384,
    seed: int = 0,
    device: Device = "cpu",
    bf16: Bf16 = False,
) -> None:
    """Train a small translator for round trips, both directions in one model, in a stated time.

    \b
    cselab train-translator my-fr multi30k-en-fr --data-dir ~/data
    cselab train-translator my-de multi30k-en-de --data-dir ~/data
    cselab run 01 -p translator='my-{pivot}' -p pivot_i=fr -p pivot_ii=de
    """
    from cselab.data.parallel import load_parallel
    from cselab.pretraining.translator import TranslatorConfig
    from cselab.pretraining.translator import train_translator as fit

    config = TranslatorConfig(
        minutes=minutes, dropout=dropout, width=width, heads=heads, inner=inner, seed=seed, device=device, bf16=bf16
    )  # fmt: skip
    texts = [load_parallel(name, folder=data_dir) for name in (parallel, test or f"{parallel}-test2016")]
    print(_numbers(fit(config, *texts, folder)))


@app.command()
def export(
    encoder: Annotated[Path, typer.Argument(help="A saved encoder, e.g. outputs/stages/simcse-i-…/encoder.")],
    folder: Annotated[Path, typer.Argument(help="Where the exported one goes.")],
) -> None:
    """Write a trained encoder as a folder that sentence-transformers opens.

    \b
    cselab export outputs/stages/jtcse-1a2b3c/encoder my-jtcse
    SentenceTransformer("my-jtcse", trust_remote_code=True)     for a twin; a single tower needs no consent
    """
    from cselab.models import export, load

    export(load(encoder), folder)
    print(folder)


def _numbers(measured: dict) -> str:
    return json.dumps(measured, indent=1)


def _given(parameters: list[str] | None, *, taken: tuple[str, ...] = ()) -> dict[str, str]:
    """Names and values of `-p`; taken: names that an option of the command says already."""
    found: dict[str, str] = {}
    for name, value in map(_split, parameters or ()):
        if name in found or name in taken:
            where = "by -p" if name in found else "by the command's own option or argument"
            raise SettingsError(f"-p {name}={value}: {name} is given {where} too; give it once")
        found[name] = value
    return found


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise SettingsError(f"-p {text!r}: expected name=value, e.g. -p seed=1")
    return name, value


def main() -> None:
    """Entry point: bad input is one line and exit code 2."""
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
    except typer.Abort:
        sys.exit("Aborted!")
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        sys.exit(
            _fail(f"no space left on the disk while writing {error.filename or 'outputs'}: free some, or set --outputs")
        )


def _fail(message: str) -> int:
    print(f"cselab: {message}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    main()
