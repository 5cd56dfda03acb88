"""Word counts and TF-IDF, against scikit-learn."""

from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from cselab.data.sources import Source
from cselab.data.sts import StsData
from cselab.evaluation import score_data
from cselab.methods import Materials, registered

TEXT = ["A dog runs in the park.", "The dog sleeps.", "A cat sleeps in the sun.", "Rain falls."]
PAIRS = [("The dog runs.", "A dog runs."), ("Rain falls.", "Snow falls."), ("Cats!", "The sun.")]


def encoder(**settings):
    words = registered("words")
    return words.encoder(words.Config(**settings), Materials([], lambda count: TEXT, Path))


def test_tf_idf_has_scikit_learns_cosines_and_weights_of_the_training_text():
    """Prevents frequencies of the test set, and a word of the tests that has no dimension."""
    reference = TfidfVectorizer().fit(TEXT)
    known = ["The dog runs.", "A cat sleeps in the park.", "Rain falls in the sun."]
    found = encoder().encode(known).toarray()
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    expected = reference.transform(known).toarray()
    np.testing.assert_allclose(found @ found.T, expected @ expected.T)
    unknown = encoder().encode(["Snow falls.", "Rain falls."])
    assert unknown.shape[1] == 3
    assert unknown.toarray()[0, 2] > unknown.toarray()[1, 1]  # snow is rarer than rain


def test_word_counts_score_pairs_without_a_common_vocabulary():
    """Prevents sentences without a common word, or without any word, from ending an evaluation."""
    one, two = zip(*PAIRS, strict=True)
    ratings = np.array([5.0, 3.0, 0.0])
    data = StsData("Words", "test", list(one), list(two), ratings, None, Source("folder", "own"))
    report = score_data(encoder(weights="counts").encode, [data], resamples=0)
    dog = 2 / (3**0.5 * 2**0.5)  # "A" is no word: the dog runs, dog runs
    np.testing.assert_allclose(report.tasks["Words"].similarities, [dog, 0.5, 0], atol=1e-9)
