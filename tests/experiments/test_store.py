"""The store: one row a run whatever happens, versions, several writers."""

import json
import os
import signal
import sqlite3
from dataclasses import replace
from multiprocessing import get_context

import pytest
from example_result import RESULT

from cselab.errors import CselabError, DataError
from cselab.experiments.store import VERSION, Store


def test_a_run_and_its_numbers(tmp_path):
    store = Store(tmp_path / "deep" / "s.sqlite")
    assert store.add(RESULT)
    assert store.done() == {"k1"}
    assert store.done(["k1", "k2"]) == {"k1"}
    assert store.results(["k1", "k2"]) == [RESULT]
    assert store.scores().value.tolist() == [61.5, 60.0]
    assert Store(store.path).runs().settings.map(json.loads).tolist() == [RESULT.settings]


def test_a_finished_run_stays_and_a_failed_one_gives_way(tmp_path):
    """Prevents a late duplicate from overwriting a result, and a failure from standing in the way
    of its second try."""
    store = Store(tmp_path / "s.sqlite")
    assert store.add(replace(RESULT, error="out of memory", rows=[]))
    assert store.done() == set()
    assert store.add(RESULT)
    assert store.runs().attempts.tolist() == [2]
    assert not store.add(replace(RESULT, rows=[("test", "average", 1.0, 1)]))
    assert not store.add(replace(RESULT, error="late"))
    assert store.results(["k1"])[0].value("test", "average") == 61.5


def test_half_a_result_is_none(tmp_path):
    """Prevents a run whose numbers were cut off by a crash from counting as done."""
    store = Store(tmp_path / "s.sqlite")
    with pytest.raises(sqlite3.IntegrityError):
        store.add(replace(RESULT, rows=[("test", "average", 1.0, 1), ("test", "average", 2.0, 1)]))
    assert store.done() == set()
    assert store.scores().empty


def _write(path, worker):
    store = Store(path)
    return [store.add(replace(RESULT, key=f"k{i}", worker=str(worker))) for i in range(25)]


def test_several_processes_write_each_run_once(tmp_path):
    """Prevents "database is locked", tables made twice, and two rows of one run."""
    path = tmp_path / "s.sqlite"
    with get_context("fork").Pool(3) as pool:
        written = pool.starmap(_write, [(path, worker) for worker in range(3)])
    assert [sum(column) for column in zip(*written, strict=True)] == [1] * 25
    assert len(Store(path).runs()) == 25


def test_a_writer_killed_in_the_middle_leaves_a_whole_store(tmp_path):
    store = Store(tmp_path / "s.sqlite")
    store.add(RESULT)
    child = os.fork()
    if child == 0:
        with store._open() as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM scores")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert store.results(["k1"])[0].value("test", "average") == 61.5
    assert store.add(replace(RESULT, key="k2"))


def test_what_is_no_store_is_said_in_one_line(tmp_path):
    (tmp_path / "text").write_text("no database at all, but long enough to have a header" * 10)
    with pytest.raises(DataError, match="text is no store of sweeps"):
        Store(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other.sqlite") as db:
        db.execute("CREATE TABLE mine (x)")
    with pytest.raises(DataError, match="another program's database"):
        Store(tmp_path / "other.sqlite")
    Store(tmp_path / "new.sqlite")
    for version in (VERSION - 1, VERSION + 1):
        with sqlite3.connect(tmp_path / "new.sqlite") as db:
            db.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(
            DataError,
            match=f"has version {version}, this cselab reads and writes version {VERSION}",
        ):
            Store(tmp_path / "new.sqlite")
    with pytest.raises(CselabError, match="cannot open the store"):
        Store(tmp_path)


@pytest.mark.parametrize("damage", [b"\xff" * 4096, b"\0" * 4096], ids=["ones", "zeros"])
def test_a_damaged_page_is_one_line(tmp_path, damage):
    """Prevents a traceback of sqlite or pandas in sweep, report and train --store."""
    store = Store(tmp_path / "s.sqlite")
    many = [("test", f"task {i} {'x' * 200}", 1.0, 10) for i in range(200)]
    assert store.add(replace(RESULT, rows=many))
    with store.path.open("r+b") as file:
        for page in range(1, store.path.stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(damage)
    uses = [store.done, store.runs, store.scores]
    uses += [lambda: store.results(["k1"]), lambda: store.add(replace(RESULT, key="k2"))]
    for use in uses:
        with pytest.raises(DataError, match=r"s\.sqlite cannot be read or written \(.*repair it"):
            use()
