"""The lab: stages are computed once, whole or not at all; results carry where they come from."""

import errno
import json
import subprocess
import sys

import pytest
import torch

import cselab
from cselab.errors import CselabError, SettingsError


@pytest.fixture
def lab(tmp_path, monkeypatch):
    for variable in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS"):
        monkeypatch.delenv(variable, raising=False)
    return cselab.open_lab("test", outputs=tmp_path, device="cpu")


def test_a_stage_runs_once_for_the_same_inputs(lab):
    calls = []

    def compute(folder):
        calls.append(folder)
        (folder / "value").write_text("1")

    first = lab.stage("step", {"a": 1}, compute)
    assert lab.stage("step", {"a": 1}, compute) == first
    assert lab.stage("step", {"a": 2}, compute) != first
    assert len(calls) == 2
    assert (first / "value").read_text() == "1"


def test_a_changed_library_makes_a_new_stage(lab, monkeypatch):
    """Prevents a result of yesterday's loss from passing as today's."""
    first = lab.stage("step", {}, lambda folder: None)
    monkeypatch.setattr("cselab.lab.source_hash", lambda: "changed")
    assert lab.stage("step", {}, lambda folder: None) != first


def test_a_failed_stage_leaves_nothing(lab):
    def fail(folder):
        (folder / "half").write_text("written")
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        lab.stage("step", {}, fail)
    assert not [path for path in lab.stages_dir.iterdir() if path.suffix != ".lock"]


def test_a_full_disk_is_one_line(lab):
    def fail(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(CselabError, match="no space left on the disk of .*: free some, or set `outputs` elsewhere"):
        lab.stage("step", {}, fail)
    assert not [path for path in lab.stages_dir.iterdir() if path.suffix != ".lock"]


def test_rows_carry_seed_settings_and_environment(lab):
    lab.record([{"method": "m", "task": "t", "score": 1.5}])
    lab.record([{"method": "m", "task": "u", "score": 2.5}])
    rows = [json.loads(line) for line in (lab.run_dir / "results.jsonl").read_text().splitlines()]
    assert [row["task"] for row in rows] == ["t", "u"]
    assert {"seed", "settings", "torch", "hardware", "commit", "source", "profile", "notebook"} <= rows[0].keys()


def test_the_seed_decides_torchs_draws(tmp_path):
    draws = []
    for seed in (1, 1, 2):
        cselab.open_lab("test", outputs=tmp_path, seed=seed)
        draws.append(torch.rand(3))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


def test_with_settings_changes_one_setting_and_keeps_the_rest(tmp_path):
    lab = cselab.open_lab("test", outputs=tmp_path, seed=7)
    other = lab.with_settings(caels=1)
    assert (other.settings.caels, other.settings.seed, other.settings.outputs) == (1, 7, tmp_path)
    assert lab.settings.caels == 3


def test_outputs_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="outputs: cannot write to .*choose another folder"):
        cselab.open_lab("test", outputs=tmp_path / "file")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the device that the test wants missing")
def test_a_missing_device_lists_those_there(tmp_path):
    with pytest.raises(
        SettingsError, match=r"device 'cuda' is not on this machine; use device='auto' or one of \['cpu'"
    ):
        cselab.open_lab("test", outputs=tmp_path, device="cuda")


def test_importing_cselab_does_not_import_torch():
    """Prevents `cselab --help` from taking seconds."""
    code = "import sys, cselab, cselab.cli; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
