"""BeLLM's degradation experiment: STS scores of a model from which the last layers are removed.

Section 3.1 of https://arxiv.org/abs/2311.05296.
"""

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

    Args:
        encoder: A single tower.
        sentences1: First sentences of the pairs.
        sentences2: Second sentences.
        scores: Gold ratings.

    Returns:
        n + 1 scores. NaN where all cosines are equal: the last token of a prompt has the same
            embedding for all sentences.

    Raises:
        DataError: For lists of different lengths.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.analysis import layer_scores
        >>> from cselab.data import load_sts
        >>> pairs = load_sts("Synthetic", "dev").subsample(50)
        >>> given = pairs.sentences1, pairs.sentences2, pairs.scores.tolist()
        >>> len(layer_scores(cselab.load("tiny-bert"), *given))  # it has six layers
        7
    """
    sentences1, sentences2 = (
        as_sentences(side, "layer_scores") for side in (sentences1, sentences2)
    )
    if not len(sentences1) == len(sentences2) == len(scores):
        raise DataError(
            f"pairs need two sentences and a score each, got {len(sentences1)}, {len(sentences2)}, "
            f"{len(scores)}"
        )
    one, two = (_embed_at_each_depth(encoder, side) for side in (sentences1, sentences2))
    cosines = [torch.cosine_similarity(a, b) for a, b in zip(one, two, strict=True)]
    differ = [(c.max() - c.min()).item() > 1e-6 for c in cosines]
    return [
        100 * scipy.stats.spearmanr(c, scores).statistic if rankable else float("nan")
        for c, rankable in zip(cosines, differ, strict=True)
    ]


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
