"""Conditional STS: rank correlation of cosines with ratings, each under its condition."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np

from cselab.data.csts import ConditionalData
from cselab.errors import DataError, ModelError
from cselab.evaluation.sts import TaskScore, score_pairs, unit_rows
from cselab.models import SentenceEncoder

PROMPT = "conditional"
"""BeLLM section 5.1; in `cselab.models.prompts`."""

TIE = 1e-6
"""Vectors of one sentence in two batches differ in the last bits of float32."""


def evaluate_csts(
    encode: Callable[..., Any], data: ConditionalData, *, resamples: int = 1000
) -> TaskScore:
    """Spearman x100 of `conditional_cosines` with the ratings.

    BeLLM, Table 2, https://arxiv.org/abs/2311.05296.

    `by_subset` is by the slot that the condition asks for, of synthetic pairs.

    Args:
        encode: As in `conditional_cosines`.
        data: From `load_csts`.

    Raises:
        DataError: For ratings that are not public, and for bad vectors.

    Examples:
        >>> from cselab.data import load_csts
        >>> from cselab.evaluation import evaluate_csts
        >>> def lengths(sentences, conditions):
        ...     return [[len(sentence), 10] for sentence in sentences]
        >>> score = evaluate_csts(lengths, load_csts("dev"), resamples=0)
        >>> score.data.task, -100 <= score.spearman <= 100
        ('Synthetic C-STS', True)
    """
    if np.isnan(data.scores).any():
        raise DataError(
            f"the ratings of {data.task} {data.split} are not public; evaluate 'dev', or send "
            "conditional_cosines to the authors: https://github.com/princeton-nlp/c-sts"
        )
    return score_pairs(data, conditional_cosines(encode, data), resamples=resamples)


def with_condition(encoder: Any) -> SentenceEncoder:
    """The same single tower, with BeLLM's prompt for a sentence under a condition.

    Raises:
        ModelError: For an encoder that is no single tower.
    """
    if not isinstance(encoder, SentenceEncoder):
        raise ModelError(f"C-STS takes a single tower, got a {type(encoder).__name__}")
    return SentenceEncoder(
        encoder.backbone,
        encoder.tokenizer,
        pooling=encoder.pooling,
        prompt=PROMPT,
        normalized=encoder.normalized,
    )


def conditional_cosines(encode: Callable[..., Any], data: ConditionalData) -> np.ndarray:
    """Cosine of the two sentences of each row, both under the row's condition, (n,).

    Args:
        encode: Called once, as `encode(sentences, conditions=…)` with the sentences of both sides,
            for (2n, d): that of a SentenceEncoder whose prompt has a place for {condition}, or a
            function. One that ignores the conditions is the baseline: it cannot tell two rows of a
            pair apart.

    Raises:
        DataError: For bad vectors.
    """
    sentences = [*data.sentences1, *data.sentences2]
    unit = unit_rows(encode(sentences, conditions=data.conditions * 2), len(sentences))
    one, two = unit[: len(data)], unit[len(data) :]
    return np.einsum("nd,nd->n", one, two).round(12)


def follows_condition(score: TaskScore) -> float:
    """Percentage of sentence pairs whose cosine is higher under the condition rated higher.

    Only pairs with two conditions of different ratings count. Equal cosines (within TIE) count
    half, so that a model which ignores the condition has 50.

    Raises:
        DataError: Where no pair has two such conditions.

    Examples:
        >>> from cselab.data import load_csts
        >>> from cselab.evaluation import evaluate_csts, follows_condition
        >>> def lengths(sentences, conditions):  # ignores the conditions
        ...     return [[len(sentence), 10] for sentence in sentences]
        >>> follows_condition(evaluate_csts(lengths, load_csts("dev"), resamples=0))
        50.0
    """
    rows: dict[tuple[str, str], list[int]] = {}
    for i, pair in enumerate(zip(score.data.sentences1, score.data.sentences2, strict=True)):
        rows.setdefault(pair, []).append(i)
    ratings, cosines = score.data.scores, score.similarities
    apart = [
        (cosines[a] - cosines[b]) * np.sign(ratings[a] - ratings[b])
        for same in rows.values()
        for a, b in combinations(same, 2)
        if ratings[a] != ratings[b]
    ]
    if not apart:
        raise DataError(f"{score.data.task}: no pair of sentences has two conditions")
    signs = np.sign(np.where(np.abs(apart) < TIE, 0, apart))
    return 50 * float(np.mean(signs)) + 50
