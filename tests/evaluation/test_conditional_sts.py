"""Conditional STS: cosines under each row's condition, ranked; the baselines at their chance."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from transformers import LlamaConfig, LlamaModel

from cselab.data import Source
from cselab.data.csts import ConditionalData
from cselab.errors import DataError, SettingsError
from cselab.evaluation import conditional_cosines, evaluate_csts, follows_condition
from cselab.models import SentenceEncoder

DATA = ConditionalData(
    "C-STS",
    "dev",
    ["a red dog", "a red dog", "the cat", "the cat", "a boy"],
    ["a red ball", "a red ball", "the fish", "the fish", "a girl"],
    np.array([5.0, 1.0, 2.0, 4.0, 3.0]),
    None,
    Source("folder", "test"),
    ["red", "dog", "is", "the", "house"],
)


def word_of_condition(sentences, conditions):
    """1 in the first place where the sentence has the word of its condition."""
    rows = zip(sentences, conditions, strict=True)
    return [[float(word in text.split()), 0.2 * len(text), 1.0] for text, word in rows]


def test_each_side_is_encoded_under_its_rows_condition():
    """Prevents conditions that are shifted against the sentences, by a loop."""
    expected = []
    for one, two, condition in zip(DATA.sentences1, DATA.sentences2, DATA.conditions, strict=True):
        u, v = np.array(word_of_condition([one, two], [condition] * 2))
        expected.append(u @ v / np.linalg.norm(u) / np.linalg.norm(v))
    np.testing.assert_allclose(conditional_cosines(word_of_condition, DATA), expected)
    score = evaluate_csts(word_of_condition, DATA, resamples=0)
    assert score.spearman == pytest.approx(100 * spearmanr(expected, DATA.scores).statistic)


def test_a_model_that_ignores_the_condition_follows_half():
    """Prevents ties from counting as right: that baseline has the same cosine in both rows."""
    blind = evaluate_csts(lambda s, conditions: [[len(x), 5.0] for x in s], DATA, resamples=0)
    assert follows_condition(blind) == 50
    noise = np.array([0.5, 0.5 + 2e-7, 0.5, 0.5 + 2e-7, 0.5])  # of float32, by batch
    assert follows_condition(replace(blind, similarities=noise)) == 50
    perfect = replace(blind, similarities=DATA.scores)
    assert follows_condition(perfect) == 100
    assert follows_condition(replace(blind, similarities=-DATA.scores)) == 0
    half = replace(blind, similarities=np.array([0.9, 0.1, 0.5, 0.5, 0.7]))
    assert follows_condition(half) == 75
    with pytest.raises(DataError, match="no pair of sentences has two conditions"):
        follows_condition(replace(blind, data=DATA.rows(np.array([0, 2, 4]))))


def test_hidden_ratings_and_bad_vectors_are_refused():
    """Prevents a correlation with NaN, and vectors of one side only."""
    hidden = replace(DATA, split="test", scores=np.full(5, np.nan))
    with pytest.raises(DataError, match="not public; evaluate 'dev'"):
        evaluate_csts(word_of_condition, hidden)
    assert len(conditional_cosines(word_of_condition, hidden)) == 5
    with pytest.raises(DataError, match=r"encode returned shape \(5, 2\) for 10 sentences"):
        evaluate_csts(lambda s, conditions: np.ones((5, 2)), DATA)


def test_a_decoder_reads_the_condition_in_its_prompt(word_tokenizer):
    """Prevents the prompt without a condition from being scored as if it had one."""
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 2, "vocab_size": len(word_tokenizer), "pad_token_id": 0}
    torch.manual_seed(0)
    model = LlamaModel(LlamaConfig(**shape, initializer_range=0.3)).eval()
    options = {"pooling": "last_token", "prompt": "in the {condition} {sentence} is"}
    encoder = SentenceEncoder(model, word_tokenizer, **options)
    found = conditional_cosines(encoder.encode, DATA)
    assert abs(found[0] - found[1]) > 1e-3
    plain = SentenceEncoder(model, word_tokenizer, pooling="last_token")
    by_hand = plain.encode(["in the dog a red dog is", "in the dog a red ball is"])
    assert found[1] == pytest.approx(torch.cosine_similarity(*by_hand, dim=0).item(), abs=1e-5)
    plain = SentenceEncoder(model, word_tokenizer, pooling="last_token", prompt="the {sentence}")
    with pytest.raises(SettingsError, match="the conditions do not fit"):
        evaluate_csts(plain.encode, DATA)
