"""The grids of the recorded studies: their runs, and the settings that won the tuning on dev."""

import claim_tables
import pytest
import result_values
from result_values import REFERENCE, TEXTS

from cselab.experiments.store import Store
from cselab.methods import MethodConfig
from cselab.study.recorded import methods, store

pytestmark = pytest.mark.slow  # expands all grids, each once
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


@pytest.mark.parametrize("path", sorted((REFERENCE / "grids").glob("*.toml")), ids=lambda x: x.stem)
def test_every_grid_can_be_run(path):
    """Prevents a command of a reference page that fails."""
    assert len(methods(path.stem)) > 1


def test_the_grids_have_the_runs_of_their_stores_and_the_labels_of_the_claims():
    """Prevents a claim that no run can ever answer because a label was renamed, and a verdict from
    a store in which a row or a seed is missing."""
    claims = claim_tables.read_claims(claim_tables.CLAIMS)
    wanted = {label for claim in claims for label in (claim.better, claim.than)}
    sick = {"SimCSE with SICK-R", "JTCSE with SICK-R"}
    no_head = {"SimCSE, no head"}  # tuned, SimCSE has no head: the claim's `than_otherwise`
    lacking = {
        "synthetic-papers": sick,
        "real-papers": set(),
        "synthetic-tuned": sick | no_head,
        "real-tuned": no_head,
    }
    for grid in claim_tables.GRIDS:
        declared = claim_tables.declared_runs(grid)
        assert wanted - {label for label, _ in declared} == lacking[grid], grid
        rows = result_values.rows_of(grid)
        assert set(zip(rows.label, rows.seed, strict=True)) == declared, grid
