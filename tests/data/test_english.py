"""The real English text that ships: found like a folder's, without a network, an extra or a
folder."""

import gzip
from collections import Counter

import pytest

from cselab import open_lab
from cselab.data import load_corpus, load_sts
from cselab.data.nli import load_nli_triplets
from cselab.data.sts import STS17_PAIRS
from cselab.data.translation import bergamot
from cselab.errors import DataError

SEMEVAL = ("en-en", "es-es", "ar-ar", "en-ar", "es-en", "en-tr")


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("CSELAB_DATA", raising=False)


def test_what_ships_is_found_by_the_names_of_a_folder():
    """Prevents a default run that asks for data, and a test that is silently another."""
    assert len(load_corpus("wikipedia-20k")) == 20_000
    for pair in STS17_PAIRS:
        if pair in SEMEVAL:
            data = load_sts(f"STS17-{pair}")
            assert (len(data), data.source.kind) == (250, "embedded")
        else:  # of other authors, whose licence is not known
            with pytest.raises(DataError, match="no source for"):
                load_sts(f"STS17-{pair}")
    assert len(load_nli_triplets("cad-nli-train")) == 1652


@pytest.mark.parametrize("split", ["dev", "test"])
def test_snli_has_a_third_of_each_label_and_each_premise_once(split):
    """Prevents pairs that depend on each other, and a split that is the other one."""
    data = load_sts("SNLI", split)
    assert Counter(data.scores.tolist()) == {0.0: 500, 2.5: 500, 5.0: 500}
    assert len(set(data.sentences1)) == 1500
    other = load_sts("SNLI", {"dev": "test", "test": "dev"}[split])
    assert not set(data.sentences1) & set(other.sentences1)


def test_a_folder_comes_before_what_ships(tmp_path):
    """Prevents a user's file of the same name that is not read."""
    (tmp_path / "corpus").mkdir()
    text = gzip.compress(b"One sentence.\n")
    (tmp_path / "corpus" / "wikipedia-20k.txt.gz").write_bytes(text)
    assert list(load_corpus("wikipedia-20k", folder=tmp_path)) == ["One sentence."]
    (tmp_path / "sts-multilingual").mkdir()
    table = gzip.compress(b"sentence1\tsentence2\n")
    (tmp_path / "sts-multilingual" / "sts17-en-en-test.tsv.gz").write_bytes(table)
    with pytest.raises(DataError, match=r"no column 'score'"):
        load_sts("STS17-en-en", folder=tmp_path)


def test_the_default_profile_needs_nothing_that_does_not_ship(monkeypatch, tmp_path, capsys):
    """Prevents a default run that fails without the extra `real`, a data folder or a hub."""
    monkeypatch.setattr(bergamot, "_models", lambda: pytest.fail("asked for the package"))
    lab = open_lab("x", profile="english", outputs=tmp_path, device="cpu")
    lab.check("simcse", "sum", "tncse", "jtcse", "simcse_supervised", "sif")
    assert lab.data.test_tasks == ("STS17-en-en", "SNLI")
    first, second = lab.config("jtcse").towers
    assert (first.trips.pivot, second.trips) == ("pt", None)
    assert lab.cache.with_fast_precision(lab.run("jtcse")).method.schedule.bf16 in (True, False)
