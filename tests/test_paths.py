"""Files that are written beside their place and moved there whole."""

import pytest

from cselab.paths import replacing


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path):
    """Prevents half a file in the place of a whole one, and a temporary file that is left."""
    target = tmp_path / "a.txt"
    target.write_text("whole")

    def fail():
        with replacing(target) as work:
            work.write_text("ha")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert target.read_text() == "whole"
    with replacing(target) as work:
        work.write_text("new")
    assert target.read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_two_writers_have_a_file_each(tmp_path):
    """Prevents a file that is half of one writer and half of another."""
    target = tmp_path / "a.txt"
    with replacing(target) as one, replacing(target) as two:
        one.write_text("one")
        two.write_text("two")
    assert target.read_text() == "one"  # the last to end


def test_a_link_stays_a_link(tmp_path):
    """Prevents a shared file, reached by a link, that is no longer shared after a write."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "a.txt").symlink_to(tmp_path / "shared" / "a.txt")
    with replacing(tmp_path / "a.txt") as work:
        work.write_text("new")
    assert (tmp_path / "shared" / "a.txt").read_text() == "new"
    assert (tmp_path / "a.txt").is_symlink()
