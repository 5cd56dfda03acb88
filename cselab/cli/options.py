"""Options that several commands share: folders, and the values of `-p`."""

from pathlib import Path
from typing import Annotated

import typer

from cselab.errors import SettingsError
from cselab.paths import absolute, project_path, shipped

OUTPUTS = "CSELAB_OUTPUTS"
"""The variable whose folder is the default of --outputs."""
KEPT = project_path("outputs")
OF_OUTPUTS = ("outputs", "machine.outputs")
"""Names of the setting that --outputs sets: `-p` cannot."""
OF_GRIDS = ("seeds", "label", "measures", "modules")
"""Names that a grid knows besides settings."""
STORE = "sweep.sqlite"
"""The default of --store, in --outputs."""
Outputs = Annotated[
    Path, typer.Option(help="Folder of finished steps, results and logs.", envvar=OUTPUTS)
]
StorePath = Annotated[
    Path | None,
    typer.Option(help=f"The SQLite file with the results; default: {STORE} in --outputs."),
]
Parameters = Annotated[
    list[str] | None, typer.Option("-p", help="A setting, path=value; may be repeated.")
]
Only = Annotated[
    list[str] | None, typer.Option(help="Labels, * and ? as in a shell; may be repeated.")
]


def notebooks_folder() -> Path:
    """The workbook's notebooks: a copy in the current folder, else those that the package has."""
    here = absolute("notebooks")
    return here if any(here.glob("[0-9][0-9]_*.ipynb")) else shipped("notebooks")


def given_settings(parameters: list[str] | None, *, taken: tuple[str, ...] = ()) -> dict[str, str]:
    """Names and values of `-p`; taken: names that an option of the command sets."""
    settings: dict[str, str] = {}
    for text in parameters or ():
        name, equals, value = text.partition("=")
        if not equals or not name.replace(".", "_").isidentifier():
            raise SettingsError(f"-p {text!r}: expected name=value, e.g. -p seed=1")
        if name in taken:
            raise SettingsError(
                f"-p {text}: {name} is given by the command's own option or argument; give it "
                "there alone"
            )
        if name in settings:
            raise SettingsError(f"-p {text}: {name} is given by -p too; give it once")
        settings[name] = value
    return settings


def parsed(given: dict[str, str]) -> dict[str, object]:
    """Parse the values of settings."""
    from cselab.config import read_value

    return {path: read_value(value) for path, value in given.items()}


def axis(text: str) -> object:
    """A value, or the values between bars as an axis; a list is one value."""
    from cselab.config import read_value

    values = [read_value(part) for part in text.split("|")]
    return values if len(values) > 1 or isinstance(values[0], list) else values[0]
