"""Cosines of word counts: the floor below which a sentence encoder has learned nothing."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import sparse

from cselab.methods import Materials, MethodConfig, TrainingFree, register
from cselab.models.texts import as_sentences


@dataclass(eq=False)
class WordVectors:
    """Sentences as counts of their words, each times its weight.

    Words are lower-cased runs of two letters or more, scikit-learn's default.

    Attributes:
        documents: Number of sentences of the text in which a word stands; None: all weights are 1.
        sentences: Number of sentences of the text.
    """

    documents: dict[str, int] | None = None
    sentences: int = 0

    def encode(self, sentences: Iterable[str]) -> sparse.csr_array:
        """Weighted counts, (n, words of these sentences), sparse."""
        from sklearn.feature_extraction.text import CountVectorizer  # here: tenths of a second

        vectorizer = CountVectorizer(dtype=np.float64)
        read = vectorizer.build_analyzer()
        sentences = as_sentences(sentences)
        words = sorted({word for sentence in sentences for word in read(sentence)})
        if not words:
            return sparse.csr_array((len(sentences), 0))
        vectorizer.set_params(vocabulary=words)
        counts = sparse.csr_array(vectorizer.transform(sentences))
        if self.documents is None:
            return counts
        known = np.array([self.documents.get(word, 0) for word in words])
        weights = np.log((1 + self.sentences) / (1 + known)) + 1
        return sparse.csr_array(counts * weights)


@register("words")
class Words(TrainingFree):
    """Word counts, or TF-IDF with the inverse frequencies `ln((1 + n) / (1 + df)) + 1` of the
    training text (scikit-learn's, smoothed). No backbone, and no vocabulary: unknown words count.

    `encode` returns a sparse matrix, whose columns are the words of the call's sentences: it scores
    pairs, and nothing can start from it or learn from it.
    """

    class Config(MethodConfig):
        weights: Literal["counts", "tf-idf"] = "tf-idf"

    fits = True
    scored_only = True

    @classmethod
    def encoder(cls, config: Config, materials: Materials) -> Any:
        if config.weights == "counts":
            return WordVectors()
        from sklearn.feature_extraction.text import CountVectorizer

        vectorizer = CountVectorizer(binary=True)
        text = materials.text(None)
        marks = vectorizer.fit_transform(text)
        counts = np.asarray(marks.sum(axis=0)).ravel().tolist()
        documents = dict(zip(vectorizer.get_feature_names_out(), counts, strict=True))
        return WordVectors(documents, marks.shape[0])
