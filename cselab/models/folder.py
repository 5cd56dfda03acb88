"""Saved encoders: a folder that is written whole or not at all, and the card (cselab.json) that says what it holds."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cselab.errors import ModelError

CARD = "cselab.json"


@contextmanager
def new_folder(folder: str | Path) -> Iterator[Path]:
    """A work folder that takes the name `folder` when the block ends well, in place of a saved encoder there.

    Raises ModelError, before anything is touched, if what stands there is neither empty nor a saved encoder.
    """
    final = Path(folder)
    stands = final.exists() and not (final.is_dir() and not any(final.iterdir()))
    if stands and not (final / CARD).is_file():
        raise ModelError(f"{final} exists and is no saved encoder, so it is not replaced; choose another folder")
    final.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(dir=final.parent, prefix=f".{final.name}-"))
    new, old = work / "new", work / "old"
    new.mkdir()
    try:
        yield new
        if stands:
            os.replace(final, old)
        try:
            os.replace(new, final)
        except OSError:
            if stands:
                os.replace(old, final)
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_card(folder: Path, kind: str, **fields: Any) -> None:
    """What kind of encoder a folder holds and how to build it, for `read_card`."""
    (folder / CARD).write_text(json.dumps({"kind": kind, **fields}))


def read_card(folder: str | Path, kind: str, writer: str, *fields: str) -> list[Any]:
    """The values of `fields`. Raises ModelError if `folder` holds no card, a damaged one, or that of another kind."""
    card = open_card(folder, f"{writer}.save_pretrained")
    if card["kind"] != kind:
        raise ModelError(f"{folder} holds a {card['kind']}: expected a folder that {writer}.save_pretrained wrote")
    try:
        return [card[field] for field in fields]
    except KeyError as error:
        raise _damaged(folder, error) from None


def open_card(folder: str | Path, writer: str) -> dict[str, Any]:
    """The whole card, with its `kind`. Raises ModelError if there is none, or a damaged one; writer: who should have written it."""
    path = Path(folder) / CARD
    if not path.is_file():
        raise ModelError(f"no {CARD} in {folder}: expected a folder that {writer} wrote")
    try:
        card = json.loads(path.read_text())
        return {**card, "kind": card["kind"]}
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from None


def _damaged(folder: str | Path, error: Exception) -> ModelError:
    return ModelError(f"{Path(folder) / CARD} is damaged ({type(error).__name__}: {error}); save the encoder again")
