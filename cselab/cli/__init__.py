"""The command line: `cselab --help` lists the commands."""

import functools
import importlib.metadata
import io
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from cselab.cli import encoders, methods, workbook
from cselab.errors import CselabError, no_space
from cselab.paths import VARIABLES, absolute, expanded
from cselab.study.pretraining import commands as pretraining

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
    "reset-encoder": pretraining.reset_encoder,
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


def _prepared(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with "~" in paths as the home; an interrupt says where the training goes on,
    which typer would not print."""

    @functools.wraps(command)
    def run(**options: Any) -> None:
        for name, value in options.items():
            options[name] = expanded(value) if isinstance(value, Path) else value
        try:
            command(**options)
        except KeyboardInterrupt as error:
            print(str(error) or "interrupted; the same command goes on", file=sys.stderr)
            raise typer.Exit(130) from None

    return run


for _name, _command in COMMANDS.items():
    app.command(_name)(_prepared(_command))


def main() -> None:
    """Entry point: bad input prints one line and exits with code 2."""
    try:
        _prepare()
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
    except Exception as error:
        path, reason = getattr(error, "filename", None), getattr(error, "strerror", "")
        if isinstance(error, shutil.Error):  # its only argument lists source, target and reason
            _, path, reason = error.args[0][0]
        if no_space(error):
            text = f"no space left on the disk while writing {path or 'outputs'}: free some"
        elif isinstance(error, OSError) and path:
            text = f"cannot read or write {path} ({reason}); check the path and its permissions"
        else:
            raise
        sys.exit(_fail(f"{text}, or choose another"))


def _prepare() -> None:
    """Characters that a terminal lacks do not end a command, nor processes that it starts, nor does
    a user without a home; folders in variables are those of the working folder."""
    if threading.current_thread() is threading.main_thread():  # `kill` is as Ctrl-C
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
            os.environ["PYTHONIOENCODING"] = f"{stream.encoding}:backslashreplace"
    try:
        Path.home()
    except RuntimeError:  # Jupyter needs one
        os.environ["HOME"] = tempfile.gettempdir()
        print(f"no home folder is known; HOME={os.environ['HOME']} is used", file=sys.stderr)
    for name in VARIABLES:
        if os.environ.get(name):
            os.environ[name] = str(absolute(os.environ[name]))


def _fail(message: str) -> int:
    print(f"cselab: {message}", file=sys.stderr)
    return 2
