"""The run comparer."""

from dataclasses import replace

import numpy as np
import pytest
from connected import Connected
from IPython.display import DisplayHandle

from cselab.browser import PLOTLY_MIME
from cselab.errors import ModelError, SettingsError
from cselab.evaluation import StsReport, compare_pairs, score_pairs
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


@pytest.fixture
def with_broken(runs):
    """Openers of runs of which the first raises, until "mended" is in the set; and that set."""
    mended = set()

    def broken():
        if not mended:
            raise ModelError("no encoder there")
        return runs[1]["other"]

    return {"broken": broken, **runs[0]}, mended


@pytest.fixture
def outputs(monkeypatch):
    """What is displayed, and in "updated" what it is replaced by."""
    found = {"shown": [], "updated": []}

    class Handle(DisplayHandle):
        def update(self, output, **_):
            found["updated"].append(output)

    def display(*things, **_):
        found["shown"].extend(things)
        return Handle()

    monkeypatch.setattr("cselab.widgets.widget.display", display)
    return found


def test_a_run_that_cannot_be_opened_is_reported(with_broken):
    """Prevents "opening ..." for ever, where an encoder has been deleted."""
    comparer = RunComparer(with_broken[0])
    comparer._handle_custom_msg({"run": "broken"}, [])
    assert comparer.failed == {"broken": "ModelError: no encoder there"}


@pytest.mark.parametrize("headless", [False, True])
def test_a_broken_run_does_not_hide_the_others(with_broken, outputs, monkeypatch, headless):
    """Prevents a traceback in place of the widget, where the first run of two is broken."""
    if headless:
        monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
    comparer = RunComparer(with_broken[0])
    assert comparer.baseline == "broken"
    comparer._ipython_display_()
    figure = (outputs["shown"] if headless else outputs["updated"])[-1][PLOTLY_MIME]
    names = [trace["name"] for trace in figure["data"]]
    assert names == ["broken (not opened)", "base", "base"]
    assert comparer.failed == {"broken": "ModelError: no encoder there"}
    assert set(comparer.opened) == {"base"}


def test_the_widget_is_there_before_its_runs_are_opened(runs, outputs):
    """Prevents a cell with nothing in it while encoders are loaded, and a saved figure without
    their curves."""
    openers, _, opened = runs
    there = []

    def opener(name):
        return lambda: (there.append(len(outputs["shown"])), openers[name]())[1]

    comparer = RunComparer({name: opener(name) for name in openers})
    opened.clear()
    comparer._ipython_display_()
    assert there == [3, 3]  # mark, figure and widget
    assert opened == ["base", "other"]
    (figure,) = outputs["updated"]
    assert list(figure[PLOTLY_MIME]["data"][0]["y"]) == [10.0, 20.0]


def test_other_pairs_are_not_compared(runs, browser, monkeypatch):
    """Prevents an error in place of the figure, and a test that vanishes from the browser without
    a word."""
    openers, made, _ = runs
    score = made["other"].report.tasks["Synthetic"]
    data = replace(score.data, sentences1=["other", *score.data.sentences1[1:]])
    report = StsReport({"Synthetic": score_pairs(data, score.similarities, resamples=0)})
    comparer = RunComparer(
        {"base": openers["base"], "far": lambda: made["other"]._replace(report=report)}
    )
    assert "markers" not in [getattr(trace, "mode", "") for trace in comparer.static().data]
    front = Connected(browser, monkeypatch, comparer)
    note = "No difference of far on Synthetic: its pairs are not those of the baseline."
    assert note in front.root.inner_text()
    assert front.said == []


def test_what_is_missing_is_named(with_broken, browser, monkeypatch):
    """Prevents "Pick a run beside the baseline." where the baseline is being opened or has failed,
    and a failed run that is never tried again."""
    openers, mended = with_broken
    front = Connected(browser, monkeypatch, RunComparer(openers))
    words = front.root.inner_text
    assert "opening broken …" in words()
    assert "The baseline is not opened yet." in words()
    assert front.answer() == [{"run": "broken"}, {"run": "base"}]
    assert "broken could not be opened: ModelError: no encoder there" in words()
    assert "The baseline could not be opened" in words()
    assert front.answer() == []
    mended.add("mended")
    front.root.get_by_label("baseline").select_option("base")
    front.root.get_by_label("broken").uncheck()
    front.page.wait_for_timeout(100)
    assert "Pick a run beside the baseline." in words()
    front.root.get_by_label("broken").check()
    front.page.wait_for_timeout(100)
    assert front.answer() == [{"run": "broken"}]
    assert "could not be opened" not in words()
    assert front.root.locator("[data-series=broken] circle").count() > 0
    assert front.said == []


def test_an_interrupted_opening_is_reported(runs, browser, monkeypatch):
    """Prevents "opening ..." for ever after an interrupt."""

    def slow():
        raise KeyboardInterrupt("stopped")

    front = Connected(browser, monkeypatch, RunComparer({"base": runs[0]["base"], "slow": slow}))
    front.answer()
    assert "slow could not be opened: KeyboardInterrupt: stopped" in front.root.inner_text()


def test_a_run_keeps_its_colour(runs, browser, monkeypatch):
    """Prevents curves that change their colours when another run is unpicked."""
    openers = {name: runs[0]["other"] for name in ("one", "two", "three", "four")}
    comparer = RunComparer(openers)
    comparer.picked = ["one", "two", "three"]
    front = Connected(browser, monkeypatch, comparer)
    front.answer()
    colour = "name => document.querySelector(`[data-series=${name}] path`).style.stroke"
    before = {name: front.page.evaluate(colour, name) for name in ("one", "two", "three")}
    assert len(set(before.values())) == 3
    front.root.get_by_label("two").uncheck()
    front.root.get_by_label("four").check()
    front.page.wait_for_timeout(100)
    front.answer()
    for name, kept in (("one", "one"), ("three", "three"), ("four", "two")):
        assert front.page.evaluate(colour, name) == before[kept]


def test_picked_runs_are_known_and_at_most_seven(runs):
    """Prevents an empty figure for a mistyped name, and an eighth run without a colour."""
    comparer = RunComparer({f"run {n}": runs[0]["never"] for n in range(9)})
    with pytest.raises(SettingsError, match="did you mean 'run 1'"):
        comparer.baseline = "rn 1"
    with pytest.raises(SettingsError, match="at most 7"):
        comparer.picked = comparer.names[:8]
    comparer.picked = comparer.names[1:8]
    assert comparer.picked == comparer.names[1:8]
