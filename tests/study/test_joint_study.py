"""The page of the study of joint training, on stores of known numbers."""

import shutil

import joint_study
import pytest
import record

from cselab.experiments.store import Result, Store

HEADS = ("none", "mlp_train_only")


def forget():
    for cached in (joint_study.recorded, joint_study.rows, joint_study.checked):
        cached.cache_clear()


@pytest.fixture
def answer(tmp_path, monkeypatch):
    """A function: record a store in which the rows have these averages; what the page then says."""

    def say(seeds, **averages):
        source = tmp_path / "sweep.sqlite"
        source.unlink(missing_ok=True)
        for label in (f"{name} ({head})" for name in averages for head in HEADS):
            for seed in seeds:
                value = averages[label.partition(" (")[0]] + seed / 10
                rows = [("test", "average", value, 9), ("dev", "STSBenchmark", value, 9)]
                rows += [("resample", str(i), value + i % 3, 9) for i in range(20)]
                rows += [("dev curve", "0", 70.0, 0), ("dev curve", "40", value, 0)]
                key = f"{label} {seed}"
                of = dict(key=key, label=label, method="jtcse", seed=seed, profile="english")
                run = dict(settings={}, source="s", data="d", finished="2026", worker="w")
                Store(source).add(Result(**of, **run, environment={}, rows=rows))
        record.main(source, "english", tmp_path)
        monkeypatch.setattr(joint_study, "RESULTS", tmp_path)
        forget()
        return joint_study.answer()

    yield say
    forget()


MEANS = {"sum": 75.0, "continued alone": 76.0, "TNCSE": 76.0, "JTCSE": 76.05}


def test_the_answer_is_that_of_the_runs(answer):
    """Prevents words that stay when the runs say something else, and a gain over the sum that is
    called joint training."""
    text = answer(range(1, 13), **MEANS)
    assert "Joint training changes nothing that matters from towers without a head" in text
    assert "Training on without anything joint helps" in text
    assert "(+1.00 [+1.00, +1.00])" in text
    text = answer(range(1, 13), **MEANS | {"JTCSE": 77.0})
    assert "Joint training helps, less than in the paper, from towers without a head" in text
    assert "Cross-attention helps from" in text
    kept = joint_study.curves("english")["step 0 kept"]
    assert set(kept) == {"0 of 12"}


def test_a_recorded_store_can_go_on(answer, tmp_path):
    """Prevents a study whose resamples are lost when a sweep goes on from its recorded store."""
    answer(range(1, 13), **MEANS)
    whole = joint_study.rows("english")
    shutil.copy(tmp_path / "english.sqlite", tmp_path / "went-on.sqlite")
    record.main(tmp_path / "went-on.sqlite", "english", tmp_path)
    forget()
    columns = ["key", "measure", "task"]
    again = joint_study.rows("english").set_index(columns).value.sort_index()
    assert again.equals(whole.set_index(columns).value.sort_index())


def test_nothing_is_read_off_before_all_seeds_are_there(answer):
    """Prevents a verdict at the seed at which it looks best."""
    text = answer(range(1, 12), **MEANS)
    assert text.startswith("88 of 197 runs from an English start (B) and ")
    assert set(joint_study.table()["English start (B)"]) == {""}
    assert joint_study.scores().empty
    assert joint_study.curves("english").empty
