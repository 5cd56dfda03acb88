"""Paths that users type, and files that are written beside their place and moved there whole."""

import os
from pathlib import Path

import pytest

from cselab.errors import SettingsError
from cselab.experiments import configure
from cselab.paths import absolute, replacing
from cselab.workbook.headless.parameters import absolute_paths


def test_a_path_in_a_setting_is_absolute_and_a_name_stays_a_name(tmp_path, monkeypatch):
    """Prevents a worker, or a kernel, that reads files of its own folder; and a folder that hides a
    shipped model or a name of data."""
    monkeypatch.chdir(tmp_path)
    for name in ("my-bert", "tiny-bert", "lexical", "wiki1m", "STS12", "org/model"):
        Path(name).mkdir(parents=True)
    Path("a.txt").touch()
    given = {
        "corpus": ("a.txt,wiki1m", f"{tmp_path}/a.txt,wiki1m"),
        "tasks": ("STS12, b.tsv", f"STS12,{tmp_path}/b.tsv"),  # not there: not the worker's either
        "dev_task": ("~/c.tsv", str(Path.home() / "c.tsv")),
        "data_dir": ("d", f"{tmp_path}/d"),
        "towers.0.backbone": ("my-bert", f"{tmp_path}/my-bert"),
        "towers.1.backbone": ("tiny-bert", "tiny-bert"),
        "towers.0.translator": ("my-{pivot}", f"{tmp_path}/my-{{pivot}}"),
        "towers.1.translator": ("lexical", "lexical"),
    }
    run = configure("jtcse", changes={name: value for name, (value, _) in given.items()})
    for name, (typed, path) in given.items():
        (place,) = run.resolve(name)
        found = run.value_at(place)
        assert (",".join(found) if isinstance(found, tuple) else str(found)) == path
        assert absolute_paths(name, typed) == path  # `cselab run` means the same
    for name, path in (("./x", f"{tmp_path}/x"), ("org/model", f"{tmp_path}/org/model")):
        assert configure("bellm", changes={"decoder": name}).method.decoder == path


def test_a_user_without_a_home_is_told_so(monkeypatch):
    """Prevents the RuntimeError of pathlib in a container whose user has no entry."""
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(SettingsError, match="~/x: no home folder is known; write the path in full"):
        absolute("~/x")


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


def test_a_link_stays_a_link(tmp_path):
    """Prevents a shared file, reached by a link, that is no longer shared after a write."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "a.txt").symlink_to(tmp_path / "shared" / "a.txt")
    with replacing(tmp_path / "a.txt") as work:
        work.write_text("new")
    assert (tmp_path / "shared" / "a.txt").read_text() == "new"
    assert (tmp_path / "a.txt").is_symlink()
