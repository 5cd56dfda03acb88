"""Seals of what is kept for later runs: checked when it is read, made again when it is damaged.

A sealed file ends with the SHA-256 of what comes before; a sealed folder lists those of its files.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cselab.errors import CselabError, DataError, no_space
from cselab.paths import replacing

SEAL = "sha256.json"
"""The file of a sealed folder with the hashes of the others, written last."""
_BYTES = hashlib.sha256().digest_size


def seal(path: Path) -> None:
    """Seal a whole file or folder, before it gets its final name; files of a folder are shared."""
    if path.is_file():
        digest = _hash(path)
        with path.open("ab") as file:
            file.write(digest)
        return
    share(path)
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and file != path / SEAL]
    hashes = {file.relative_to(path).as_posix(): _hash(file).hex() for file in files}
    with replacing(path / SEAL) as work:
        work.write_text(json.dumps(hashes, indent=1))


def share(folder: Path) -> None:
    """Let others read the files of a new folder as far as they can read the folder.

    safetensors writes weights for their owner alone, whatever the umask says.
    """
    mode = folder.stat().st_mode & 0o666
    for file in folder.rglob("*"):
        if file.is_file():
            with suppress(OSError):  # a disk without permissions
                file.chmod(mode)


def damage(path: Path) -> str:
    """The damage of a sealed file or folder, in words; "" for a whole one.

    Every byte is read: a gigabyte takes about a second.

    Raises:
        OSError: For a file that this user cannot read.
    """
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                size = max(0, file.seek(0, os.SEEK_END) - _BYTES)
                file.seek(size)
                return "" if file.read() == _hash(path, size) else f"{path.name} is damaged"
        for name, expected in json.loads((path / SEAL).read_text(encoding="utf-8")).items():
            if _hash(path / name).hex() != expected:
                return f"{name} is damaged"
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        return f"{Path(error.filename).name} is missing"
    except (ValueError, AttributeError):
        return f"{SEAL} is damaged"
    return ""


def is_whole(path: Path) -> bool:
    """Whether a sealed file or folder is there and whole; a damaged one is removed, with a line."""
    wrong = damage(path)
    if wrong and os.path.lexists(path):
        print(f"{path} is damaged ({wrong}), so it is made again", file=sys.stderr)
        remove(path)
    return not wrong


def remove(path: Path) -> None:
    """Remove a file, or a folder with its files."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _hash(path: Path, size: int | None = None) -> bytes:
    """SHA-256 of a file, or of its first `size` bytes."""
    digest = hashlib.sha256()
    size = path.stat().st_size if size is None else size
    with path.open("rb") as file:
        while block := file.read(min(size, 1 << 20)):
            digest.update(block)
            size -= len(block)
    return digest.digest()


@contextmanager
def clear_access(folder: Path) -> Iterator[None]:
    """Turn an error of access to the files in `folder`, or of a full disk, into one line."""
    try:
        yield
    except CselabError:
        raise
    except Exception as error:
        name = error.filename if isinstance(error, OSError) else None
        path = Path(str(name or folder))
        if no_space(error):
            problem = f"no space left on the disk of {path}: free some"
        elif isinstance(error, OSError) and name and path.is_relative_to(folder):
            problem = f"cannot read or write {path} ({error.strerror}); ask its owner for access"
        else:
            raise
        raise DataError(f"{problem}, or set --outputs (in a notebook `outputs`)") from None
