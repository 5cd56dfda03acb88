"""BeLLM's degradation experiment: STS scores of a model from which the last layers are removed.

Section 3.1 of https://arxiv.org/abs/2311.05296.
"""

import math
from collections.abc import Iterable, Sequence

import scipy
import torch
from jaxtyping import Float

from cselab.errors import DataError
from cselab.models import SentenceEncoder, evaluating, pool
from cselab.models.encode import token_batches, tokenizer_of
from cselab.models.prompts import fill_prompt
from cselab.models.texts import as_sentences

MAX_LENGTH = 128


def layer_scores(
    encoder: SentenceEncoder,
    sentences1: Iterable[str],
    sentences2: Iterable[str],
    scores: Sequence[float],
) -> list[float]:
    """Spearman x100 of the cosines with `scores`, for the encoder cut after layer 0, 1, …, n.

    BeLLM section 3.1, https://arxiv.org/abs/2311.05296. Layer 0 is the embedding layer. A cut model
    keeps the final norm of the model, if it has one, and the encoder's pooling and prompt; one pass
    gives all cuts.

    Returns:
        n + 1 scores. NaN where all cosines are equal: the last token of a prompt has the same
            embedding for all sentences.

    Raises:
        DataError: For lists of different lengths.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import layer_scores
        >>> encoder = cselab.load("tiny-bert")  # it has six layers
        >>> len(layer_scores(encoder, ["A dog."] * 2, ["It rains.", "Dogs."], [0.0, 4.0]))
        7
    """
    sides = [as_sentences(side, "layer_scores") for side in (sentences1, sentences2)]
    if {len(side) for side in sides} != {len(scores)}:
        lengths = ", ".join(str(len(column)) for column in (*sides, scores))
        raise DataError(f"pairs need two sentences and a score each, got {lengths}")
    cuts = zip(*(_embed_at_each_depth(encoder, side) for side in sides), strict=True)
    cosines = [torch.cosine_similarity(a, b) for a, b in cuts]
    return [
        100 * scipy.stats.spearmanr(c, scores).statistic if c.max() - c.min() > 1e-6 else math.nan
        for c in cosines
    ]


def layers_after_turning_point(scores: Sequence[float | int]) -> int:
    """The number k of last layers after the best cut: those that BeLLM opens (`bidirectional=k`); 0
    where no cut is better than the whole model.

    BeLLM section 3.1, https://arxiv.org/abs/2311.05296: with more layers than at the turning point,
    STS falls; its models turn at the penultimate layer, so that k is 1.

    Args:
        scores: Of dev pairs, from `layer_scores`; NaN are passed over.

    Raises:
        DataError: Where all scores are NaN.

    Examples:
        >>> from cselab.workbook.analysis import layers_after_turning_point
        >>> layers_after_turning_point([float("nan"), 20.0, 55.0, 52.0])
        1
    """
    known = [layer for layer, score in enumerate(scores) if not math.isnan(score)]
    if not known:
        raise DataError("no cut has a score, so there is no turning point; give other pairs")
    return len(scores) - 1 - max(known, key=scores.__getitem__)


def _embed_at_each_depth(
    encoder: SentenceEncoder, text: list[str]
) -> list[Float[torch.Tensor, "n d"]]:
    tokenizer = tokenizer_of(encoder)
    if encoder.prompt:
        text = fill_prompt(encoder.prompt, text, tokenizer, MAX_LENGTH)
    depths: list[list[torch.Tensor]] = []
    norm = getattr(encoder.backbone, "norm", torch.nn.Identity())
    with evaluating(encoder), torch.inference_mode():
        for batch in token_batches(tokenizer, text, encoder.backbone, max_length=MAX_LENGTH):
            states = encoder.backbone(**batch, output_hidden_states=True).hidden_states
            cuts = [*(norm(layer) for layer in states[:-1]), states[-1]]  # the last is normed
            pooled = (pool(cut, batch["attention_mask"], encoder.pooling) for cut in cuts)
            depths.append([vectors.float().cpu() for vectors in pooled])
    return [torch.cat(parts).clone() for parts in zip(*depths, strict=True)]
