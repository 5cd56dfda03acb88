"""A listener of a training, and a training that is interrupted."""

import pytest
from build_method import build
from training_helpers import Scores, same, schedule, train

from cselab.errors import Interrupted
from cselab.training import fit


class Follower:
    """Keeps what it is told; interrupts at a step."""

    def __init__(self, stop_at=None, error=Interrupted):
        self.steps, self.rows, self.stop_at, self.error = [], [], stop_at, error
        self.total = None

    def started(self, name, steps):
        self.total = steps

    def step(self, name, number, terms):
        self.steps.append((number, terms))
        if number == self.stop_at:
            raise self.error("asked to stop")

    def evaluated(self, name, row):
        self.rows.append(row)


def test_a_listener_hears_every_step_and_every_evaluation(towers, corpus):
    """Prevents a live figure that misses steps, and one whose curve is another than the history."""
    follower, method = Follower(), build("tncse", towers)
    result = fit(method, corpus, schedule(), dev=lambda m: 0.0, seed=7, listener=follower)
    assert [number for number, _ in follower.steps] == [1, 2, 3, 4, 5, 6]
    assert follower.total == 6
    assert all(set(terms) == {"nce", "icnce", "ictm"} for _, terms in follower.steps)
    assert follower.rows == result.history
    first = [terms["nce"] for _, terms in follower.steps[:2]]
    assert result.history[1]["nce"] == pytest.approx(sum(first) / 2)
    unheard = build("tncse", towers)  # a listener changes nothing
    train(unheard, corpus, schedule())
    assert same(method.state_dict(), unheard.state_dict())


@pytest.mark.parametrize("error", [Interrupted, KeyboardInterrupt])
def test_an_interrupted_training_says_where_it_goes_on_and_does(
    towers, corpus, tmp_path, capsys, error
):
    """Prevents 370 lines of traceback, and a training that starts again without a word."""
    plain = build("simcse", towers)
    _, expected = train(plain, corpus, schedule(), dev=Scores(0, 1, 2, 3))
    options = {"seed": 7, "checkpoints": tmp_path / "checkpoints", "name": "mine"}
    stopped, stopper = build("simcse", towers), Follower(stop_at=5, error=error)
    with pytest.raises(Interrupted) as interrupted:
        fit(stopped, corpus, schedule(), dev=Scores(0, 1, 2, 3), listener=stopper, **options)
    line = "mine: interrupted at step 5 of 6; run it again to go on from step 4"
    assert str(interrupted.value) == line
    assert interrupted.value._render_traceback_() == [line]
    follower, resumed = Follower(), build("simcse", towers)
    fit(resumed, corpus, schedule(), dev=Scores(3), listener=follower, **options)
    assert "mine: resumed at step 4" in capsys.readouterr().out
    assert [number for number, _ in follower.steps] == [5, 6]
    assert [row["step"] for row in follower.rows] == [0, 2, 4, 6]
    assert same(resumed.state_dict(), expected)
