"""The run comparer."""

import numpy as np
import pytest

from cselab.errors import ModelError, SettingsError
from cselab.evaluation import compare_pairs
from cselab.widgets import RunComparer
from cselab.widgets.runs import resampled_scores


def expected_difference(made):
    return compare_pairs(
        *(made[name].report.tasks["Synthetic"] for name in ("other", "base")), resamples=500
    )


def test_runs_side_by_side(runs):
    """Prevents a difference of the wrong sign, and a run that is opened though nobody picked it."""
    openers, made, opened = runs
    figure = RunComparer(openers).static()
    (marks,) = [part for part in figure.data if getattr(part, "mode", "") == "markers"]
    expected = expected_difference(made)
    assert list(marks.y) == pytest.approx([expected.difference])
    assert marks.y[0] + marks.error_y.array[0] == pytest.approx(expected.high)
    assert marks.y[0] - marks.error_y.arrayminus[0] == pytest.approx(expected.low)
    curves = {
        part.name: list(part.y)
        for part in figure.data
        if getattr(part, "mode", "") == "lines+markers"
    }
    assert curves == {"base": [10.0, 20.0], "other": [10.0, 30.0]}
    assert set(opened) == {"base", "other"}


def test_intervals_from_resampled_scores_are_those_of_the_library(runs, run_js):
    """Prevents intervals in the browser of other resamples than the library's, or unpaired ones."""
    made = runs[1]
    scores = [made[name].report.tasks["Synthetic"] for name in ("other", "base")]
    expected = expected_difference(made)
    other, base = (resampled_scores(score) for score in scores)
    assert np.percentile(other - base, [2.5, 97.5]) == pytest.approx([expected.low, expected.high])
    given = [other.tolist(), base.tolist()]
    found = run_js("runs", "const result = interval(...given);", given)
    assert found == pytest.approx([expected.low, expected.high])


def test_the_browser_is_given_what_it_asks_for(runs):
    """Prevents a run that stays "opening ...", one that is opened twice, and a page that lacks the
    runs it shows."""
    openers, made, opened = runs
    comparer = RunComparer(openers)
    opened.clear()
    for _ in range(2):
        comparer._handle_custom_msg({"run": "other"}, [])
    assert opened == ["other"]
    given = comparer.opened["other"]
    assert given["history"] == [[0, 10.0], [5, 30.0]]
    assert dict(given["phenomena"]) == pytest.approx(made["other"].phenomena, abs=1e-4)
    assert given["tests"][0]["score"] == pytest.approx(
        made["other"].report.tasks["Synthetic"].spearman, abs=1e-4
    )
    assert set(comparer.page_state()["opened"]) == {"base", "other"}


def test_a_run_that_cannot_be_opened_is_reported(runs):
    """Prevents "opening ..." for ever, where an encoder has been deleted."""

    def broken():
        raise ModelError("no encoder there")

    comparer = RunComparer({"broken": broken, **runs[0]})
    comparer._handle_custom_msg({"run": "broken"}, [])
    assert comparer.failed == {"broken": "ModelError: no encoder there"}


def test_picked_runs_are_known_and_at_most_seven(runs):
    """Prevents an empty figure for a mistyped name, and an eighth run without a colour."""
    comparer = RunComparer({f"run {n}": runs[0]["never"] for n in range(9)})
    with pytest.raises(SettingsError, match="did you mean 'run 1'"):
        comparer.baseline = "rn 1"
    with pytest.raises(SettingsError, match="at most 7"):
        comparer.picked = comparer.names[:8]
    comparer.picked = comparer.names[1:8]
    assert comparer.picked == comparer.names[1:8]
