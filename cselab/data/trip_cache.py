"""Finished round trips on disk: Parquet files by the hash of their sentence, written whole or not at all."""

import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cselab.errors import DataError

SCHEMA = pa.schema([("hash", pa.binary(16)), ("round_trip", pa.string())])
FLUSH_ROWS, FLUSH_SECONDS = 50_000, 30.0
"""What a kill may cost: at most so many sentences, and so many seconds of work."""


class TripCache:
    """A mapping sentence -> round trip, a context manager that writes on the way out. folder None: in memory.

    Raises DataError for a damaged file, naming it.
    """

    def __init__(self, folder: str | Path | None):
        self.folder = folder and Path(folder)
        self._known: dict[bytes, str] = {}
        self._new: dict[bytes, str] = {}
        self._flushed = time.monotonic()
        if self.folder:
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in sorted(self.folder.glob("*.parquet")):
                self._known.update(_read(path))

    def __enter__(self) -> "TripCache":
        return self

    def __exit__(self, *_) -> None:
        self._flush()

    def __contains__(self, sentence: str) -> bool:
        return _key(sentence) in self._known

    def __getitem__(self, sentence: str) -> str:
        return self._known[_key(sentence)]

    def add(self, sentences: Sequence[str], trips: Sequence[str]) -> None:
        """Keep the trips of whole batches only, so that an interrupted run and its successor translate the same batches."""
        new = dict(zip(map(_key, sentences), trips, strict=True))
        self._known |= new
        self._new |= new
        if len(self._new) >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def forget(self) -> None:
        """Without a folder nothing is kept longer than it is needed."""
        if not self.folder:
            self._known.clear()
            self._new.clear()

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if not (self.folder and self._new):
            return
        table = pa.table([list(self._new), list(self._new.values())], schema=SCHEMA)
        handle, name = tempfile.mkstemp(dir=self.folder, suffix=".tmp")
        os.close(handle)
        try:
            pq.write_table(table, name, compression="zstd")
            first = next(iter(self._new)).hex()
            os.replace(name, self.folder / f"{first}.parquet")
        finally:
            Path(name).unlink(missing_ok=True)
        self._new.clear()


def _key(sentence: str) -> bytes:
    return hashlib.blake2b(sentence.encode(), digest_size=16).digest()


def _read(path: Path) -> dict[bytes, str]:
    try:
        table = pq.read_table(path, schema=SCHEMA)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{path} is damaged ({str(error).splitlines()[0]}); remove it to translate it anew") from None
    return dict(zip(table["hash"].to_pylist(), table["round_trip"].to_pylist(), strict=True))
