"""Round trips: one line a sentence, the same every time; pivots that differ; their report."""

import re
import subprocess
import sys
import textwrap

import pytest
from seal_helpers import DAMAGES

from cselab.data.synthetic import same_meaning
from cselab.data.translation import round_trip
from cselab.data.translation.pivot import LexicalPivot
from cselab.data.translation.round_trip import RoundTrip
from cselab.errors import DataError, SettingsError
from cselab.workbook.analysis.round_trips import report


def test_a_round_trip_does_not_depend_on_the_batch_it_came_in(synthetic_text):
    """Prevents a translation that changes with the batch size or what was translated before."""
    text = synthetic_text[:600]
    assert list(RoundTrip("fr", batch_size=7)(text)) == list(RoundTrip("fr")(iter(text)))
    assert LexicalPivot("ru")(text[100:200]) == LexicalPivot("ru")(text)[100:200]


def test_pivots_change_much_keep_most_agree_and_differ(synthetic_text):
    """Prevents pivots that cut the words alike, "a apple", a thesaurus, and noise."""
    text = synthetic_text[:600]
    trips = {name: LexicalPivot(name)(text) for name in ("fr", "ru", "nl", "zh")}
    for name, trip in trips.items():
        pairs = list(zip(text, trip, strict=True))
        measured = report(pairs)
        assert 0.4 < measured.changed < 0.95, name
        assert 0.7 < measured.overlap < 0.98, name
        assert 0.9 < len(" ".join(trip)) / len(" ".join(text)) < 1.1, name
        changed = [(a, b) for a, b in pairs if a != b]
        assert 0.55 < sum(same_meaning(a, b) for a, b in changed) / len(changed) < 0.95, name
        assert not re.search(r"\b[Aa] [aeio]\w|\b[Aa]n [^aeiou\W]", " ".join(trip)), name
    for one, two in [("fr", "ru"), ("fr", "nl"), ("ru", "zh")]:
        assert sum(a != b for a, b in zip(trips[one], trips[two], strict=True)) > 150


def test_odd_text_and_odd_translations_stay_lines():
    """Prevents lost numbers, a view without a word, and lines shifted by a line end."""
    strange = ["Xylophagous 3.5 % — « Ünïcode » !", "", "?!", "12 34"]
    assert LexicalPivot("fr")(strange) == strange
    assert list(RoundTrip("fr", lambda batch: ["  ", "B"])(["a", "b"])) == ["a", "B"]
    assert list(RoundTrip("fr", lambda batch: ["one\n two\t three"])(["a"])) == ["one two three"]


def test_no_pivot_and_no_line_is_lost():
    """Prevents a tower without a language, and sentences beside another's round trip."""
    with pytest.raises(SettingsError, match="unknown pivot 'fe'; did you mean"):
        RoundTrip("fe")
    lossy = RoundTrip("fr", lambda batch: batch[: 10 - (batch[0] == "s20")], batch_size=10)
    with pytest.raises(DataError, match=r"batch 2 \('s20' …\): .* returned 9 lines for 10"):
        list(lossy(f"s{i}" for i in range(10, 40)))


class Counting:
    """A translator that counts its calls, and may be interrupted."""

    def __init__(self, die_at: int | None = None):
        self.asked, self.calls, self.die_at = [], 0, die_at

    def __call__(self, batch):
        self.calls += 1
        if self.calls == self.die_at:
            raise KeyboardInterrupt
        self.asked += batch
        # depends on its batch, as floats do
        return [f"{sentence} of {len(batch)} from {batch[0]}" for sentence in batch]


@pytest.mark.parametrize("die_at", [1, 2, 5, 9])
def test_a_killed_round_trip_goes_on_to_the_same_output(tmp_path, die_at):
    """Prevents lost work, and a resumed run that cuts its batches elsewhere."""
    # with duplicates, of different lengths
    text = [f"{'x' * (i % 7)} {i % 90}" for i in range(120)]
    expected = list(RoundTrip("fr", Counting(), cache=tmp_path / "whole", batch_size=10)(text))
    killed, resumed = Counting(die_at), Counting()
    with pytest.raises(KeyboardInterrupt):
        list(RoundTrip("fr", killed, cache=tmp_path / "cache", batch_size=10)(text))
    assert list(RoundTrip("fr", resumed, cache=tmp_path / "cache", batch_size=10)(text)) == expected
    assert sorted(killed.asked + resumed.asked) == sorted(set(text))  # nothing twice
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("processes", [2, 3, 20])
def test_parts_of_several_processes_are_the_whole(tmp_path, processes, monkeypatch):
    """Prevents sentences that two processes translate or none, and other batches than one
    process's: Counting's round trips depend on them."""
    monkeypatch.setattr(round_trip, "WINDOW", 2)
    text = [f"{'x' * (i % 7)} {i % 90}" for i in range(130)]  # with duplicates across parts
    expected = list(RoundTrip("fr", Counting(), cache=tmp_path / "whole", batch_size=10)(text))
    asked = []
    for rank in reversed(range(processes)):
        part = Counting()
        trip = RoundTrip("fr", part, cache=tmp_path / "parts", batch_size=10)
        trip.translate_part(text, rank, processes)
        asked += part.asked
        assert len(part.asked) < len(set(text))
    assert sorted(asked) == sorted(set(text))
    rest = Counting()
    assert list(RoundTrip("fr", rest, cache=tmp_path / "parts", batch_size=10)(text)) == expected
    assert not rest.asked


def test_a_kill_signal_loses_no_finished_part(tmp_path):
    """Prevents a cache that only an orderly end writes."""
    code = textwrap.dedent(
        f"""
        import os, signal
        from cselab.data.translation import cache
        from cselab.data.translation.round_trip import RoundTrip
        cache.FLUSH_ROWS = 10
        def translate(batch):
            if batch[0] == "s1050":
                os.kill(os.getpid(), signal.SIGKILL)
            return [s.upper() for s in batch]
        trip = RoundTrip("fr", translate, cache={str(tmp_path)!r}, batch_size=10)
        list(trip(f"s{{i}}" for i in range(1000, 1100)))
        """
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    resumed, text = Counting(), [f"s{i}" for i in range(1000, 1100)]
    trips = list(RoundTrip("fr", resumed, cache=tmp_path, batch_size=10)(text))
    assert trips[:50] == [sentence.upper() for sentence in text[:50]]
    assert len(resumed.asked) == 50


@pytest.mark.parametrize("how", ["cut", "empty", "flip"])
def test_only_a_damaged_cache_is_translated_again(how, tmp_path, capsys):
    """Prevents silently other translations, and a cache that is not read."""
    text = [f"{number}" for number in range(500)]
    expected = list(RoundTrip("fr", Counting(), cache=tmp_path)(text))
    (path,) = tmp_path.glob("*.parquet")
    for again in (True, False):
        if again:
            DAMAGES[how](path)
        asked = Counting()
        order = 1 if again else -1
        assert list(RoundTrip("fr", asked, cache=tmp_path)(text[::order])) == expected[::order]
        assert len(asked.asked) == again * len(text)
        assert capsys.readouterr().err.count(f"{path} is damaged (") == again
