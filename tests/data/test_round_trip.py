"""Round trips: one line a sentence, the same every time; pivots that differ; a report that counts right."""

import pytest

from cselab.data.pivot import LexicalPivot
from cselab.data.round_trip import RoundTrip, report, token_overlap
from cselab.data.world import sentences
from cselab.errors import DataError, SettingsError

TEXT = list(sentences(600, 11))


def test_a_round_trip_does_not_depend_on_the_batch_it_came_in():
    """Prevents a translation that changes with the batch size or with what was translated before."""
    assert list(RoundTrip("fr", batch_size=7)(TEXT)) == list(RoundTrip("fr", batch_size=600)(iter(TEXT)))
    assert LexicalPivot("ru")(TEXT[100:200]) == LexicalPivot("ru")(TEXT)[100:200]


def test_pivots_change_much_keep_most_and_differ():
    """Two towers learn different things only if their pivots cut the words differently."""
    trips = {name: LexicalPivot(name)(TEXT) for name in ("fr", "ru", "nl", "zh")}
    for name, trip in trips.items():
        measured = report(zip(TEXT, trip, strict=True))
        assert 0.4 < measured.changed < 0.95, name
        assert 0.7 < measured.overlap < 0.98, name
        assert 0.9 < measured.length_ratio < 1.1, name
    for one, two in [("fr", "ru"), ("fr", "nl"), ("ru", "zh")]:
        assert sum(a != b for a, b in zip(trips[one], trips[two], strict=True)) > 150


def test_a_pivot_leaves_text_it_does_not_know_whole():
    strange = ["Xylophagous 3.5 % — « Ünïcode » !", "", "?!", "12 34"]
    assert LexicalPivot("fr")(strange) == strange


def test_articles_still_agree_after_a_trip():
    import re

    for name in ("fr", "ru", "nl", "zh"):
        said = " ".join(LexicalPivot(name)(TEXT))
        assert not re.search(r"\b[Aa] [aeio]\w", said), name
        assert not re.search(r"\b[Aa]n [^aeiou\W]", said), name


def test_unknown_pivot():
    with pytest.raises(SettingsError, match="unknown pivot 'fe'; did you mean"):
        RoundTrip("fe")


def test_a_translator_that_loses_a_line_is_named_with_its_batch():
    """Prevents every later sentence from being paired with its neighbour's round trip."""
    lossy = RoundTrip(lambda batch: batch[: 10 - (batch[0] == "s10")], batch_size=10)
    with pytest.raises(
        DataError, match=r"batch 2 \(sentences 11 on, 's10' …\): the translator returned 9 lines for 10"
    ):
        list(lossy(f"s{i}" for i in range(30)))


def test_an_empty_translation_keeps_the_sentence():
    assert list(RoundTrip(lambda batch: ["  ", "B"])(["a", "b"])) == ["a", "B"]


def test_the_report_counts():
    measured = report([("a b c d", "a b c d"), ("a b c", "a b x"), ("p q", "a b x")])
    assert measured.changed == pytest.approx(2 / 3)
    assert measured.overlap == pytest.approx((1 + 0.5 + 0) / 3)
    assert measured.length_ratio == pytest.approx((1 + 1 + 1.5) / 3)
    assert measured.duplicates == pytest.approx(1 / 3)
    assert token_overlap("The dog", "the DOG") == 1
    with pytest.raises(DataError, match="no pairs"):
        report([])
