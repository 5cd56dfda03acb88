"""What a run was asked for and how far it came: `run.json` in its folder."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cselab.batch.report import Outcome
from cselab.errors import CselabError


class RunRecord:
    """`run.json` of a run's folder: its notebooks, the parameters given, and how notebooks ended; what a run is resumed from.

    Raises CselabError where the folder has a run of other notebooks or parameters.
    """

    def __init__(self, path: Path, notebooks: Sequence[Path], given: Mapping[str, str]):
        self.path = path
        self.asked = {"notebooks": [str(notebook.resolve()) for notebook in notebooks], "given": dict(given)}
        before = read_record(path) if path.is_file() else {**self.asked, "outcomes": {}}
        if any(before[key] != value for key, value in self.asked.items()):
            raise CselabError(f"{path.parent} is a run of other notebooks or parameters; choose another --name")
        self.outcomes = {stem: Outcome(**outcome) for stem, outcome in before["outcomes"].items()}
        self.write(self.outcomes)

    def write(self, outcomes: Mapping[str, Outcome]) -> None:
        work = self.path.with_suffix(".tmp")
        ended = {stem: asdict(outcome) for stem, outcome in outcomes.items()}
        work.write_text(json.dumps({**self.asked, "outcomes": ended}, indent=1))
        os.replace(work, self.path)


def read_record(path: Path) -> dict[str, Any]:
    """A run's `run.json`. Raises CselabError where there is none, or a damaged one."""
    try:
        found = json.loads(path.read_text())
        return {**found, **{key: found[key] for key in ("notebooks", "given", "outcomes")}}
    except (OSError, ValueError, KeyError, TypeError):
        raise CselabError(
            f"no run to resume in {path.parent}; expected its run.json, see the names in outputs/runs"
        ) from None
