"""Seals: every kind of damage of what is kept is found, and whoever may read it can."""

import json
import os

import pytest
from safetensors.numpy import save_file
from seal_helpers import DAMAGES

from cselab.errors import DataError
from cselab.seals import SEAL, clear_access, damage, is_whole, seal


@pytest.fixture(params=["file", "folder"])
def sealed(request, tmp_path):
    """A sealed file, or a folder with two; and the files whose damage matters."""
    if request.param == "file":
        path = tmp_path / "rows.arrow"
        path.write_bytes(os.urandom(3000))
        seal(path)
        return path, [path]
    path = tmp_path / "step"
    (path / "encoder").mkdir(parents=True)
    (path / "fit.json").write_text("{}  ")
    (path / "encoder" / "weights").write_bytes(os.urandom(3000))
    seal(path)
    return path, [path / "fit.json", path / "encoder" / "weights", path / SEAL]


@pytest.mark.parametrize("how", DAMAGES)
def test_any_damage_of_any_file_is_named_once_and_removed(how, sealed, capsys):
    """Prevents a cache that is trusted because it exists."""
    path, files = sealed
    whole = {file: file.read_bytes() for file in files}
    assert not damage(path)
    assert is_whole(path)
    if path.is_dir():  # as a training does that is resumed
        seal(path)
        assert is_whole(path)
    for file in files:
        DAMAGES[how](file)
        if how != "gone" or path not in files:
            assert not is_whole(path)
            (line,) = capsys.readouterr().err.splitlines()
            assert f"{path} is damaged (" in line
            assert file.name in line or file.name == SEAL  # of which one hash is another
        assert not path.exists()
        assert not is_whole(path)
        assert not capsys.readouterr().err  # what never was needs no line
        for one, content in whole.items():
            one.parent.mkdir(parents=True, exist_ok=True)
            one.write_bytes(content)


@pytest.mark.parametrize("content", ["[]", "3", "null", '{"fit.json": 1}', "\ufffe"])
def test_a_seal_of_another_form_is_damaged(content, tmp_path):
    """Prevents a traceback from whatever half a file happens to say."""
    (tmp_path / "fit.json").write_text("{}")
    (tmp_path / SEAL).write_text(content, encoding="utf-16" if content == "\ufffe" else "utf-8")
    assert damage(tmp_path)


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077])
def test_a_sealed_folder_is_as_open_as_the_umask_says(umask, tmp_path):
    """Prevents weights that only their owner can read: safetensors writes with 0600."""
    before = os.umask(umask)
    try:
        folder = tmp_path / "step"
        folder.mkdir()
        save_file({}, folder / "model.safetensors")
        seal(folder)
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert modes == dict.fromkeys(("model.safetensors", SEAL), 0o666 & ~umask)
    assert json.loads((folder / SEAL).read_text()).keys() == {"model.safetensors"}


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "{}/a"), r"^cannot read or write .*/a \(Perm"),
        (OSError(5, "Input/output error", "{}/a/b"), r"^cannot read or write .*/a/b \(Input"),
        (OSError(28, "No space left on device"), "^no space left on the disk of .*: free some"),
        (RuntimeError("PytorchStreamWriter: file write failed"), "^no space left on the disk"),
        (ValueError("No space left on device (os error 28)"), "^no space left on the disk"),
    ],
)
def test_what_cannot_be_written_is_one_line(error, message, tmp_path):
    """Prevents eighty lines of traceback of torch and safetensors for a full disk."""
    if isinstance(error, OSError) and error.filename:
        error = type(error)(error.errno, error.strerror, error.filename.format(tmp_path))
    with pytest.raises(DataError, match=message) as raised, clear_access(tmp_path):
        raise error
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file", "/x"), KeyError("x")])
def test_other_errors_stay_what_they_are(error, tmp_path):
    """Prevents a user's own error from being taken for one of the outputs."""
    with pytest.raises(type(error)), clear_access(tmp_path):
        raise error
