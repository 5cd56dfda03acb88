"""Measures of an encoder that a sweep keeps."""

import pytest

from cselab.evaluation import score_data
from cselab.experiments.measures import RESAMPLED, RESAMPLES, measure


def test_resamples_are_the_same_for_every_encoder(lab):
    """Prevents a comparison over test pairs whose two sides were drawn apart, and one whose mean is
    of other pairs than the score."""
    found = measure(lab.data, lab.train("words"), ["resamples"])
    again = measure(lab.data, lab.train("words"), ["resamples"])
    assert found == again
    drawn = [row.value for row in found if row.measure == RESAMPLED["test"]]
    assert len(drawn) == RESAMPLES
    score = score_data(lab.train("words").encode, lab.data.test_data, resamples=0).average
    assert [row.value for row in found if row[:2] == ("test", "average")] == [score]
    assert sum(drawn) / len(drawn) == pytest.approx(score, abs=3)
    scaled = type("Scaled", (), {"encode": lambda self, s: 3 * lab.train("words").encode(s)})()
    values = [row.value for row in measure(lab.data, scaled, ["resamples"])]
    assert values == pytest.approx([row.value for row in found])
