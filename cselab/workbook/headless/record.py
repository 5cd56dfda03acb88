"""Record of a run, `run.json`: its notebooks, parameters and outcomes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from cselab.errors import CselabError
from cselab.paths import replacing
from cselab.workbook.headless.report import Outcome


class _Record(BaseModel):
    notebooks: list[str]
    given: dict[str, str]
    outcomes: dict[str, Outcome]


class RunRecord:
    """`run.json` of a run's folder: notebooks, parameters and outcomes, for `--resume`.

    A damaged file is written anew, with one line, and its notebooks are executed again.

    Args:
        path: Path of the file.
        notebooks: Notebooks of the run.
        parameters: Texts by name, as typed.

    Raises:
        CselabError: If the folder has a run of other notebooks or parameters.
    """

    def __init__(self, path: Path, notebooks: Sequence[Path], parameters: Mapping[str, str]):
        self.path = path
        self.request: dict[str, Any] = {
            "notebooks": [str(notebook.resolve()) for notebook in notebooks],
            "given": dict(parameters),
        }
        before = {**self.request, "outcomes": {}}
        if path.is_file():
            try:
                before = read_record(path)
            except CselabError:
                print(f"{path} is damaged and written anew; all notebooks are executed")
        if any(before[key] != value for key, value in self.request.items()):
            raise CselabError(
                f"{path.parent} is a run of other notebooks or parameters; choose another --name"
            )
        self.outcomes = {stem: Outcome(**outcome) for stem, outcome in before["outcomes"].items()}
        self.write(self.outcomes)

    def write(self, outcomes: Mapping[str, Outcome]) -> None:
        """Write the outcomes so far, atomically."""
        ended = {stem: asdict(outcome) for stem, outcome in outcomes.items()}
        with replacing(self.path) as work:
            work.write_text(json.dumps({**self.request, "outcomes": ended}, indent=1))


def read_record(path: Path) -> dict[str, Any]:
    """Read a `run.json`.

    Raises:
        CselabError: For a missing or damaged file.
    """
    try:
        return _Record.model_validate_json(path.read_bytes()).model_dump()
    except (OSError, ValueError):
        raise CselabError(
            f"no run to resume in {path.parent}; expected its run.json, see the names in "
            "outputs/runs"
        ) from None
