"""Pretraining losses of a small encoder: masked LM, bag of words from [CLS], next sentence."""

from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import BertForPreTraining, RobertaForMaskedLM

MaskedLM: TypeAlias = BertForPreTraining | RobertaForMaskedLM


def random_tokens(
    ids: Int[Tensor, "B L"], special: Int[Tensor, " S"], share: float
) -> Bool[Tensor, "B L"]:
    """Mask of a random `share` of the tokens that are not special.

    Args:
        ids: Tokens, (B, L).
        special: Ids that are never chosen, (S,).
        share: Share of the tokens, from 0 to 1.

    Returns:
        True where chosen, (B, L).
    """
    return (torch.rand(ids.shape, device=ids.device) < share) & ~torch.isin(ids, special)


def word_logits(model: MaskedLM, states: Float[Tensor, "*B d"]) -> Float[Tensor, "*B V"]:
    """Logits over the vocabulary, by the masked-LM head.

    Args:
        model: Whose head it is.
        states: Hidden states, (*B, d).

    Returns:
        Logits, (*B, V).
    """
    head = model.lm_head if isinstance(model, RobertaForMaskedLM) else model.cls.predictions
    return head(states)


def token_loss(
    model: MaskedLM,
    states: Float[Tensor, "B L d"],
    ids: Int[Tensor, "B L"],
    where: Bool[Tensor, "B L"],
) -> Float[Tensor, ""]:
    """Mean cross-entropy of `ids` at `where`.

    Other places are not projected to the vocabulary, which is most of a small model's work.

    Args:
        model: Whose head predicts.
        states: Hidden states, (B, L, d).
        ids: The right tokens, (B, L).
        where: True for the tokens that are predicted, (B, L).
    """
    return F.cross_entropy(word_logits(model, states[where]).float(), ids[where])


def bag_of_words_loss(
    logits: Float[Tensor, "B V"], ids: Int[Tensor, "B L"], weights: Float[Tensor, " V"]
) -> Float[Tensor, ""]:
    """Weighted cross-entropy of a sentence's words, predicted from one vector.

    Without weights, the vector would mostly learn that sentences contain "the" and "of". DupMAE
    (Liu et al. 2022, https://arxiv.org/abs/2211.08769, section 3.2) predicts bags of words without
    weights.

    Args:
        logits: Logits of each sentence's vector, (B, V).
        ids: Tokens of the sentences, (B, L).
        weights: Weights of the tokens of the vocabulary, (V,).
    """
    weight = weights[ids]
    log_probabilities = logits.float().log_softmax(dim=1).gather(1, ids)
    return -(weight * log_probabilities).sum() / weight.sum()


def sentence_losses(
    model: MaskedLM,
    ids: Int[Tensor, "B L"],
    special: Int[Tensor, " S"],
    weights: Float[Tensor, " V"] | None,
    *,
    mask_id: int,
    pad_id: int,
    masked: float,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""] | None]:
    """Masked-LM loss and bag-of-words loss of single sentences.

    The masks are drawn anew at every call (RoBERTa's dynamic masking,
    https://arxiv.org/abs/1907.11692). The bag contains the masked words too. A RoBERTa has no
    next-sentence task: its pooler, if it has one, predicts the bag as well, and the loss is their
    mean.

    Args:
        model: Model with a masked-LM head.
        ids: Tokens, (B, L).
        special: Ids that are not masked, (S,).
        weights: As in `bag_of_words_loss`; None: no bag-of-words loss.
        mask_id: Id of [MASK].
        pad_id: Id of padding.
        masked: Share of the tokens that is masked.

    Returns:
        The masked-LM loss; the bag-of-words loss of [CLS], or None.
    """
    hidden = random_tokens(ids, special, masked)
    attention = (ids != pad_id).long()
    output = model.base_model(ids.masked_fill(hidden, mask_id), attention)
    states = output.last_hidden_state
    bag = None
    if weights is not None:
        vectors = [states[:, 0]]
        if isinstance(model, RobertaForMaskedLM) and output.pooler_output is not None:
            vectors.append(output.pooler_output)
        bags = [bag_of_words_loss(word_logits(model, v), ids, weights) for v in vectors]
        bag = sum(bags) / len(bags)
    return token_loss(model, states, ids, hidden), bag


def pair_losses(
    model: BertForPreTraining,
    ids: Int[Tensor, "B L"],
    segments: Int[Tensor, "B L"],
    labels: Int[Tensor, " B"],
    special: Int[Tensor, " S"],
    *,
    mask_id: int,
    pad_id: int,
    masked: float = 0.15,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Masked-LM loss and next-sentence loss of sentence pairs, BERT's two losses.

    Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1.

    Args:
        model: A BERT with both heads.
        ids: Tokens of the pairs, (B, L).
        segments: 0 for the first sentence, 1 for the second, (B, L).
        labels: 0 if the second sentence follows, else 1, (B,).
        special: Ids that are not masked, (S,).
        mask_id: Id of [MASK].
        pad_id: Id of padding.
        masked: Share of the tokens that is masked.

    Returns:
        Both losses, scalars.
    """
    hidden = random_tokens(ids, special, masked)
    out = model.bert(
        input_ids=ids.masked_fill(hidden, mask_id),
        attention_mask=(ids != pad_id).long(),
        token_type_ids=segments,
    )
    follows = model.cls.seq_relationship(out.pooler_output).float()
    return token_loss(model, out.last_hidden_state, ids, hidden), F.cross_entropy(follows, labels)
