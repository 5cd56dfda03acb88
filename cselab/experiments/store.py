"""The store of a sweep: one SQLite file, a row a run and a row a number.

    runs(key, label, method, seed, profile, settings, source, data, state, error, seconds, attempts,
         worker, finished, environment)
    scores(key, measure, task, value, n)

Every change is one transaction and a run has one row, so that neither a crash nor two sweeps with
the same run can leave half a result or two.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas

from cselab.errors import CselabError, DataError, no_space

VERSION = 2
"""Of the tables; kept in the file as `PRAGMA user_version`."""
JSON = ("settings", "environment")
"""Columns of the runs that hold JSON."""
PATIENCE = 120
"""Seconds to wait for another writer."""
TABLES = (
    """CREATE TABLE runs (
        key TEXT PRIMARY KEY, label TEXT NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL,
        profile TEXT NOT NULL, settings TEXT NOT NULL, source TEXT NOT NULL, data TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('done', 'failed')), error TEXT NOT NULL,
        seconds REAL NOT NULL, attempts INTEGER NOT NULL, worker TEXT NOT NULL,
        finished TEXT NOT NULL, environment TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE scores (
        key TEXT NOT NULL REFERENCES runs (key), measure TEXT NOT NULL, task TEXT NOT NULL,
        value REAL, n INTEGER NOT NULL, PRIMARY KEY (key, measure, task)
    ) STRICT""",
)


@dataclass(frozen=True)
class Result:
    """A run's row of the store, with its numbers.

    Attributes:
        settings: The whole configuration.
        source: Hash of the library's code.
        data: Fingerprint of the data.
        finished: Time at which it ended, ISO 8601.
        environment: Versions and hardware.
        error: Empty for a finished run.
        rows: Measure, task, value, n.
    """

    key: str
    label: str
    method: str
    seed: int
    profile: str
    settings: dict
    source: str
    data: str
    seconds: float
    worker: str
    finished: str
    environment: dict
    error: str = ""
    rows: list[tuple[str, str, float, int]] = field(default_factory=list)

    def value(self, measure: str, task: str | None = None) -> float | None:
        """The number of a measure, on a task or on the first; None without one."""
        found = (row[2] for row in self.rows if row[0] == measure and task in (None, row[1]))
        return next(found, None)


class Store:
    """The store of a sweep: opens `path`, or makes it.

    Args:
        path: Path of the SQLite file.

    Raises:
        DataError: For a file that is no store, or one of another version.
        CselabError: For a file that cannot be opened.

    Examples:
        >>> from cselab.experiments.store import Store
        >>> store = Store("sweep.sqlite")
        >>> store.done(), len(store.scores())
        (set(), 0)
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            version = self._version() or self._made()
        except sqlite3.OperationalError as error:
            raise CselabError(
                f"cannot open the store {self.path} ({error}); choose another --store"
            ) from None
        except (sqlite3.DatabaseError, OSError) as error:
            raise DataError(
                f"{self.path} is no store of sweeps ({error}); choose another --store"
            ) from None
        if version != VERSION:
            raise DataError(
                f"store {self.path} has version {version}, this cselab reads and writes version "
                f"{VERSION}; choose another --store, or read it with the cselab that made it"
            )

    def _version(self) -> int:
        with self._open() as db:
            return db.execute("PRAGMA user_version").fetchone()[0]

    def _made(self) -> int:
        """Tables in an empty file, unless another process was first."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            if db.execute("PRAGMA user_version").fetchone()[0] == 0:
                if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("it is another program's database")
                for statement in TABLES:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {VERSION}")
        return self._version()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own for each use: a store travels to workers as its path."""
        with closing(sqlite3.connect(self.path, timeout=PATIENCE)) as db:
            db.execute("PRAGMA foreign_keys = ON")
            with db:
                yield db

    @contextmanager
    def _tables(self) -> Iterator[sqlite3.Connection]:
        """A connection to a store that was opened before; a damaged page is one line."""
        try:
            with self._open() as db:
                yield db
        except sqlite3.IntegrityError:
            raise
        except (sqlite3.DatabaseError, pandas.errors.DatabaseError) as error:
            if no_space(error):
                raise
            reason = str(error).splitlines()[-1]
            raise DataError(
                f"store {self.path} cannot be read or written ({reason}); put a copy in its place, "
                "or repair it: sqlite3 FILE .recover"
            ) from None

    def done(self, keys: Iterable[str] | None = None) -> set[str]:
        """Keys of finished runs, of all or of some."""
        with self._tables() as db:
            found = {key for (key,) in db.execute("SELECT key FROM runs WHERE state = 'done'")}
        return found if keys is None else found & set(keys)

    def add(self, result: Result) -> bool:
        """Write a run and its numbers in one transaction.

        A finished run stays as it is; a failed one gives way, and its attempts are counted on.

        Args:
            result: Result of the run.

        Returns:
            False if the run was there, finished.
        """
        run = asdict(result)
        rows, run["state"] = run.pop("rows"), "failed" if result.error else "done"
        run |= {name: json.dumps(run[name]) for name in JSON}
        with self._tables() as db:
            db.execute("BEGIN IMMEDIATE")
            before = db.execute(
                "SELECT state, attempts FROM runs WHERE key = ?", (result.key,)
            ).fetchone()
            if before and before[0] == "done":
                return False
            run["attempts"] = 1 + (before[1] if before else 0)
            db.execute("DELETE FROM scores WHERE key = ?", (result.key,))
            places = ", ".join(f":{name}" for name in run)
            db.execute("DELETE FROM runs WHERE key = ?", (result.key,))
            db.execute(f"INSERT INTO runs ({', '.join(run)}) VALUES ({places})", run)
            db.executemany(
                "INSERT INTO scores VALUES (?, ?, ?, ?, ?)", [(result.key, *row) for row in rows]
            )
        return True

    def results(self, keys: Iterable[str]) -> list[Result]:
        """The finished ones of some runs, with their numbers."""
        runs, scores = self.runs(), self.scores()
        numbers = dict(list(scores.groupby("key")[["measure", "task", "value", "n"]]))
        chosen = runs[(runs.state == "done") & runs.key.isin(set(keys))]
        return [
            Result(
                **{
                    name: json.loads(run[name]) if name in JSON else run[name]
                    for name in Result.__dataclass_fields__
                    if name in run
                },
                rows=[tuple(row) for row in numbers[run["key"]].itertuples(index=False)],
            )
            for run in chosen.to_dict("records")
        ]

    def runs(self) -> pandas.DataFrame:
        """A row a run, finished and failed."""
        with self._tables() as db:
            return pandas.read_sql("SELECT * FROM runs ORDER BY finished", db)

    def scores(self) -> pandas.DataFrame:
        """A row a number of every finished run, with its label and seed."""
        query = (
            "SELECT label, seed, method, profile, data, source, measure, task, value, n, "
            "runs.key AS key FROM scores JOIN runs USING (key) "
            "WHERE state = 'done' ORDER BY finished, scores.rowid"
        )
        with self._tables() as db:
            return pandas.read_sql(query, db)
