"""The cosine of two sentences without each of their tokens."""

import pytest
import torch

from cselab.errors import DataError, ModelError
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.workbook.analysis import cosine_by_token

FIRST, SECOND = "a man is playing guitar .", "the dog was sleeping"


@pytest.fixture(params=["cls", "mean", "twin"])
def encoder(request, make_bert, word_tokenizer):
    if request.param == "twin":
        return TwinEncoder(make_bert(2), make_bert(3), cael=(2,), tokenizer=word_tokenizer).eval()
    return SentenceEncoder(make_bert(1), word_tokenizer, pooling=request.param).eval()


def test_each_fall_is_that_of_a_pass_which_cannot_read_the_token(encoder):
    """Prevents a fall of another token, of the other sentence, or of the wrong sign."""
    found = cosine_by_token(encoder, FIRST, SECOND)
    first, second = encoder.encode([FIRST, SECOND])
    cosine = torch.cosine_similarity(first, second, dim=0)
    assert found.cosine == pytest.approx(cosine.item(), abs=1e-5)
    for text, falls, other in ((FIRST, found.first, second), (SECOND, found.second, first)):
        ids = encoder.tokenizer(text, return_tensors="pt")["input_ids"]
        assert len(falls) == ids.shape[1]
        for place in range(1, ids.shape[1] - 1):
            mask = torch.ones_like(ids)
            mask[0, place] = 0
            with torch.no_grad():
                (vector,) = encoder.embed({"input_ids": ids, "attention_mask": mask})
            expected = cosine - torch.cosine_similarity(vector, other, dim=0)
            assert falls[place].item() == pytest.approx(expected.item(), abs=1e-5)
        assert falls[[0, -1]].isnan().all()


def test_an_encoder_without_a_tokenizer_or_with_a_prompt_is_refused(make_bert, word_tokenizer):
    """Prevents a TypeError that names neither, and the cosine of bare sentences, which an encoder
    with a prompt never reads."""
    with pytest.raises(DataError, match="built without a tokenizer"):
        cosine_by_token(SentenceEncoder(make_bert(), None), FIRST, SECOND)
    encoder = SentenceEncoder(make_bert(), word_tokenizer, prompt="the {sentence} is [MASK] .")
    with pytest.raises(ModelError, match=r"^this encoder has the prompt 'the {sentence} is"):
        cosine_by_token(encoder, FIRST, SECOND)
