"""An interrupted `fit`, killed at any moment and called again, ends with the same weights bit for
bit."""

import json
import os
import random
import signal
import threading
import time

import pytest
import torch
from build_method import build
from tqdm import tqdm
from training_helpers import Scores, same, schedule

from cselab.training import checkpoints, fit

PLAN = schedule(steps=24, eval_every=3, batch_size=8)
DEV = (0, 3, 9, 5, 1, 2, 8, 4, 7)  # the best is the second mark, early, so that it has to be kept


class Interrupted(Exception):
    """Stands for a kill."""


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

    class Stop(Scores):
        def __call__(self, method):
            if len(self.seen) == mark:
                raise Interrupted
            return super().__call__(method)

    name, expected, weights = uninterrupted
    with pytest.raises(Interrupted):
        fit(build(name, towers), corpus, PLAN, dev=Stop(*DEV), seed=7, checkpoints=tmp_path / "run")
    method = build(name, towers)
    dev = still_to_come(tmp_path / "run")
    result = fit(method, corpus, PLAN, dev=dev, seed=7, checkpoints=tmp_path / "run")
    assert same(method.state_dict(), weights)
    assert result.history == expected.history
    assert (result.best_step, result.best_dev) == (expected.best_step, 9)
    assert not (tmp_path / "run").exists()


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
