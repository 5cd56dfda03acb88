"""The degradation experiment against models that really lack the layers."""

import math

import pytest
import torch
from scipy.stats import spearmanr
from transformers import LlamaConfig, LlamaModel

from cselab.errors import DataError
from cselab.models import SentenceEncoder
from cselab.workbook.analysis import layer_scores, layers_after_turning_point

ONE = ["a man is playing guitar .", "the dog", "a red ball is under the table", "the cat", "fish"]
TWO = ["a woman is playing .", "the small dog was running", "the ball", "a cat and a dog", "bread"]
GOLD = [3.0, 4.0, 2.0, 1.0, 0.5]


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_a_cut_is_the_model_without_its_last_layers(kind, make_bert, word_tokenizer):
    """Prevents scores of layers in the wrong order, or of states that missed the final norm or had
    it twice."""
    if kind == "llama":
        size = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2}
        size |= {"vocab_size": len(word_tokenizer), "num_hidden_layers": 3, "pad_token_id": 0}
        torch.manual_seed(0)
        model = LlamaModel(LlamaConfig(**size, initializer_range=0.3)).eval()
    else:
        model = make_bert(1).eval()
    encoder = SentenceEncoder(model, word_tokenizer, pooling="mean", prompt="the {sentence} is")
    found = layer_scores(encoder, ONE, TWO, GOLD)
    depth = model.config.num_hidden_layers
    assert len(found) == depth + 1
    layers = model.layers if kind == "llama" else model.encoder.layer
    for kept in range(depth, -1, -1):
        del layers[kept:]
        model.config.num_hidden_layers = kept
        cosines = torch.cosine_similarity(encoder.encode(ONE), encoder.encode(TWO))
        assert found[kept] == pytest.approx(100 * spearmanr(cosines, GOLD).statistic)


def test_one_embedding_for_all_is_no_score(make_bert, word_tokenizer):
    """Prevents a warning of scipy's and a 0 where nothing was compared: all prompts end in the same
    token."""
    encoder = SentenceEncoder(make_bert(1), word_tokenizer, pooling="last_token")
    found = layer_scores(encoder, ["a dog"] * 5, ["a dog"] * 5, GOLD)
    assert all(math.isnan(score) for score in found)


@pytest.mark.parametrize(
    ("scores", "after"), [((math.nan, 1, 3, 2), 1), ((9, 1, 3, 2), 3), ((0, 1, 2, 3), 0)]
)
def test_the_layers_after_the_turning_point_are_those_without_which_it_is_best(scores, after):
    """Prevents a NaN that is the best, and a turn that is counted from the first layer."""
    assert layers_after_turning_point(scores) == after


def test_pairs_that_do_not_match_are_refused(make_bert, word_tokenizer):
    """Prevents scores of sentences beside each other's ratings."""
    with pytest.raises(DataError, match="two sentences and a score each, got 5, 4, 5"):
        layer_scores(SentenceEncoder(make_bert(1), word_tokenizer), ONE, TWO[:4], GOLD)
