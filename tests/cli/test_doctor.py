"""The doctor: what it finds on a machine with something wrong, and that it never fails itself."""

import importlib.metadata
import os
import urllib.request

import pytest
from typer.testing import CliRunner

from cselab.cli import app, doctor


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refused(*args, **kwargs):
        raise OSError("no route to host")

    monkeypatch.setattr(urllib.request, "urlopen", refused)
    for variable in ("CSELAB_DATA", "HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(variable, raising=False)


def found(outputs) -> dict[str, doctor.Finding]:
    return {finding.subject: finding for finding in doctor.examine(outputs)}


def test_a_healthy_machine(tmp_path):
    findings = found(tmp_path)
    assert not any(finding.broken for finding in findings.values())
    assert "tiny-bert, tiny-llama" in findings["embedded data"].found
    assert "no route to host" in findings["hub"].found
    assert findings["hub"].fix
    assert not any("\n" in f"{finding.found} {finding.fix}" for finding in findings.values())


@pytest.mark.parametrize(
    ("value", "said"), [("1", "HF_HUB_OFFLINE is set"), ("0", "no route to host")]
)
def test_the_hub_is_offline_where_its_library_is(tmp_path, monkeypatch, value, said):
    """Prevents "HF_HUB_OFFLINE is set" for a value that turns it off."""
    monkeypatch.setenv("HF_HUB_OFFLINE", value)
    assert said in found(tmp_path)["hub"].found


def test_a_folder_that_cannot_be_made_is_broken(tmp_path):
    """Prevents "ok" for outputs that no run can write to."""
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    for outputs in (tmp_path / "file" / "outputs", tmp_path / "link"):
        assert found(outputs)["outputs"].broken
    assert not found(tmp_path / "new" / "outputs")["outputs"].fix


def test_the_processors_are_those_of_the_process(tmp_path, monkeypatch):
    """Prevents a report of all cores of a machine where a batch system gave three."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {2, 5, 7}, raising=False)
    assert found(tmp_path)["processor"].found.startswith("3 cores")


def test_a_missing_and_an_old_package(tmp_path, monkeypatch):
    version = importlib.metadata.version

    def other(name):
        if name == "bertviz":
            raise importlib.metadata.PackageNotFoundError(name)
        return "1.0" if name == "transformers" else version(name)

    monkeypatch.setattr(importlib.metadata, "version", other)
    result = CliRunner().invoke(app, ["doctor", "--outputs", str(tmp_path)])
    assert result.exit_code == 1
    (line,) = (line for line in result.stdout.splitlines() if "BROKEN   packages" in line)
    assert "bertviz is missing" in line
    assert "transformers 1.0, needed >=" in line


def test_a_data_folder_with_parts_missing(tmp_path, monkeypatch):
    (tmp_path / "data" / "sts").mkdir(parents=True)
    (tmp_path / "data" / "sts" / "sts12-test.tsv.gz").touch()
    monkeypatch.setenv("CSELAB_DATA", str(tmp_path / "data"))
    findings = found(tmp_path)
    assert (
        "1 in sts/; no files in corpus/, transfer/, nli/, parallel/:"
        in findings["data folder"].found
    )
    assert findings["data folder"].fix
    monkeypatch.setenv("CSELAB_DATA", str(tmp_path / "nowhere"))
    data = found(tmp_path)["data"]
    assert data.found.startswith("CSELAB_DATA: no folder")
    assert "install" not in data.fix


def test_a_check_that_raises_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: 1 / 0)
    findings = found(tmp_path)
    assert findings["disk"].broken
    assert not findings["embedded data"].fix
