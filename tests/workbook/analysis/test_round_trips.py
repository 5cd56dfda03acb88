"""The report of round trips, by hand."""

import pytest

from cselab.errors import DataError
from cselab.workbook.analysis.round_trips import report, token_overlap


def test_the_report_counts_changes_overlap_and_other_orders():
    """By hand; prevents shares of the wrong total, an unchanged sentence among those in another
    order, and a traceback without Latin letters."""
    pairs = [("a b c d", "a b c d"), ("a b c", "a b x"), ("p q", "a b x"), ("a b", "B a")]
    measured = report(pairs)
    assert measured.changed == pytest.approx(3 / 4)
    assert measured.same_words == pytest.approx(1 / 4)
    assert measured.overlap == pytest.approx((1 + 0.5 + 0 + 1) / 4)
    assert token_overlap("The dog", "the DOG") == 1
    with pytest.raises(DataError, match="no pairs"):
        report([])
    assert report([("你好", "你好吗"), ("你好", "你好")]).changed == 0.5
