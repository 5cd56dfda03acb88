"""The leaderboard of a class, and the sentences that depend on numbers."""

import errno
from pathlib import Path

import numpy
import pandas
import pytest
from filelock import FileLock, Timeout

from cselab.errors import DataError
from cselab.evaluation import PairComparison, compare_seeds
from cselab.workbook import course
from cselab.workbook.course import leaderboard

SCORES = pandas.DataFrame(
    {"SimCSE": [70.0, 71.0, 70.5, 70.2], "mine": [71.0, 71.8, 71.6, 71.3]}, index=[1, 2, 3, 4]
)


def test_a_row_has_the_paired_interval():
    """Prevents an interval of two independent samples, which is several times as wide."""
    row = course.table_over_seeds(SCORES, "SimCSE").loc["mine"]
    expected = compare_seeds(SCORES["mine"], SCORES["SimCSE"])
    assert (row.low, row.high) == (expected.low, expected.high)
    assert row.difference == pytest.approx(1.0)


def test_a_second_entry_takes_the_place_of_the_first(tmp_path):
    """Prevents a leaderboard that one may fill by running a cell again, also by a number as name,
    and a name whose break of a line ends the row."""
    for i, name in enumerate(("123456", "a\rb", "123456")):
        scores = SCORES.assign(mine=SCORES.mine + i)
        board = course.enter(tmp_path / "board.csv", name, scores, "mine")
    assert board["name"].tolist() == ["123456", "a b"]
    numpy.testing.assert_allclose(board.difference, [3.0, 2.0])


def test_damaged_rows_are_named_and_stay_in_the_file(tmp_path, capsys):
    """Prevents half a row, or one typed by hand, from putting the numbers in the order of texts,
    from refusing the whole class, and from losing a teacher's column."""
    path = tmp_path / "board.csv"
    course.enter(path, "Ada", SCORES, "mine")
    head, row = path.read_text().splitlines()
    damaged = ["Ben,mi", "Eve,mi" + row, "Cleo,hinge,three,1,2,3,4,5,SimCSE"]
    path.write_text("\n".join([f"{head},note", f"{row},well done", *damaged]) + "\n")
    board = course.enter(path, "Dan", SCORES.assign(mine=SCORES.mine + 10), "mine")
    assert board["name"].tolist() == ["Dan", "Ada"]
    numpy.testing.assert_allclose(board.difference, [11.0, 1.0])
    assert "damaged rows are left out, of 'Ben', 'Eve', 'Cleo'" in capsys.readouterr().out
    text = path.read_text()
    assert all(line in text for line in (*damaged, "well done"))
    path.write_text(f'{head}\n{row}\n"Ben,mi\n{row}\n')  # the quote is open to the end
    with pytest.raises(DataError, match="is no leaderboard, or damaged"):
        course.enter(path, "Dan", SCORES, "mine")
    assert path.read_text().count(row) == 2


def test_an_entry_that_is_cut_off_costs_no_other(tmp_path, monkeypatch):
    """Prevents a full disk or a kill from emptying the leaderboard of a class."""
    path = tmp_path / "board.csv"
    before = course.enter(path, "Ada", SCORES, "mine")

    def cut_off(table, file, **options):
        Path(file).write_text("name,meth")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pandas.DataFrame, "to_csv", cut_off)
        with pytest.raises(OSError, match="No space left"):
            course.enter(path, "Ben", SCORES, "mine")
    pandas.testing.assert_frame_equal(course.read(path), before)


def test_the_board_is_read_before_another_may_write(tmp_path, monkeypatch):
    """Prevents a student from being shown a board that another's entry changes at the moment."""
    path = tmp_path / "board.csv"
    read, held = leaderboard.read, []

    def read_under_lock(file):
        with pytest.raises(Timeout):
            FileLock(f"{file}.lock", timeout=0).acquire()
        held.append(file)
        return read(file)

    monkeypatch.setattr(leaderboard, "read", read_under_lock)
    course.enter(path, "Ada", SCORES, "mine")
    assert held == [path, path]


def test_bad_entries_are_one_line(tmp_path):
    """Prevents a row that nobody meant, and a file that is overwritten."""
    board, two = tmp_path / "board.csv", SCORES.iloc[:2]
    for call, arguments, message in (
        (course.enter, (board, "Ada", SCORES, "mien"), "no scores of 'mien'; did you mean 'mine'"),
        (course.enter, (board, "Ada", SCORES, "SimCSE"), "'SimCSE' is the baseline itself"),
        (course.enter, (board, " ", SCORES, "mine"), "name: expected"),
        (course.table_over_seeds, (SCORES, "SimCS"), "no scores of 'SimCS'"),
        (course.table_over_seeds, (two, "SimCSE"), "at least 3"),
    ):
        with pytest.raises(DataError, match=message):
            call(*arguments)
    assert not board.exists()
    for text in ("", "a,b\n1,2\n"):
        (tmp_path / "other.csv").write_text(text)
        with pytest.raises(DataError, match="other.csv is no leaderboard"):
            course.read(tmp_path / "other.csv")


@pytest.mark.parametrize(
    ("low", "high", "difference", "words"),
    [
        (0.2, 1.2, 0.7, "0.7 points above SimCSE (95 % interval 0.2 to 1.2)"),
        (-1.2, -0.2, -0.7, "0.7 points below SimCSE (95 % interval 0.2 to 1.2)"),
        (-0.2, 0.4, 0.1, "not distinguishable from SimCSE (+0.1 points"),
    ],
)
def test_a_difference_is_only_called_one_if_its_interval_excludes_zero(
    low, high, difference, words
):
    """Prevents a page that says "above" of noise."""
    assert words in course.relation(PairComparison(difference, low, high, 0.1), "SimCSE")
