"""Methods without training of their own: sums and +UC of encoders, the ensemble's members."""

import pytest
import torch
from method_helpers import SENTENCES

from cselab.methods import registered
from cselab.methods.training_free import Materials
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder


@pytest.fixture
def tower(make_bert, word_tokenizer):
    """`tower(seed, ...)`: an encoder, options as of SentenceEncoder."""
    return lambda seed, **options: SentenceEncoder(make_bert(seed), word_tokenizer, **options)


def encoder(name, *parts, **changes):
    """The encoder of a method from its parts."""
    kind = registered(name)
    materials = Materials(parts, text=lambda count: [], folder=lambda name: None)
    return kind.encoder(kind.Config(**changes), materials)


@pytest.mark.parametrize(
    ("options", "kind"),
    [({}, TwinEncoder), ({"pooling": "mean"}, Ensemble), ({"prompt": "the {sentence}"}, Ensemble)],
)
def test_a_sum_adds_what_its_towers_say(tower, options, kind):
    """Prevents towers with a prompt or another pooling from being read by their bare [CLS], and
    two towers that differ in it from being one twin."""
    one, two = tower(1), tower(2, **options)
    total = encoder("sum", one, two)
    assert isinstance(total, kind)
    expected = one.encode(SENTENCES) + two.encode(SENTENCES)
    torch.testing.assert_close(total.encode(SENTENCES), expected)


def test_an_ensemble_shares_the_twins_towers_and_draws_its_own_for_other_pivots():
    """Prevents an ensemble that trains the twin's towers again, and members of one seed, which
    would share batches and dropout."""
    config = registered("edfse").Config(pivots=("ru", "nl", "fr", "zh")).seeded(3)
    twin = registered("tncse").Config().seeded(3)
    ru, nl, fr, zh = config.parts
    assert (fr, ru) == twin.towers
    assert [part.round_trips.pivot for part in config.parts] == ["ru", "nl", "fr", "zh"]
    assert len({part.seed for part in (nl, zh, *twin.towers)}) == 4
    assert nl == registered("edfse").Config(pivots=("de", "nl")).seeded(3).parts[1]
    assert nl != config.seeded(7).parts[1]
    assert nl.schedule == fr.schedule


def test_a_finished_encoder_is_pooled_anew(tower):
    """Prevents a pooling at inference that trains another encoder than the one it is named after,
    and one that is never used."""
    config = registered("pooled").Config(pooling="first_last").seeded(7)
    assert config.finished == registered("simcse").Config().seeded(7)
    one = tower(1)
    vectors = encoder("pooled", one, pooling="first_last").encode(SENTENCES)
    torch.testing.assert_close(vectors, tower(1, pooling="first_last").encode(SENTENCES))
    assert not torch.allclose(vectors, one.encode(SENTENCES))
