"""Word vectors from counts, and SIF, against loops and formulas."""

import random

import numpy as np
import pytest
import torch

from cselab.data.token_rows import Rows
from cselab.methods.baselines.sif import SifMean, cooccurrence, ppmi_vectors


@pytest.fixture(scope="module")
def text(word_tokenizer):
    """Sentences of sixteen words that are not equally frequent."""
    draw, words = random.Random(0), word_tokenizer.convert_ids_to_tokens(range(5, 21))
    weights = [1 / (1 + place) for place in range(len(words))]
    return [" ".join(draw.choices(words, weights, k=draw.randint(3, 12))) for _ in range(500)]


@pytest.fixture(scope="module")
def rows(text, word_tokenizer):
    return Rows.tokenize(text, word_tokenizer, max_length=24)


def test_cooccurrence_equals_a_double_loop(rows, word_tokenizer):
    """Prevents pairs across sentences, and a token that is its own neighbour."""
    vocabulary, window = len(word_tokenizer), 3
    small = Rows(rows.flat[: rows.starts[40]], rows.starts[:41])
    expected = np.zeros((vocabulary, vocabulary))
    for i in range(len(small)):
        row = small.flat[small.starts[i] : small.starts[i + 1]]
        for p in range(len(row)):
            for q in range(len(row)):
                expected[row[p], row[q]] += 0 < abs(p - q) <= window
    counts = cooccurrence(small, vocabulary, window=window)
    np.testing.assert_array_equal(counts.toarray(), expected)


def test_ppmi_vectors_rebuild_the_ppmi_matrix(rows, word_tokenizer):
    """Prevents a wrong marginal or a lost square root: at full rank U sqrt(S) has the matrix's
    Gram."""
    counts = cooccurrence(rows, len(word_tokenizer))
    dense = counts.toarray()
    total, marginal = dense.sum(), dense.sum(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ppmi = np.nan_to_num(
            np.maximum(0, np.log(dense * total / np.outer(marginal, marginal))), nan=0, neginf=0
        )
    vectors = ppmi_vectors(counts, int(np.linalg.matrix_rank(ppmi)))
    u, s, _ = np.linalg.svd(ppmi)
    np.testing.assert_allclose(vectors @ vectors.T, (u * s) @ u.T, atol=1e-6)
    np.testing.assert_allclose(vectors[marginal == 0], 0, atol=1e-9)


def test_sif_is_the_formula(rows, text, word_tokenizer):
    """Prevents special tokens from being counted, and a direction that is not the means' first."""
    model = SifMean.fit(rows, word_tokenizer, size=16)
    counts = np.bincount(rows.flat, minlength=len(word_tokenizer)).astype(float)
    counts[word_tokenizer.all_special_ids] = 0
    ids = word_tokenizer(text[0])["input_ids"]
    share = counts / counts.sum()
    expected = sum(1e-3 / (1e-3 + share[i]) * model.vectors[i] for i in ids[1:-1]) / len(ids)
    torch.testing.assert_close(model.means([ids])[0], expected.float())
    encoded = model.encode(text[:300])
    torch.testing.assert_close(encoded @ model.direction, torch.zeros(300), atol=1e-5, rtol=0)
    assert model.direction.norm().item() == pytest.approx(1, abs=1e-5)
    whole = model.means(word_tokenizer(text)["input_ids"])
    largest = torch.linalg.matrix_norm(whole, 2).square()
    assert (whole @ model.direction).square().sum() >= 0.99 * largest
