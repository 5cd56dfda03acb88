"""Monitoring of a training: the probe, the speed, the files, the alarm."""

import json
from contextlib import nullcontext

import pytest
import torch
from build_method import build
from training_helpers import schedule

from cselab.errors import DivergenceError
from cselab.training import fit, watch
from cselab.training.watch import Probe


def test_the_probe_draws_nothing_and_sees_the_same_twice(towers, corpus):
    """Prevents a look that moves the training's dropout, and a probe that changes."""
    method = build("simcse", towers, dropout=0.3).train()
    probe = Probe(method, corpus, torch.device("cpu"))
    torch.manual_seed(1)
    looks = [probe.measure(method) for _ in range(2)]
    drawn = torch.rand(3)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3), drawn)
    assert looks[0] == looks[1]
    assert looks[0]["alignment"] > 0  # two dropout views
    assert looks[0]["uniformity"] < 0
    assert len(probe.batch["input_ids"]) == 2 * len(corpus)


@pytest.mark.parametrize("diverges", [False, True])
def test_logs_that_cannot_be_written_end_no_training(diverges, towers, corpus, tmp_path, capsys):
    """Prevents TensorBoard's files from costing the weights, and a divergence its message."""
    (tmp_path / "file").touch()
    method, logs = build("simcse", towers), tmp_path / "file" / "logs"

    def dev(method):
        if diverges:
            with torch.no_grad():
                method.encoder.backbone.embeddings.word_embeddings.weight[5].fill_(torch.inf)
        return 0.0

    with pytest.raises(DivergenceError, match="not finite") if diverges else nullcontext():
        fit(method, corpus, schedule(), dev=dev, seed=7, logs=logs)
    assert capsys.readouterr().err.count("training: no TensorBoard files (") == 1


def test_a_run_leaves_its_curves(towers, corpus, tmp_path):
    """Prevents TensorBoard files without the terms, or at other steps than the history's."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    method = build("jtcse", towers)
    result = fit(method, corpus, schedule(), dev=lambda m: 50.0, seed=7, logs=tmp_path)
    events = EventAccumulator(str(tmp_path)).Reload()
    for name in ("dev", "nce", "icnce", "ictm", "alignment", "uniformity", "sentences_per_second"):
        assert events.Scalars(name)[-1].step == 6
    expected = [row["nce"] for row in result.history[1:]]
    assert [event.value for event in events.Scalars("nce")] == pytest.approx(expected, rel=1e-6)
    assert result.sentences_per_second == pytest.approx(6 * 8 / result.seconds)


def test_collapse_stops_the_run(towers, corpus):
    """Prevents a night spent on a run whose embeddings are one point."""
    method = build("simcse", towers)
    looks = iter(range(9))

    def dev(method):
        if next(looks) == 1:  # at step 2, as a runaway learning rate might
            with torch.no_grad():
                method.encoder.backbone.encoder.layer[-1].output.LayerNorm.weight.zero_()
        return 0.0

    with pytest.raises(DivergenceError, match=r"collapsed: .* from -\d\.\d+ to -?0\.00.*'nce'"):
        fit(method, corpus, schedule(), dev=dev, seed=7)


@pytest.mark.parametrize(
    ("start", "now", "collapsed"),
    [(-2.0, -0.04, True), (-2.0, -0.3, False), (-0.06, -0.045, False), (-0.06, -0.001, True)],
)
def test_collapse_is_measured_from_the_start(start, now, collapsed, towers, corpus, monkeypatch):
    """Prevents an alarm for a random encoder, which starts near one point and may drift."""
    method = build("simcse", towers)
    probe = Probe(method, corpus, torch.device("cpu"))
    values = iter((start, now))
    monkeypatch.setattr(watch, "uniformity", lambda _: torch.tensor(next(values)))
    probe.measure(method)
    with pytest.raises(DivergenceError) if collapsed else nullcontext():
        probe.measure(method)


def test_a_student_may_follow_its_teacher_into_one_point(towers, corpus):
    """Prevents an alarm that tells a student of a narrow teacher to add negatives."""
    method = build("distilled", towers)
    probe = Probe(method, corpus, torch.device("cpu"))
    probe.measure(method)
    with torch.no_grad():
        norm = method.encoder.backbone.encoder.layer[-1].output.LayerNorm
        norm.weight.zero_()
        norm.bias.fill_(1.0)
    assert probe.measure(method)["uniformity"] == pytest.approx(0, abs=1e-4)


def test_a_bad_step_leaves_its_sentences(towers, corpus, tmp_path):
    """Prevents a divergence that nobody can look at."""
    method = build("simcse", towers)

    def dev(method):
        with torch.no_grad():
            method.encoder.backbone.embeddings.word_embeddings.weight[5].fill_(torch.inf)
        return 0.0

    with pytest.raises(DivergenceError, match="sentences are in .*diverged-at-step-0.json"):
        fit(method, corpus, schedule(), dev=dev, seed=7, logs=tmp_path)
    kept = json.loads((tmp_path / "diverged-at-step-0.json").read_text())
    assert len(kept["sentences"]) == 16
    assert "a man" in " ".join(kept["sentences"])
