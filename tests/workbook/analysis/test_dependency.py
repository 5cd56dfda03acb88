"""The turning point's rank correlation with the other tokens, against scipy."""

import pytest
import torch
from scipy.stats import spearmanr

from cselab.errors import DataError, SettingsError
from cselab.models import SentenceEncoder
from cselab.workbook.analysis import sentence_dependency, token_dependency


@pytest.mark.parametrize(
    ("turning_point", "side"), [("cls", "right"), ("last_token", "left"), ("last_token", "right")]
)
def test_dependency_is_scipys_spearman(turning_point, side):
    """Prevents padding from being taken for a token, ties from being broken, and the turning point
    from meeting itself."""
    states = torch.randn(2, 5, 16).round(decimals=1)  # with ties
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0] if side == "right" else [0, 0, 1, 1, 1]])
    rows = token_dependency(states, mask, turning_point=turning_point)
    for row, sentence, keep in zip(rows, states, mask.bool(), strict=True):
        tokens = sentence[keep]
        point, others = tokens[-1], tokens[:-1]
        if turning_point == "cls":
            point, others = tokens[0], tokens[1:]
        expected = [spearmanr(point, other).statistic for other in others]
        assert row.tolist() == pytest.approx(expected)


def test_dependency_has_one_number_a_sentence(make_bert, word_tokenizer):
    """Prevents a number that depends on the batch's padding, or on the order of lengths."""
    encoder = SentenceEncoder(make_bert(2), word_tokenizer)
    text = ["a man is eating bread .", "the dog", "the cat was not in the house"]
    together = sentence_dependency(encoder, text)
    alone = torch.cat([sentence_dependency(encoder, [sentence]) for sentence in text])
    # ranks of nearly equal values may swap
    torch.testing.assert_close(together, alone, atol=1e-3, rtol=0)


def test_an_unknown_turning_point_and_a_sentence_of_one_token_are_refused():
    """Prevents NaN in the mean of a text."""
    states, mask = torch.randn(1, 3, 4), torch.tensor([[1, 0, 0]])
    with pytest.raises(SettingsError, match="turning point 'last'; did you mean 'last_token'"):
        token_dependency(states, mask, turning_point="last")
    with pytest.raises(DataError, match="got a sentence of 1"):
        token_dependency(states, mask)
