"""How deep must a model be? BeLLM's degradation experiment (section 3.1): layers dropped from the last, STS of what is left."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from scipy.stats import spearmanr

from cselab.analysis.batches import token_batches
from cselab.errors import DataError
from cselab.models import SentenceEncoder, evaluating, pool
from cselab.prompts import put_into

MAX_LENGTH = 128


def layer_scores(
    encoder: SentenceEncoder, sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]
) -> list[float]:
    """Spearman x100 of the cosines with `scores`, of the encoder cut after layer 0 (the embeddings), 1, …, n.

    A cut model keeps the final norm, where the model has one. The encoder's pooling and prompt hold; one pass gives all cuts.
    NaN where all cosines are equal: a prompt's last token has one embedding, whatever the sentence.

    Raises DataError for lists of different lengths.
    """
    if not len(sentences1) == len(sentences2) == len(scores):
        raise DataError(
            f"pairs need two sentences and a score each, got {len(sentences1)}, {len(sentences2)}, {len(scores)}"
        )
    one, two = (_every_depth(encoder, side) for side in (sentences1, sentences2))
    cosines = [torch.cosine_similarity(a, b) for a, b in zip(one, two, strict=True)]
    return [100 * spearmanr(c, scores).statistic if c.max() - c.min() > 1e-6 else float("nan") for c in cosines]


def _every_depth(encoder: SentenceEncoder, sentences: Sequence[str]) -> list[Float[torch.Tensor, "n d"]]:
    text = list(sentences)
    if encoder.prompt:
        text = put_into(encoder.prompt, text, encoder.tokenizer, MAX_LENGTH)
    depths: list[list[torch.Tensor]] = []
    norm = getattr(encoder.backbone, "norm", torch.nn.Identity())
    with evaluating(encoder), torch.inference_mode():
        for batch in token_batches(encoder.tokenizer, text, encoder.backbone.device, max_length=MAX_LENGTH):
            states = encoder.backbone(**batch, output_hidden_states=True).hidden_states
            cuts = [*(norm(layer) for layer in states[:-1]), states[-1]]  # the last one has been through the norm
            pooled = [pool(cut, batch["attention_mask"], encoder.pooling).float().cpu() for cut in cuts]
            depths.append(pooled)
    return [torch.cat(parts).clone() for parts in zip(*depths, strict=True)]
