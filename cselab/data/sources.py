"""Sources of data: a folder, then the hub, then the files that ship with this project."""

import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cselab.errors import DataError
from cselab.paths import shipped

LAYOUT = "a data folder holds sts/<task>-<split>.tsv.gz and corpus/<name>.txt.gz"


@dataclass(frozen=True)
class Source:
    """Where data comes from: its kind, and the path or hub repository.

    Examples:
        >>> from cselab.data import load_sts
        >>> print(load_sts("Synthetic").source)
        embedded (synthetic STS)
    """

    kind: Literal["folder", "hub", "embedded"]
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} ({self.detail})"


def data_folder(folder: str | Path | None = None) -> Path | None:
    """The data folder: the argument, else the variable CSELAB_DATA, else None.

    Its layout is in data/README.md.

    Raises:
        DataError: If the folder does not exist.

    Examples:
        >>> from cselab.data import data_folder
        >>> print(data_folder())  # where CSELAB_DATA is not set
        None
    """
    name = folder or os.environ.get("CSELAB_DATA")
    if not name:
        return None
    path = Path(name).expanduser()
    if not path.is_dir():
        setting = "data_dir" if folder else "CSELAB_DATA"
        raise DataError(f"{setting}: no folder {path}; {LAYOUT}")
    return path


def embedded_dir() -> Path:
    """The data that ships with the project: in an installed package, or `data/` of a checkout.

    Raises:
        DataError: If it is missing.

    Examples:
        >>> from cselab.data import embedded_dir
        >>> sorted(path.name for path in (embedded_dir() / "backbones").iterdir())
        ['plain-bert', 'tiny-bert', 'tiny-llama']
    """
    return shipped("data")


def read_lines(path: Path) -> Iterator[str]:
    """Lines of a UTF-8 text file or .gz file, without line ends.

    Only a line feed ends a line: `str.splitlines` would also split at U+2028 and U+0085, which are
    common in text from the web.

    Raises:
        DataError: With file and line, if the file cannot be read.
    """
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, 1):
                # Excel begins a UTF-8 file with a byte order mark
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except FileNotFoundError:
        raise DataError(f"no file {path}; {LAYOUT}") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{byte:02x}); convert the file, e.g. with "
            "iconv"
        ) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{path} is truncated or damaged after line {number} ({error}); copy it again"
        ) from None
    except OSError as error:
        raise DataError(
            f"{path} cannot be read ({error.strerror}); check the path and its permissions"
        ) from None
