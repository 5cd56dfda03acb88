"""An interrupted `fit`, killed at any moment and called again, ends with the same weights bit for
bit."""

import itertools
import json
import os
import random
import signal
import sys
import threading
import time

import pytest
import torch
from build_method import build
from tqdm import tqdm
from training_helpers import Scores, same, schedule

from cselab.errors import DivergenceError
from cselab.training import checkpoints, fit, watch

PLAN = schedule(steps=24, eval_every=3, batch_size=8)
DEV = (0, 3, 9, 5, 1, 2, 8, 4, 7)  # the best is the second mark, early, so that it has to be kept


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


@pytest.fixture(scope="module", params=["simcse", "jtcse", "esimcse"])
def uninterrupted(request, towers, corpus):
    """A method's name, and the result and the weights of its training in one go."""
    return request.param, *whole(request.param, towers, corpus)


def still_to_come(folder, scores=DEV):
    """The dev scores of the marks that a resumed run has before it."""
    last = checkpoints.last_complete(folder)
    return Scores(*scores[len(checkpoints.read_history(last)) if last else 0 :])


@pytest.mark.parametrize("mark", [0, 1, 4, 8])
def test_stopped_at_a_mark_it_goes_on_to_the_same_weights(
    uninterrupted, mark, towers, corpus, tmp_path
):
    """Prevents a resume that forgets the best weights, a random state, the optimizer, its place in
    the data, or what a method remembers: a queue, a momentum encoder."""
    name, expected, weights = uninterrupted
    dev = Stop(mark, *DEV)
    with pytest.raises(Interrupted):
        fit(build(name, towers), corpus, PLAN, dev=dev, seed=7, checkpoints=tmp_path / "run")
    method = build(name, towers)
    dev = still_to_come(tmp_path / "run")
    result = fit(method, corpus, PLAN, dev=dev, seed=7, checkpoints=tmp_path / "run")
    assert same(method.state_dict(), weights)
    assert result.history == expected.history
    assert (result.best_step, result.best_dev) == (expected.best_step, 9)
    assert not (tmp_path / "run").exists()


def test_killed_after_its_last_step_it_trains_no_step_more(towers, corpus, tmp_path, monkeypatch):
    """Prevents an eleventh step of ten: transformers looks whether training is over only after a
    step."""
    plan, scores = schedule(steps=10, eval_every=2), (0, 1, 2, 3, 4, 5)
    expected, weights = whole("simcse", towers, corpus, plan, scores)

    def killed(folder):
        raise Interrupted

    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["cselab.training.fit"], "remove_checkpoints", killed)
        method, dev = build("simcse", towers), Scores(*scores)
        with pytest.raises(Interrupted):
            fit(method, corpus, plan, dev=dev, seed=7, checkpoints=folder)
    assert (folder / "checkpoint-10" / checkpoints.HISTORY).is_file()
    method = build("simcse", towers)
    result = fit(method, corpus, plan, dev=Scores(5, 6, 7), seed=7, checkpoints=folder)
    assert same(method.state_dict(), weights)
    assert result.history == expected.history


def test_collapse_after_a_resume_is_measured_from_the_start(towers, corpus, tmp_path, monkeypatch):
    """Prevents embeddings that collapsed around an interruption from being taken for the start."""
    looks = itertools.chain([-2.0] * 3, itertools.repeat(-0.04))
    monkeypatch.setattr(watch, "uniformity", lambda _: torch.tensor(next(looks)))
    folder, killed = tmp_path / "run", Stop(2, 0, 0)
    with pytest.raises(Interrupted):
        fit(build("simcse", towers), corpus, schedule(), dev=killed, seed=7, checkpoints=folder)
    dev = Scores(0, 0)
    with pytest.raises(DivergenceError, match=r"went from -2\.00 to -0\.04"):
        fit(build("simcse", towers), corpus, schedule(), dev=dev, seed=7, checkpoints=folder)


def test_half_removed_checkpoints_are_not_resumed_from(tmp_path, monkeypatch):
    """Prevents a kill while a finished training removes its checkpoints from failing the next call,
    which would take one without its weights for complete."""
    for step in (3, 6):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        for name in ("model.safetensors", checkpoints.HISTORY):
            (folder / name).write_text("[]")

    def killed(folder):
        (folder / "checkpoint-6" / "model.safetensors").unlink()
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(checkpoints.shutil, "rmtree", killed)
        with pytest.raises(Interrupted):
            checkpoints.remove_checkpoints(tmp_path)
    assert checkpoints.last_complete(tmp_path) is None


def test_a_half_written_checkpoint_is_passed_over(tmp_path):
    """Prevents a kill while saving from costing the checkpoint before it too."""
    for step, done in [(3, True), (6, True), (9, False)]:
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "optimizer.pt").write_bytes(b"half")
        if done:
            (folder / checkpoints.HISTORY).write_text("[]")
    assert checkpoints.last_complete(tmp_path).name == "checkpoint-6"
    assert not (tmp_path / "checkpoint-9").exists()
    assert checkpoints.last_complete(tmp_path / "nothing") is None


@pytest.mark.slow
def test_twenty_kills(towers, corpus, tmp_path):
    """kill -9 at random moments of training and saving; each try is a process of its own, forked
    after the imports."""
    torch.set_num_threads(1)  # a fork of a process with worker threads would hang
    plan, scores = (
        schedule(steps=450, eval_every=5, learning_rate=1e-5),
        tuple(37 * i % 101 for i in range(91)),
    )
    expected, weights = whole("jtcse", towers, corpus, plan, scores)
    folder, result = tmp_path / "run", tmp_path / "result.pt"
    moments, kills = random.Random(0), 0
    while not result.exists():
        child = os.fork()
        if child == 0:
            # tqdm's own lock is one for all forks: a child that is killed with it would stop the
            # others for ever
            tqdm.set_lock(threading.RLock())
            method = build("jtcse", towers)
            done = fit(
                method, corpus, plan, dev=still_to_come(folder, scores), seed=7, checkpoints=folder
            )
            torch.save(
                {"weights": method.state_dict(), "history": json.dumps(done.history)},
                tmp_path / "part.pt",
            )
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
