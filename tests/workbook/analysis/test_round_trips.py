"""The report of round trips, by hand."""

import math

import pytest

from cselab.errors import DataError
from cselab.workbook.analysis.round_trips import report, token_overlap


def test_the_report_counts_changes_overlap_and_duplicates():
    """By hand; prevents shares of the wrong total, and a traceback without Latin letters."""
    measured = report([("a b c d", "a b c d"), ("a b c", "a b x"), ("p q", "a b x")])
    assert measured.changed == pytest.approx(2 / 3)
    assert measured.overlap == pytest.approx((1 + 0.5 + 0) / 3)
    assert measured.length_ratio == pytest.approx((1 + 1 + 1.5) / 3)
    assert measured.duplicates == pytest.approx(1 / 3)
    assert set(measured.samples) == {("a b c", "a b x"), ("p q", "a b x")}
    assert token_overlap("The dog", "the DOG") == 1
    with pytest.raises(DataError, match="no pairs"):
        report([])
    foreign = report([("你好", "你好吗"), ("你好", "你好")])
    assert foreign.changed == 0.5
    assert math.isnan(foreign.length_ratio)


def test_self_bleu_is_of_the_trip_against_the_sentence():
    """Prevents exchanged references and hypotheses: BLEU's brevity penalty is one-sided."""
    import sacrebleu

    short = "a man is playing a red guitar"
    long = f"{short} in the big old park"
    assert report([(long, long)]).self_bleu == pytest.approx(100)
    expected = sacrebleu.corpus_bleu([short], [[long]]).score
    assert report([(long, short)]).self_bleu == pytest.approx(expected)
    assert expected < report([(short, long)]).self_bleu
