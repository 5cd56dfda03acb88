"""The browser's charts: what stands at their axes and in their tables of numbers."""

import pytest

RANGES = [(14.31, 14.36, 5), (76.02, 76.09, 5), (0, 1125, 6), (-0.4, 0.4, 6), (2e-5, 9e-5, 4)]


@pytest.mark.parametrize("asked", RANGES)
def test_each_tick_has_a_label_of_its_own_and_its_value(run_js, asked):
    """Prevents an axis that reads 14.3, 14.3, 14.4, and a label that is not the tick's value."""
    places, labels = run_js(
        "chart", "const at = ticks(...given); const result = [at, even(at)];", asked
    )
    assert len(set(labels)) == len(labels) >= 3
    values = [float(label.replace("−", "-")) for label in labels]
    assert values == pytest.approx(places, rel=0.05, abs=1e-12)
    assert asked[0] <= min(places)
    assert max(places) <= asked[1] * (1 + 1e-9)


def test_whole_numbers_are_printed_in_full(run_js):
    """Prevents step 1125 that is called 1130, and a number below 0 with two kinds of minus."""
    given = [1125, 12345, 0, -3, 0.12345, -1.5e-5, 2e6]
    words = run_js("kit", "const result = given.map(short);", given)
    assert words == ["1125", "12345", "0", "−3", "0.123", "−1.5e−5", "2.0e+6"]


def test_a_value_that_is_not_there_is_a_dash(run_js):
    """Prevents "null" and "NaN" in a table."""
    assert run_js("kit", "const result = [null, undefined, NaN].map(short);", 0) == ["–"] * 3
