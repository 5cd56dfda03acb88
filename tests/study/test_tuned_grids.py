"""The grids "as tuned here" have the settings that won the tuning on dev."""

from collections.abc import Iterator
from functools import cache

import pytest
from result_values import TEXTS

from cselab.experiments.store import Store
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


@cache
def trees(grid: str) -> dict[str, dict]:
    """The trees of a grid, by label; expanding one takes seconds."""
    return {label: config.model_dump() for label, config in methods(grid).items()}


def winner(grid: str, beginning: str) -> dict:
    """The tree of the best of eight trials by the mean dev score of three seeds; a trial in which a
    seed diverged is out."""
    found = Store(store(grid))
    runs = found.runs()
    assert runs.label.str.startswith(beginning).sum() == 24
    rows = found.scores()
    dev = rows[(rows.measure == "dev") & rows.label.str.startswith(beginning)]
    trials = dev.groupby("label").value.agg(["mean", "size"])
    return trees(grid)[trials[trials["size"] == 3]["mean"].idxmax()]


def leaves(tree: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Settings by path, but for pivots, which the tuning has fewer of, and seeds."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, f"{path}.{key}")
    elif isinstance(tree, list | tuple):
        for number, value in enumerate(tree):
            yield from leaves(value, f"{path}.{number}")
    elif not path.endswith(("seed", "pivot")):
        yield path, tree


@pytest.mark.parametrize("text", TEXTS)
def test_methods_have_the_settings_that_dev_chose(text):
    """Prevents a table "as tuned here" with a rate that was mistyped or chosen by a test."""
    found = trees(f"{text}-tuned")
    for tuning, names in (("towers", TOWERS), ("twins", TWINS | DECODERS)):
        for label, beginning in names.items():
            chosen = winner(f"{text}-tune-{tuning}", beginning)
            assert dict(leaves(found[label])) == dict(leaves(chosen)), label


@pytest.mark.parametrize("text", TEXTS)
def test_parts_have_the_settings_that_dev_chose(text):
    """Prevents a tuned twin on towers, or a student of a teacher, that were tuned otherwise."""
    found = trees(f"{text}-tuned")
    simcse = winner(f"{text}-tune-towers", "SimCSE,")
    for label in ("sum of two towers", "TNCSE", "JTCSE"):
        rate = simcse["schedule"]["learning_rate"]
        for tower, wanted in zip(found[label]["towers"], (rate, rate * 4 / 3), strict=True):
            given = {**tower["schedule"], "learning_rate": rate}
            assert tower["schedule"]["learning_rate"] == pytest.approx(wanted, rel=0.01)
            assert given == simcse["schedule"]
            for key in ("terms", "temperature", "dropout", "head"):
                assert tower[key] == simcse[key]
    student = winner(f"{text}-tune-twins", "student,")["schedule"]
    for name in ("TNCSE", "JTCSE"):
        assert found[f"{name} D"]["teacher"] == found[name]
        assert found[f"{name} D"]["schedule"] == student
    union = found["JTCSE+UC (InfoCSE)"]
    assert union["twin"] == found["JTCSE"]
    assert union["outsider"] == winner(f"{text}-tune-towers", "InfoCSE,") | {"seed": 1}
    assert found["SimCSE, pooled: mean"]["finished"] == found["SimCSE"]
