"""The grids "as tuned here" have the settings that won the tuning on dev."""

import pytest
from result_values import TEXTS

from cselab.experiments.store import Store
from cselab.methods import MethodConfig
from cselab.study.recorded import methods, store

pytestmark = pytest.mark.slow  # expands all trials
TOWERS = {
    "SimCSE": "SimCSE,",
    "off-dropout": "off-dropout,",
    "SimCSE + DCL": "SimCSE + DCL,",
    "ImSimCSE": "ImSimCSE,",
    "DCL alone": "DCL alone,",
    "SimCSE + norm constraint, no head": "norm constraint,",
}
TWINS = {"TNCSE": "TNCSE,", "JTCSE": "JTCSE,"}
DECODERS = {f"BeLLM: {mode}": f"BeLLM {mode}," for mode in ("none", "last", "all", "addition")}
"""By label of a tuned grid: how the labels of its trials begin."""


def winner(grid: str, beginning: str) -> MethodConfig:
    """The best of eight trials by the mean dev score of three seeds; a trial in which a seed
    diverged is out."""
    runs, rows = Store(store(grid)).runs(), Store(store(grid)).scores()
    assert runs.label.str.startswith(beginning).sum() == 24
    dev = rows[(rows.measure == "dev") & rows.label.str.startswith(beginning)]
    trials = dev.groupby("label").value.agg(["mean", "size"])
    return methods(grid)[trials[trials["size"] == 3]["mean"].idxmax()]


def settings(config: MethodConfig) -> dict[tuple[str, ...], object]:
    """Settings by path, but for pivots, which the tuning has fewer of, and seeds."""
    leaves = {path: value for path, value, _ in config.leaves()}
    return {path: leaves[path] for path in leaves if path[-1] not in ("seed", "pivot")}


@pytest.mark.parametrize("text", TEXTS)
def test_methods_have_the_settings_that_dev_chose(text):
    """Prevents a table "as tuned here" with a rate that was mistyped or chosen by a test."""
    tuned = methods(f"{text}-tuned")
    for tuning, names in (("towers", TOWERS), ("twins", TWINS | DECODERS)):
        for label, beginning in names.items():
            assert settings(tuned[label]) == settings(winner(f"{text}-tune-{tuning}", beginning))


@pytest.mark.parametrize("text", TEXTS)
def test_parts_have_the_settings_that_dev_chose(text):
    """Prevents a tuned twin on towers, or a student of a teacher, that were tuned otherwise."""
    tuned = methods(f"{text}-tuned")
    simcse = winner(f"{text}-tune-towers", "SimCSE,")
    rate = simcse.schedule.learning_rate
    for label in ("sum of two towers", "TNCSE", "JTCSE"):
        for tower, wanted in zip(tuned[label].towers, (rate, rate * 4 / 3), strict=True):
            assert tower.schedule.learning_rate == pytest.approx(wanted, rel=0.01)
            assert tower.schedule.model_copy(update={"learning_rate": rate}) == simcse.schedule
            for key in ("terms", "temperature", "dropout", "head"):
                assert getattr(tower, key) == getattr(simcse, key)
    student = winner(f"{text}-tune-twins", "student,").schedule
    for name in ("TNCSE", "JTCSE"):
        assert tuned[f"{name} D"].teacher == tuned[name]
        assert tuned[f"{name} D"].schedule == student
    union = tuned["JTCSE+UC (InfoCSE)"]
    assert union.twin == tuned["JTCSE"]
    outsider = winner(f"{text}-tune-towers", "InfoCSE,")
    assert union.outsider.model_dump() == outsider.model_dump() | {"seed": 1}
    assert tuned["SimCSE, pooled: mean"].finished == tuned["SimCSE"]
