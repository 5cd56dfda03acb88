"""Where data comes from: a folder, then the hub, then what this project ships; and saying which was used."""

import gzip
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cselab.errors import DataError

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Source:
    """Where a piece of data was found."""

    kind: Literal["folder", "hub", "embedded"]
    where: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.where})"


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The folder given, else the one named by CSELAB_DATA, else None. Raises DataError if it is not there."""
    given = folder or os.environ.get("CSELAB_DATA")
    if not given:
        return None
    path = Path(given).expanduser()
    if not path.is_dir():
        name = "data_dir" if folder else "CSELAB_DATA"
        raise DataError(f"{name}: no folder {path}; expected one that holds sts/ and corpus/ (README, 'Real data')")
    return path


def embedded_dir() -> Path:
    """What ships with the project: `data/` of a checkout, or its copy inside an installed package."""
    for path in (PACKAGE.parent / "data", PACKAGE / "_data"):
        if (path / "world").is_dir():
            return path
    raise DataError(f"the embedded data is missing beside {PACKAGE}; install cselab again")


def hub_allowed(hub: bool) -> bool:
    return hub and os.environ.get("HF_HUB_OFFLINE", "0") in ("", "0")


def from_hub(what: str, fetch: Callable[[], object]) -> object:
    """`fetch()`, with any failure as one line that says what to do instead."""
    try:
        return fetch()
    except Exception as error:  # the hub client raises a dozen kinds; all mean the same to a user
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{what} could not be fetched from the hub ({reason:.120}); set data_dir, or use the embedded data") from None


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a text or .gz file in UTF-8, without their ends. DataError, with file and line, if it cannot be read."""
    number = 0
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")
        with opened as file:
            for number, line in enumerate(file, 1):  # noqa: B007  the number is for the error
                yield line.decode("utf-8").rstrip("\r\n")
    except FileNotFoundError:
        raise DataError(f"no file {path}; see 'Real data' in the README for what is expected there") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at column {error.start + 1}); "
            "convert the file, e.g. with iconv"
        ) from None
    except (EOFError, gzip.BadGzipFile, OSError) as error:
        raise DataError(f"{path} is truncated or damaged after line {number} ({error}); copy it again") from None
