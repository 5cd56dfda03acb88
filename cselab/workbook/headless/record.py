"""Record of a run, `run.json`: its notebooks, parameters and outcomes, for `--resume`."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel

from cselab.errors import CselabError
from cselab.paths import replacing
from cselab.workbook.headless.report import Outcome


class RunRecord(BaseModel):
    """Paths of a run's notebooks, parameters as typed, and outcomes by the notebook's stem."""

    notebooks: list[str]
    given: dict[str, str]
    outcomes: dict[str, Outcome]

    def write(self, path: Path) -> None:
        """Write the record, atomically."""
        with replacing(path) as work:
            work.write_text(self.model_dump_json(indent=1))


def read_record(path: Path) -> RunRecord:
    """Read a `run.json`.

    Raises:
        CselabError: For a missing or damaged file.
    """
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except (OSError, ValueError):
        raise CselabError(
            f"no run to resume in {path.parent}; expected its run.json, see outputs/runs"
        ) from None


def open_record(path: Path, notebooks: Sequence[Path], parameters: Mapping[str, str]) -> RunRecord:
    """The record of a run that starts or goes on; a damaged one is replaced, with a line.

    Raises:
        CselabError: If the folder has a run of other notebooks or parameters.
    """
    names = [str(notebook.resolve()) for notebook in notebooks]
    record = RunRecord(notebooks=names, given=dict(parameters), outcomes={})
    if path.is_file():
        try:
            before = read_record(path)
        except CselabError:
            print(f"{path} is damaged and written anew; all notebooks are executed")
        else:
            if (before.notebooks, before.given) != (record.notebooks, record.given):
                raise CselabError(
                    f"{path.parent} is a run of other notebooks or parameters; choose another "
                    "--name"
                )
            record = before
    record.write(path)
    return record
