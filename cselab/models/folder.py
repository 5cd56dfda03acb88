"""Folders of saved encoders: written atomically, described by a card (cselab.json)."""

import errno
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from cselab.errors import ModelError
from cselab.seals import share

CARD = "cselab.json"
RUST_ERROR = re.compile(r"\(os error (\d+)\)")
"""How safetensors and tokenizers end the message of an error of the system."""


def check_folder(folder: str | Path) -> list[Path]:
    """Files of the saved encoder in `folder`, which `new_folder` would replace; relative paths.

    Raises ModelError if it holds something else, or cannot be written.
    """
    final = _resolved(folder)
    with _write_errors(final):
        own = _own_files(final) if final.exists() else []
        parent = next(path for path in (final, *final.parents) if path.exists())
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(parent, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return own


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder whose files are in `folder` when the block ends without an error.

    It owns these files and no others, and lists them in its card: over a saved encoder, exactly the
    files of that one are replaced, and what a user put beside them stays.

    Raises:
        ModelError: Before anything is changed, if `folder` holds something else; and if it cannot
            be written.
    """
    own, final = check_folder(folder), _resolved(folder)
    with _write_errors(final):
        exists = final.exists()
        parent = final if exists else final.parent  # on one file system
        parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(dir=parent, prefix=".cselab-"))
    try:
        with _write_errors(final):
            new = work / "new"
            new.mkdir()
            yield new
            share(new)
            written = [path.relative_to(new) for path in new.rglob("*") if path.is_file()]
            if (card := new / CARD).is_file():
                files = sorted(path.as_posix() for path in written)
                card.write_text(json.dumps({**json.loads(card.read_text()), "files": files}))
            if exists:
                _exchange(final, own, work / "old", written, new)
            else:
                os.replace(new, final)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _exchange(final: Path, own: list[Path], old: Path, written: list[Path], new: Path) -> None:
    """Move own files from `final` to `old` and written ones from `new` to `final`, or none."""
    if taken := [path for path in written if path not in own and os.path.lexists(final / path)]:
        raise ModelError(
            f"{final / taken[0]} is in the way, and no saved encoder wrote it; move it, or choose "
            "another folder"
        )
    # the card goes first and comes last: in between, the folder is no encoder
    moves = [(final / path, old / path) for path in sorted(own, key=lambda p: p.name != CARD)]
    moves += [(new / path, final / path) for path in sorted(written, key=lambda p: p.name == CARD)]
    done = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(source, target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            os.replace(target, source)
        raise
    finally:
        folders = {parent for path in (*own, *written) for parent in path.parents[:-1]}
        for parent in sorted(folders, reverse=True):
            with suppress(OSError):  # not empty
                (final / parent).rmdir()


def _own_files(final: Path) -> list[Path]:
    """Files that a saved encoder has put into a folder; none in an empty one. Raises ModelError for
    a folder that holds something else, and for a file."""
    if final.is_dir() and not any(final.iterdir()):
        return []
    try:
        own = {Path(name) for name in json.loads((final / CARD).read_text())["files"]}
    except (OSError, ValueError, KeyError, TypeError) as error:
        older = " that lists its files (older versions do not)" if type(error) is KeyError else ""
        raise ModelError(
            f"{final} exists and is no saved encoder{older}, so it is not replaced; choose another "
            "folder, or an empty one"
        ) from None
    # a card may come from anywhere: what it lists outside of the folder is not among these
    inside = (path.relative_to(final) for path in final.rglob("*") if not path.is_dir())
    return [path for path in inside if path in own]


def _resolved(folder: str | Path) -> Path:
    """The folder itself: behind links, and not "."."""
    return Path(os.path.realpath(Path(folder).expanduser()))


@contextmanager
def _write_errors(final: Path) -> Iterator[None]:
    """Raise ModelError for an error of the system: a full disk, a folder without permission."""
    try:
        yield
    except Exception as caught:
        error = caught.__cause__ or caught  # of a folder within this one
        reason = error.strerror if isinstance(error, OSError) else None
        if rust := RUST_ERROR.search(str(error)):
            reason = os.strerror(int(rust[1]))
        if not reason:
            raise
        raise ModelError(f"cannot write {final} ({reason}); choose another folder") from error


def write_card(folder: Path, kind: str, **fields: Any) -> None:
    """Write the kind of encoder that a folder holds, and the arguments to build it."""
    (folder / CARD).write_text(json.dumps({"kind": kind, **fields}))


def read_card(folder: str | Path, kind: str = "", *fields: str) -> dict[str, Any]:
    """The kind of encoder that a folder holds, and the arguments to build it, `fields` among them.

    Raises ModelError if the folder has no card, a damaged one, or that of another kind ("": any).
    """
    path = Path(folder) / CARD
    if not path.is_file():
        raise ModelError(f"no {CARD} in {folder}: expected a folder that save_pretrained wrote")
    try:
        card = json.loads(path.read_text())
        if kind and card["kind"] != kind:
            raise ModelError(f"{folder} holds a {card['kind']}; expected a {kind}")
        return card | {name: card[name] for name in ("kind", *fields)}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is damaged ({type(error).__name__}: {error}); save the encoder again"
        ) from None
