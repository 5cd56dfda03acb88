"""Cache of round trips: Parquet files, keyed by the hash of the sentence, written atomically."""

import hashlib
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cselab.paths import replacing
from cselab.seals import remove

SCHEMA = pa.schema([("hash", pa.binary(16)), ("round_trip", pa.string())])
FLUSH_ROWS, FLUSH_SECONDS = 50_000, 30.0
"""Upper bounds of the work that an interrupted run loses: sentences and seconds."""


class RoundTripCache:
    """A mapping from sentences to round trips; a context manager that writes on exit.

    A damaged file is removed, with a line: its sentences are translated again. Without a folder,
    the round trips stay in memory.
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

    def __enter__(self) -> "RoundTripCache":
        return self

    def __exit__(self, *_) -> None:
        self._flush()

    def __contains__(self, sentence: str) -> bool:
        return _key(sentence) in self._known

    def __getitem__(self, sentence: str) -> str:
        return self._known[_key(sentence)]

    def add(self, sentences: Sequence[str], trips: Sequence[str]) -> None:
        """Add the round trips of a whole batch: a resumed run then translates the same batches."""
        new = dict(zip(map(_key, sentences), trips, strict=True))
        self._known |= new
        self._new |= new
        if len(self._new) >= FLUSH_ROWS or time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._flush()

    def skip(self, sentences: Iterable[str]) -> None:
        """Take sentences that another process translates for known ones."""
        for key in map(_key, sentences):
            self._known.setdefault(key, "")

    def free_memory(self) -> None:
        """Forget all round trips, if there is no folder to write them to."""
        if not self.folder:
            self._known.clear()
            self._new.clear()

    def _flush(self) -> None:
        self._flushed = time.monotonic()
        if not (self.folder and self._new):
            return
        table = pa.table([list(self._new), list(self._new.values())], schema=SCHEMA)
        first = next(iter(self._new)).hex()
        with replacing(self.folder / f"{first}.parquet") as work:
            pq.write_table(table, work, compression="zstd", write_page_checksum=True)
        self._new.clear()


def _key(sentence: str) -> bytes:
    return hashlib.blake2b(sentence.encode(), digest_size=16).digest()


def _read(path: Path) -> dict[bytes, str]:
    try:
        with path.open("rb") as file:
            table = pq.read_table(file, schema=SCHEMA, page_checksum_verification=True)
    except PermissionError:
        raise
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        print(f"{path} is damaged ({reason}), so it is made again", file=sys.stderr)
        remove(path)
        return {}
    return dict(zip(table["hash"].to_pylist(), table["round_trip"].to_pylist(), strict=True))
