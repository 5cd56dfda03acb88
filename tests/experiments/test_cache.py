"""The cache: steps are computed once, whole or not at all, on a device that is there."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import pytest
import torch
from seal_helpers import DAMAGES, as_another_user

from cselab.errors import CselabError, SettingsError
from cselab.experiments import Cache, set_up
from cselab.seals import SEAL


@pytest.fixture
def cache(tmp_path):
    return Cache(set_up(settings={"device": "cpu", "outputs": tmp_path}))


def unfinished(cache) -> list[Path]:
    return [path for path in cache.steps_dir.iterdir() if path.suffix != ".lock"]


def test_a_step_is_computed_once_for_the_same_inputs(cache):
    """Prevents a second training of what is there, and one result for two sets of inputs."""
    calls = []

    def compute(folder):
        calls.append(folder)
        (folder / "value").write_text("1")

    first = cache.step("name", {"a": 1}, compute)
    assert cache.step("name", {"a": 1}, compute) == first
    assert cache.step("name", {"a": 2}, compute) != first
    assert len(calls) == 2
    assert (first / "value").read_text() == "1"


def test_a_failed_step_leaves_nothing(cache):
    """Prevents half a step that a later run takes for a whole one."""

    def fail(folder):
        (folder / "half").write_text("written")
        raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        cache.step("name", {}, fail)
    assert not unfinished(cache)


def test_an_interrupted_training_finds_its_folder_again(cache):
    """Prevents a training that starts again from nothing although its checkpoints are there."""

    def interrupted(folder):
        (folder / "checkpoint").write_text("of step 100")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.step("name", {}, interrupted, resumable=True)
    seen = []
    cache.step("name", {}, lambda folder: seen.extend(folder.iterdir()), resumable=True)
    assert [path.name for path in seen] == ["checkpoint"]


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_step_is_computed_again(how, cache, capsys):
    """Prevents a step whose weights were purged, or whose file is cut, from being reused."""

    def compute(folder):
        (folder / "value").write_text("1234")

    for name in ("value", "step.json", SEAL):
        DAMAGES[how](cache.step("name", {}, compute) / name)
        capsys.readouterr()
        final = cache.step("name", {}, compute)
        assert (final / "value").read_text() == "1234"
        said = capsys.readouterr()
        assert said.err.count("\n") == said.err.count(f"{final} is damaged (") == 1
        assert "computed" in said.out


@pytest.fixture
def shared():
    """A folder that everybody can enter: pytest's own are for their owner alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_another_users_outputs_are_read_or_one_line(shared):
    """Prevents eighty lines of traceback though the step is finished: folders of mkdtemp and
    weights of safetensors are for their owner alone, and so is the lock."""
    before = os.umask(0o022)
    try:
        cache = Cache(set_up(settings={"device": "cpu", "outputs": shared / "outputs"}))
        final = cache.step("name", {"a": 1}, lambda folder: (folder / "x").touch())
    finally:
        os.umask(before)
    answer = shared / "answer"
    read = as_another_user(lambda: cache.step("name", {"a": 1}, lambda folder: None), answer)
    assert read == str(final)
    assert not as_another_user(lambda: cache.is_computing("name", {"a": 1}) or "", answer)
    refused = "DataError: cannot read or write {} (Permission denied); ask its owner for access, or"
    for inputs, place, mode in [
        ({"a": 2}, f"{cache._folder('name', {'a': 2})}.lock", 0o755),
        ({"a": 1}, final / SEAL, 0o700),
    ]:
        final.chmod(mode)
        said = as_another_user(
            lambda inputs=inputs: cache.step("name", inputs, lambda folder: None), answer
        )
        assert said.startswith(refused.format(place))
        assert "\n" not in said


def test_a_full_disk_is_one_line(cache):
    """Prevents a traceback, and the half-written folder that keeps the disk full."""

    def fail(folder):
        raise OSError(errno.ENOSPC, "No space left on device")

    message = (
        r"no space left on the disk of .*: free some, or set --outputs \(in a notebook `outputs`\)"
    )
    with pytest.raises(CselabError, match=message):
        cache.step("name", {}, fail)
    assert not unfinished(cache)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has the missing device")
def test_a_missing_device_lists_those_that_are_there(tmp_path):
    message = r"device 'cuda' is not on this machine; use device='auto' or one of \['cpu'"
    with pytest.raises(SettingsError, match=message):
        Cache(set_up(settings={"device": "cuda", "outputs": tmp_path}))


def test_a_step_that_another_process_computes_is_known(cache, tmp_path):
    """Prevents two notebooks that train the towers of a twin one after the other, while one of
    them waits."""
    other, seen = Cache(set_up(settings={"device": "cpu", "outputs": tmp_path})), []

    def compute(folder):
        seen.append([other.is_computing("tower", {"seed": seed}) for seed in (1, 2)])

    cache.step("tower", {"seed": 1}, compute)
    assert seen == [[True, False]]
    assert not other.is_computing("tower", {"seed": 1})
