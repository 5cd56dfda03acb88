"""Lengths of sentence vectors, one by one."""

import torch

from cselab.analysis import vector_norms
from cselab.models import SentenceEncoder, remove_layer_norms

TEXT = ["a man is playing guitar .", "the dog", "a red ball is under the table"] * 30


def test_norms_are_of_the_encoders_own_vectors(make_bert, word_tokenizer):
    """Prevents the mean of a batch, padding that leaks in, and h^L and h^P in each other's
    place."""
    tower = make_bert(1)
    found = vector_norms(tower, word_tokenizer, TEXT)
    for how, norms in (("cls", found.cls), ("pooler", found.pooled)):
        vectors = SentenceEncoder(tower, word_tokenizer, pooling=how).encode(TEXT)
        torch.testing.assert_close(norms, vectors.norm(dim=1), atol=1e-5, rtol=1e-5)
    tower.pooler = None
    assert vector_norms(tower, word_tokenizer, TEXT[:2]).pooled is None


def test_layer_norm_fixes_the_length_and_its_removal_frees_it(make_bert, word_tokenizer):
    """The study behind the pooler side of the modulus loss: with the last LayerNorms on, all
    sentences have nearly one length."""
    tower = make_bert(1)
    fixed = vector_norms(tower, word_tokenizer, TEXT[:3]).cls
    remove_layer_norms(tower, 2)
    free = vector_norms(tower, word_tokenizer, TEXT[:3]).cls
    assert fixed.std() / fixed.mean() < 0.02
    assert free.std() / free.mean() > fixed.std() / fixed.mean()
