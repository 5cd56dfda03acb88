"""The command line: `cselab run`, `cselab list`, `cselab pretrain`, `cselab card`."""

import errno
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cselab.errors import CselabError, SettingsError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
PROJECT = Path(__file__).resolve().parents[1]


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
    timeout: Annotated[int | None, typer.Option(help="Seconds a cell may take.")] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first notebook that fails.")] = False,
) -> None:
    """Execute notebooks headless, each in its own kernel process, and leave HTML pages and the scores.

    \b
    cselab run                                        the default workbook
    cselab run 02 03 07 -p seed=1                     three notebooks with another seed
    cselab run --profile small -p data_dir=~/data     real sentences and tests
    """
    from cselab.batch.runner import find_notebooks
    from cselab.batch.runner import run as run_notebooks

    given = dict(_split(text) for text in parameter or ())
    if profile:
        given["profile"] = profile
    chosen = find_notebooks(_notebooks_folder(), notebooks or ())
    if not run_notebooks(chosen, given, outputs, name=name, timeout=timeout, fail_fast=fail_fast):
        raise typer.Exit(1)


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


DataDir = Annotated[Path | None, typer.Option(help="The data folder; CSELAB_DATA by default.")]


@app.command()
def pretrain(
    folder: Annotated[Path, typer.Argument(help="Where the backbone goes; must not exist.")],
    kind: Annotated[Kind, typer.Option(help="The encoder, or the decoder for BeLLM.")] = Kind.bert,
    data_dir: DataDir = None,
    steps: Annotated[int, typer.Option(help="Of 128 sentences each.")] = 9_000,
    bf16: Annotated[bool, typer.Option("--bf16", help="Faster where the processor has bfloat16 matrix units.")] = False,
) -> None:
    """Pretrain a small backbone from scratch, as the shipped ones were. Interrupted, the same command goes on."""
    from cselab.pretraining.recipe import make

    print(_numbers(make(kind.value, folder, data_dir, steps=steps, bf16=bf16)["measured"]))


@app.command()
def card(folder: Annotated[Path, typer.Argument(help="A pretrained backbone.")], data_dir: DataDir = None) -> None:
    """Measure a backbone's card again: held-out losses, next-sentence accuracy, STS scores before any training."""
    from cselab.pretraining.recipe import measure

    print(_numbers(measure(folder, data_dir)))


def _numbers(measured: dict) -> str:
    return json.dumps(measured, indent=1)


def _split(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise SettingsError(f"-p {text!r}: expected name=value, e.g. -p seed=1")
    return name, value


def main() -> None:
    """Entry point: bad input is one line and exit code 2."""
    try:
        app()
    except CselabError as error:
        sys.exit(_fail(str(error)))
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
