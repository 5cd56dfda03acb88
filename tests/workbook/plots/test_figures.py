"""Static figures: what is drawn is what was given, with labels and units."""

import numpy
import pandas
import pytest

from cselab.data.sources import Source
from cselab.data.sts import StsData
from cselab.evaluation import RankedCouples, StsReport, compare_pairs
from cselab.evaluation.sts import score_pairs
from cselab.workbook.plots import (
    couples_chart,
    difference_chart,
    line_chart,
    score_bars,
    score_intervals,
    training_curves,
)

OTHERS = {"learning_rate": 1e-3, "alignment": 0.1, "uniformity": -2.0}
HISTORY = [
    {"step": 0, "dev": 50.0, "learning_rate": 1e-3},
    {"step": 5, "dev": 60.0, **OTHERS, "nce": 2.0, "ictm": 0.5},
    {"step": 10, "dev": 55.0, **OTHERS, "nce": 1.0, "ictm": 0.25},
]


def axis_titles(figure):
    return {axis.title.text for axis in (*figure.select_xaxes(), *figure.select_yaxes())}


def test_training_curves_draw_each_term_from_its_first_value():
    """Prevents a term from being drawn one mark early (there is none before the first step), and
    geometry as a loss."""
    figure = training_curves({"run": HISTORY}, dev_name="synthetic dev")
    drawn = {trace.name: (list(trace.x), list(trace.y)) for trace in figure.data}
    assert drawn == {
        "run": ([0, 5, 10], [50.0, 60.0, 55.0]),
        "run: nce": ([5, 10], [2.0, 1.0]),
        "run: ictm": ([5, 10], [0.5, 0.25]),
    }
    assert {note.text for note in figure.layout.annotations} >= {"Spearman × 100 on synthetic dev"}


def test_more_runs_than_colours_are_all_drawn():
    """Prevents the eighth run of a comparison from vanishing without a word."""
    names = {
        trace.legendgroup for trace in training_curves(dict.fromkeys("abcdefghi", HISTORY)).data
    }
    assert names - {None} == set("abcdefghi")


def test_score_bars_for_one_task_name_it_and_for_several_group_them():
    """Prevents a score under another method's bar."""
    one = score_bars({"A": {"synthetic": 40.0}, "B": {"synthetic": 50.0}})
    assert [(bar.name, list(bar.x), list(bar.y)) for bar in one.data] == [
        ("A", ["A"], [40.0]),
        ("B", ["B"], [50.0]),
    ]
    assert axis_titles(one) >= {"synthetic: Spearman × 100"}
    timed = score_bars({"A": {"synthetic": 40.0}}, score="seconds")
    assert axis_titles(timed) >= {"synthetic: seconds"}
    several = score_bars({"A": {"STS12": 40.0, "STS13": 41.0}})
    assert list(several.data[0].x) == ["STS12", "STS13"]


def test_intervals_are_those_of_the_scores_and_of_the_pairs():
    """Prevents a bar whose text says "interval" and that has none, and an interval in the row of
    another method."""
    ratings = numpy.arange(40.0) % 7
    texts = [str(i) for i in range(40)]
    pairs = StsData("T", "test", texts, texts, ratings, None, Source("folder", "here"))
    noise = numpy.random.default_rng(0).normal(size=(2, 40))
    reports = {
        name: StsReport({"T": score_pairs(pairs, ratings + scale * row)})
        for name, scale, row in (("A", 1.0, noise[0]), ("B", 4.0, noise[1]))
    }
    a, b = (report.tasks["T"] for report in reports.values())
    scores, differences = score_intervals(reports, against="A").data
    assert list(scores.x) == [a.spearman, b.spearman]
    low = [x - below for x, below in zip(scores.x, scores.error_x.arrayminus, strict=True)]
    assert low == pytest.approx([a.low, b.low])
    found = compare_pairs(b, a)
    assert (list(differences.y), list(differences.x)) == ([1], [found.difference])
    assert differences.error_x.array[0] == pytest.approx(found.high - found.difference)
    assert len(score_intervals(reports).data) == 1


def test_line_chart_draws_each_line_as_given():
    """Prevents lines of the wrong series, and a logarithmic axis that is linear."""
    figure = line_chart(
        {"a": ([1, 2], [10, 100])}, title="t", x_title="gap", y_title="seeds", log_y=True
    )
    assert [(trace.name, trace.x, trace.y) for trace in figure.data] == [("a", (1, 2), (10, 100))]
    assert axis_titles(figure) == {"gap", "seeds"}
    assert figure.layout.yaxis.type == "log"


def test_a_difference_is_drawn_at_its_methods_row_with_its_interval():
    """Prevents a point beside another method's name where a table lacks a row."""
    columns = ["average", "sd", "seeds", "difference", "low", "high"]
    nan = float("nan")
    one = pandas.DataFrame(
        [[60, 1, 3, nan, nan, nan], [61, 1, 3, 1.0, 0.5, 1.5]], ["base", "A"], columns
    )
    two = pandas.DataFrame(
        [[50, 1, 3, nan, nan, nan], [48, 1, 3, -2.0, -4.0, 0.0]], ["base", "B"], columns
    )
    figure = difference_chart({"real": one, "synthetic": two}, "base")
    assert figure.layout.yaxis.ticktext == ("A", "B")
    (a, b) = figure.data
    assert [round(y) for y in (*a.y, *b.y)] == [0, 1]
    assert (b.x[0], b.error_x.array[0], b.error_x.arrayminus[0]) == (-2.0, 2.0, 2.0)


def test_a_share_is_drawn_in_the_row_of_its_change_with_its_interval():
    """Prevents a share beside the name of another change, where changes are sorted."""
    none = numpy.array([])
    hard, easy = RankedCouples(50.0, 45.0, 56.0, none), RankedCouples(90.0, 85.0, 94.0, none)
    found = {"A": {"role_swap": hard, "topic": easy}, "B": {"topic": easy, "role_swap": hard}}
    figure = couples_chart(found)
    assert figure.layout.yaxis.ticktext == ("topic", "role swap")
    for line in figure.data:
        assert [(round(y), x) for x, y in zip(line.x, line.y, strict=True)] == [(0, 90), (1, 50)]
        assert (line.error_x.array, line.error_x.arrayminus) == ((4.0, 6.0), (5.0, 5.0))
