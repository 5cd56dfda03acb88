"""A `fit` killed at any moment and called again ends with the same weights, bit for bit."""

import itertools
import json
import multiprocessing
import os
import random
import shutil
import signal
import threading
import time
from unittest import mock

import pytest
import torch
from build_method import build
from seal_helpers import DAMAGES
from tqdm import tqdm
from training_helpers import Scores, same, schedule

from cselab.errors import DivergenceError
from cselab.seals import SEAL, seal
from cselab.training import checkpoints, fit, trainer, watch

PLAN = schedule(steps=24, eval_every=3, batch_size=8)
DEV = (0, 9, 3, 5, 1, 2, 8, 4, 7)  # the best is the first mark, early, so that it has to be kept


class Interrupted(Exception):
    """Stands for a kill."""


class Stop(Scores):
    """Dev scores of a run that is killed at a mark."""

    def __init__(self, mark, *values):
        super().__init__(*values)
        self.mark = mark

    def __call__(self, method):
        if len(self.seen) == self.mark:
            raise Interrupted
        return super().__call__(method)


def whole(name, towers, corpus, plan=PLAN, scores=DEV):
    method = build(name, towers)
    return fit(method, corpus, plan, dev=Scores(*scores), seed=7), method.state_dict()


@pytest.fixture(scope="module")
def simcse(towers, corpus):
    """The result and the weights of SimCSE's training in one go."""
    return whole("simcse", towers, corpus)


@pytest.fixture(scope="module", params=["simcse", "jtcse", "esimcse"])
def uninterrupted(request, simcse, towers, corpus):
    """A method's name, and the result and the weights of its training in one go."""
    whole_run = simcse if request.param == "simcse" else whole(request.param, towers, corpus)
    return request.param, *whole_run


def still_to_come(folder, scores=DEV):
    """The dev scores of the marks that a resumed run has before it."""
    last, _ = checkpoints.last_complete(folder)
    return Scores(*scores[len(checkpoints.read_history(last)) if last else 0 :])


@pytest.mark.parametrize("mark", [1, 4, 8])
def test_stopped_at_a_mark_it_goes_on_to_the_same_weights(
    uninterrupted, mark, towers, corpus, tmp_path
):
    """Prevents a resume that forgets the best weights, a random state, the optimizer, its place in
    the data, or what a method remembers: a queue, a momentum encoder."""
    name, expected, weights = uninterrupted
    options = {"seed": 7, "checkpoints": tmp_path / "run"}
    with pytest.raises(Interrupted):
        fit(build(name, towers), corpus, PLAN, dev=Stop(mark, *DEV), **options)
    method = build(name, towers)
    result = fit(method, corpus, PLAN, dev=still_to_come(tmp_path / "run"), **options)
    assert same(method.state_dict(), weights)
    assert result.history == expected.history
    assert (result.best_step, result.best_dev) == (expected.best_step, 9)
    assert not (tmp_path / "run").exists()


def test_fewer_checkpoints_end_at_the_same_weights(simcse, towers, corpus, tmp_path):
    """Prevents a best step between two checkpoints that is lost, and terabytes of checkpoints."""
    expected, weights = simcse
    folder = tmp_path / "run"
    options = {"seed": 7, "checkpoints": folder, "save_every": 7}
    with pytest.raises(Interrupted):
        fit(build("simcse", towers), corpus, PLAN, dev=Stop(6, *DEV), **options)
    assert [path.name for path in folder.iterdir()] == ["checkpoint-9"]
    method = build("simcse", towers)
    result = fit(method, corpus, PLAN, dev=still_to_come(folder), **options)
    assert same(method.state_dict(), weights)
    assert result.history == expected.history


def test_batches_that_other_processes_collate_are_the_same(towers, corpus, tmp_path, monkeypatch):
    """Prevents another order of batches, random numbers that a worker draws, or misses in a later
    epoch, a resume after what was collated ahead, and a worker of dask, a daemon, that ends."""
    plan, scores = schedule(steps=8, eval_every=2), (0, 1, 2, 3, 4)
    expected, weights = whole("jtcse", towers, corpus, plan, scores)
    started, process = [], multiprocessing.get_context("fork").Process
    start = process.start
    monkeypatch.setattr(process, "start", lambda self: (started.append(self), start(self))[1])
    monkeypatch.setitem(trainer.WORKERS, "cpu", 2)
    result, parallel = whole("jtcse", towers, corpus, plan, scores)
    assert same(parallel, weights)
    assert result.history == expected.history
    assert len(started) == 2 * 3  # in each epoch, of three steps
    options = {"seed": 7, "checkpoints": tmp_path / "run"}
    with pytest.raises(Interrupted):  # the checkpoint before is in the middle of an epoch
        fit(build("jtcse", towers), corpus, plan, dev=Stop(3, *scores), **options)
    method = build("jtcse", towers)
    fit(method, corpus, plan, dev=still_to_come(tmp_path / "run", scores), **options)
    assert same(method.state_dict(), weights)
    started.clear()
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    assert same(whole("jtcse", towers, corpus, plan, scores)[1], weights)
    assert not started


def test_a_start_that_no_step_betters_is_kept_after_a_resume(towers, corpus, tmp_path):
    """Prevents the weights at which a run went on from standing for those before its first step."""
    plan, options = schedule(), {"seed": 7, "checkpoints": tmp_path / "run"}
    with pytest.raises(Interrupted):
        fit(build("simcse", towers), corpus, plan, dev=Stop(2, 9, 1, 2, 3), **options)
    method = build("simcse", towers)
    result = fit(method, corpus, plan, dev=Scores(2, 3), **options)
    assert (result.best_step, result.best_dev) == (0, 9)
    assert same(method.state_dict(), build("simcse", towers).state_dict())


def test_killed_after_its_last_step_it_trains_no_step_more(towers, corpus, tmp_path):
    """Prevents an eleventh step of ten: transformers looks whether training is over only after a
    step."""
    plan, scores = schedule(steps=10, eval_every=2), (0, 1, 2, 3, 4, 5)
    expected, weights = whole("simcse", towers, corpus, plan, scores)
    folder, remove = tmp_path / "run", shutil.rmtree
    options = {"seed": 7, "checkpoints": folder}

    def killed(path, *rest, **more):
        if path == folder:
            raise Interrupted
        remove(path, *rest, **more)

    with mock.patch.object(shutil, "rmtree", killed), pytest.raises(Interrupted):
        fit(build("simcse", towers), corpus, plan, dev=Scores(*scores), **options)
    assert (folder / "checkpoint-8" / SEAL).is_file()
    method = build("simcse", towers)
    result = fit(method, corpus, plan, dev=Scores(5, 6, 7), **options)
    assert same(method.state_dict(), weights)
    assert result.history == expected.history


def test_collapse_after_a_resume_is_measured_from_the_start(towers, corpus, tmp_path, monkeypatch):
    """Prevents embeddings that collapsed around an interruption from being taken for the start."""
    looks = itertools.chain([-2.0] * 3, itertools.repeat(-0.04))
    monkeypatch.setattr(watch, "uniformity", lambda _: torch.tensor(next(looks)))
    options = {"seed": 7, "checkpoints": tmp_path / "run"}
    with pytest.raises(Interrupted):
        fit(build("simcse", towers), corpus, schedule(), dev=Stop(2, 0, 0), **options)
    with pytest.raises(DivergenceError, match=r"went from -2\.00 to -0\.04"):
        fit(build("simcse", towers), corpus, schedule(), dev=Scores(0, 0), **options)


@pytest.fixture(scope="module")
def stopped(towers, corpus, tmp_path_factory):
    """Checkpoints of SimCSE, stopped before step 18: 12 and 15; the best step is 3."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    method, dev = build("simcse", towers), Stop(6, *DEV)
    with pytest.raises(Interrupted):
        fit(method, corpus, PLAN, dev=dev, seed=7, checkpoints=folder)
    assert {path.name for path in folder.iterdir()} == {f"checkpoint-{n}" for n in (12, 15)}
    return folder


@pytest.mark.parametrize("how", DAMAGES)
def test_a_checkpoint_with_any_damaged_file_is_passed_over(how, stopped, tmp_path):
    """Prevents a resume without its optimizer, to other weights, and tracebacks of torch."""
    names = sorted(path.name for path in (stopped / "checkpoint-15").iterdir())
    expected = {"optimizer.pt", "scheduler.pt", "rng_state.pth"}
    assert expected | {checkpoints.HISTORY, checkpoints.BEST} < set(names)
    for name in names:
        folder = tmp_path / name
        shutil.copytree(stopped, folder)
        DAMAGES[how](folder / "checkpoint-15" / name)
        last, (why,) = checkpoints.last_complete(folder)
        assert last.name == "checkpoint-12"
        assert why.startswith("checkpoint-15: ")
        assert name in why or name == SEAL  # of which one hash is another
        assert not (folder / "checkpoint-15").exists()
        assert checkpoints.last_complete(folder) == (last, [])


@pytest.mark.parametrize(
    ("damaged", "said"),
    [
        ((15,), "simcse: resumed at step 12 (checkpoint-15: optimizer.pt is damaged)"),
        ((12, 15), "simcse: starts again (checkpoint-15: optimizer.pt is damaged; checkpoint-"),
    ],
)
def test_it_goes_on_before_the_damage_to_the_same_weights(
    damaged, said, simcse, stopped, towers, corpus, tmp_path, capsys
):
    """Prevents an end without the best weights, of a step that has no checkpoint any more."""
    expected, weights = simcse
    folder = tmp_path / "run"
    shutil.copytree(stopped, folder)
    for step in damaged:
        DAMAGES["flip"](folder / f"checkpoint-{step}" / "optimizer.pt")
    capsys.readouterr()
    method, dev = build("simcse", towers), Scores(*DEV[5 if damaged == (15,) else 0 :])
    result = fit(method, corpus, PLAN, dev=dev, seed=7, checkpoints=folder, name="simcse")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(said)
    assert same(method.state_dict(), weights)
    assert result.history == expected.history


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    """Prevents a kill while saving from costing the checkpoint before it too."""
    for step, done in [(3, True), (6, True), (9, False)]:
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "optimizer.pt").write_bytes(b"half")
        if done:
            seal(folder)
    last, why = checkpoints.last_complete(tmp_path)
    assert (last.name, why) == ("checkpoint-6", [f"checkpoint-9: {SEAL} is missing"])
    assert not (tmp_path / "checkpoint-9").exists()
    assert checkpoints.last_complete(tmp_path / "nothing") == (None, [])


@pytest.mark.slow
def test_twenty_kills(towers, corpus, tmp_path):
    """kill -9 at random moments of training and saving, each of a fork after the imports."""
    torch.set_num_threads(1)  # a fork of a process with worker threads would hang
    plan = schedule(steps=450, eval_every=5, learning_rate=1e-5)
    scores = tuple(37 * i % 101 for i in range(91))
    expected, weights = whole("jtcse", towers, corpus, plan, scores)
    folder, result = tmp_path / "run", tmp_path / "result.pt"
    moments, kills = random.Random(0), 0
    while not result.exists():
        child = os.fork()
        if child == 0:
            # tqdm's own lock is one for all forks: a child that is killed with it would stop the
            # others for ever
            tqdm.set_lock(threading.RLock())
            method, dev = build("jtcse", towers), still_to_come(folder, scores)
            done = fit(method, corpus, plan, dev=dev, seed=7, checkpoints=folder)
            kept = {"weights": method.state_dict(), "history": json.dumps(done.history)}
            torch.save(kept, tmp_path / "part.pt")
            os.replace(tmp_path / "part.pt", result)
            os._exit(0)
        if kills < 20:
            time.sleep(moments.uniform(0.1, 1.3))
            os.kill(child, signal.SIGKILL)
            kills += 1
        _, status = os.waitpid(child, 0)
        assert status == 0 or os.WIFSIGNALED(status)
    got = torch.load(result)
    assert kills == 20
    assert same(got["weights"], weights)
    assert json.loads(got["history"]) == expected.history
