"""The store of a sweep: one SQLite file, a row a run and a row a number.

Every change is one transaction and a run has one row, so that neither a crash nor two sweeps with
the same run can leave half a result or two.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas

from cselab.errors import CselabError, DataError, no_space

VERSION = 2
"""The tables' version, kept in the file as `PRAGMA user_version`."""
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
    finished: str
    seconds: float = 0.0
    worker: str = ""
    environment: dict = field(default_factory=dict)
    error: str = ""
    rows: list[tuple[str, str, float, int]] = field(default_factory=list)

    def value(self, measure: str, task: str | None = None) -> float | None:
        """The number of a measure, on a task or on the first; None without one."""
        values = (row[2] for row in self.rows if row[0] == measure and task in (None, row[1]))
        return next(values, None)


class Store:
    """The store of a sweep: opens the SQLite file, or makes it.

    Raises:
        CselabError: For a file that cannot be opened, is no store, or one of another version.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            version = self._version()
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
        """Version of the tables, which are made in an empty file, by the first of its processes."""
        with self._open() as db:
            if not db.execute("PRAGMA user_version").fetchone()[0]:
                db.execute("BEGIN IMMEDIATE")
                if not db.execute("PRAGMA user_version").fetchone()[0]:
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                        raise sqlite3.DatabaseError("it is another program's database")
                    for statement in (*TABLES, f"PRAGMA user_version = {VERSION}"):
                        db.execute(statement)
            return db.execute("PRAGMA user_version").fetchone()[0]

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
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
            done = {key for (key,) in db.execute("SELECT key FROM runs WHERE state = 'done'")}
        return done if keys is None else done & set(keys)

    def add(self, result: Result) -> bool:
        """Write a run and its numbers in one transaction; whether they are new.

        A finished run stays as it is; a failed one gives way, and its attempts are counted on.
        """
        run = asdict(result)
        rows, run["state"] = run.pop("rows"), "failed" if result.error else "done"
        run["seconds"] = round(result.seconds, 1)
        run |= {name: json.dumps(run[name]) for name in JSON}
        with self._tables() as db:
            db.execute("BEGIN IMMEDIATE")
            before = db.execute(
                "SELECT state, attempts FROM runs WHERE key = ?", (result.key,)
            ).fetchone()
            if before and before[0] == "done":
                return False
            run["attempts"] = 1 + (before[1] if before else 0)
            for table in ("scores", "runs"):
                db.execute(f"DELETE FROM {table} WHERE key = ?", (result.key,))
            values = ", ".join(f":{name}" for name in run)
            db.execute(f"INSERT INTO runs ({', '.join(run)}) VALUES ({values})", run)
            db.executemany(
                "INSERT INTO scores VALUES (?, ?, ?, ?, ?)", [(result.key, *row) for row in rows]
            )
        return True

    def results(self, keys: Iterable[str]) -> list[Result]:
        """The finished ones of some runs, with their numbers."""
        runs, scores = self.runs(), self.scores()
        chosen = runs[(runs.state == "done") & runs.key.isin(set(keys))]
        chosen = chosen.drop(columns=["state", "attempts"])
        numbers = dict(list(scores.groupby("key")[["measure", "task", "value", "n"]]))
        results = []
        for run in chosen.to_dict("records"):
            run |= {name: json.loads(run[name]) for name in JSON}
            rows = [tuple(row) for row in numbers[run["key"]].itertuples(index=False)]
            results.append(Result(**run, rows=rows))
        return results

    def mention_other_labels(self, labels: Mapping[str, str]) -> None:
        """Print which runs, by key, are kept under another label."""
        kept = self.runs().set_index("key").label
        for label, old in dict.fromkeys((label, kept[key]) for key, label in labels.items()):
            if label != old:
                print(f"{label!r} is in {self.path} as {old!r}, and the report calls it so")

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
