"""The top of a run's page."""

import math

from cselab.workbook.headless.headline import headline


def row(method, score, low, high, task="Synthetic", seed=42):
    return {"method": method, "task": task, "seed": seed, "score": score, "low": low, "high": high}


ROWS = [
    row("untrained (cls)", 67.0, 64.0, 70.0),
    row("SimCSE, tower I", 70.0, 68.0, 72.0),
    row("something else", 99.0, 98.0, 99.5),
]


def test_the_main_methods_in_their_order_with_links_to_what_finished():
    """Prevents 46 bare scores as the first thing that a reader of a run sees."""
    found = headline(ROWS, ["02_twin_pretraining"])
    assert found.index("untrained (cls)") < found.index("SimCSE, tower I")
    assert "something else" not in found
    assert ">67.0<" in found
    assert ">70.0<" in found
    assert "02_twin_pretraining.html" in found
    assert "03_jtcse_training.html" not in found


def test_points_lie_where_the_axis_says():
    """Prevents a drawing whose points are not at their scores."""
    found = headline(ROWS, [])
    ticks = dict(_numbers(found, "class='tick' x='", "'>"))
    circles = [float(part.split("'")[0]) for part in found.split("cx='")[1:]]
    (low, at_low), *_, (high, at_high) = sorted(ticks.items())
    for score, x in zip((67.0, 70.0), circles, strict=True):
        expected = at_low + (score - low) / (high - low) * (at_high - at_low)
        assert math.isclose(x, expected, abs_tol=0.1)


def _numbers(text, start, end):
    for part in text.split(start)[1:]:
        yield float(part.split(">")[1].split("<")[0]), float(part.split("'")[0])


def test_an_average_of_tests_has_a_narrower_interval_than_each():
    rows = [
        row(method, 60.0 + i, 58.0 + i, 62.0 + i, task=f"STS{t}")
        for i, method in enumerate(("untrained (cls)", "SimCSE, tower I"))
        for t in range(4)
    ]
    assert "the average of 4 tests" in headline(rows, [])


def test_a_run_with_one_of_the_methods_has_no_headline():
    assert headline(ROWS[:1], []) == ""


def test_rows_without_an_interval_have_no_point():
    """Prevents a score that is NaN, or a row typed by hand, from ending the run."""
    other = [
        {**ROWS[0], "method": "TNCSE", part: float("nan")} for part in ("score", "low", "high")
    ]
    other.append({**ROWS[0], "method": "JTCSE", "low": None})
    assert headline([*ROWS, *other], []) == headline(ROWS, [])
