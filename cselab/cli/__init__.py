"""The command line: `cselab --help` lists the commands."""

import errno
import functools
import importlib.metadata
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from cselab.cli import encoders, methods, workbook
from cselab.errors import CselabError, Interrupted
from cselab.pretraining import commands as pretraining

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS: dict[str, Callable[..., None]] = {
    "run": workbook.run,
    "init": workbook.init,
    "doctor": workbook.doctor,
    "list": workbook.list_notebooks,
    "settings": methods.settings,
    "train": methods.train,
    "sweep": methods.sweep,
    "report": methods.report,
    "grade": methods.grade,
    "export": encoders.export,
    "mteb": encoders.mteb,
    "pretrain": pretraining.pretrain,
    "card": pretraining.card,
    "train-translator": pretraining.train_translator,
}
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""UsageError of click, or of the copy of click that typer carries."""


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"cselab {importlib.metadata.version('cselab')}")
        raise typer.Exit
    return wanted


@app.callback()
def _about(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """A research workbook for contrastive sentence embeddings."""


def _telling(command: Callable[..., None]) -> Callable[..., None]:
    """The command; an interrupt says where the training goes on, which typer would not print."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        try:
            command(**given)
        except Interrupted as error:
            print(error, file=sys.stderr)
            raise typer.Exit(130) from None

    return run


for _name, _command in COMMANDS.items():
    app.command(_name)(_telling(_command))


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
