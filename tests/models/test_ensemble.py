"""Sums of encoders, each with its own tokenizer."""

import pytest
import torch

from cselab.errors import ModelError
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder

TEXTS = ["a dog is running", "the big red ball"]


@pytest.fixture
def encoders(make_bert, make_roberta, word_tokenizer):
    return [
        SentenceEncoder(make(seed), word_tokenizer).eval()
        for seed, make in enumerate((make_bert, make_bert, make_roberta))
    ]


def test_an_ensemble_is_the_weighted_sum(encoders):
    """Prevents a mean for EDFSE's sum, and members that are weighted in another order."""
    one, two, three = (encoder.encode(TEXTS) for encoder in encoders)
    torch.testing.assert_close(Ensemble(encoders).encode(TEXTS), one + two + three)
    torch.testing.assert_close(
        Ensemble(encoders, [1.0, 2.0, 0.5]).encode(TEXTS), one + 2 * two + three / 2
    )
    nested = Ensemble([Ensemble(encoders[:2]), encoders[2]])
    torch.testing.assert_close(nested.encode(TEXTS), one + two + three)


def test_uc_weighs_the_outsider(encoders, word_tokenizer):
    """Prevents w from going to the twin (METHODS 4: (1 - w) twin + w other)."""
    twin = TwinEncoder(encoders[0].backbone, encoders[1].backbone, tokenizer=word_tokenizer).eval()
    got = Ensemble.uc(twin, encoders[2], weight=0.7).encode(TEXTS)
    torch.testing.assert_close(got, 0.3 * twin.encode(TEXTS) + 0.7 * encoders[2].encode(TEXTS))


def test_members_that_cannot_be_added_are_refused(encoders, make_bert, word_tokenizer):
    """Prevents vectors that are broadcast, and weights that are cut to the shorter list."""
    twin = TwinEncoder(encoders[0].backbone, encoders[1].backbone, tokenizer=word_tokenizer)
    narrow = SentenceEncoder(make_bert(1, hidden_size=16), word_tokenizer)
    with pytest.raises(ModelError, match="16, 32 dimensions; a sum needs one width"):
        Ensemble([*encoders, narrow])
    with pytest.raises(ModelError, match="got 3 and 1"):
        Ensemble(encoders, [1.0])
    with pytest.raises(ModelError, match="got 0 and 0"):
        Ensemble([])
    with pytest.raises(ModelError, match=r"weight=1.5 is outside 0..1"):
        Ensemble.uc(twin, encoders[1], weight=1.5)
