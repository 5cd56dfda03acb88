"""Pretraining losses of a small encoder: masked LM, bag of words from [CLS], next sentence."""

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor
from transformers import BertForPreTraining, LlamaForCausalLM, PreTrainedTokenizerBase

from cselab.data.token_rows import Rows

PAIRS_MASKED = 0.15
"""Share of masked words in sentence pairs, BERT's."""


def random_tokens(ids: Int[Tensor, "B L"], special: list[int], share: float) -> Bool[Tensor, "B L"]:
    """Mask of a random `share` (0 to 1) of the tokens that are not special, True where chosen.

    `DataCollatorForLanguageModeling` draws its masks a batch ahead of the training step, which a
    resumed run could not repeat.
    """
    is_special = torch.isin(ids, torch.tensor(special, device=ids.device))
    return (torch.rand(ids.shape, device=ids.device) < share) & ~is_special


def token_loss(
    model: BertForPreTraining,
    states: Float[Tensor, "B L d"],
    ids: Int[Tensor, "B L"],
    where: Bool[Tensor, "B L"],
) -> Float[Tensor, ""]:
    """Mean cross-entropy of `ids` at `where`.

    Other positions are not projected to the vocabulary, which is most of a small model's work.
    """
    return F.cross_entropy(model.cls.predictions(states[where]).float(), ids[where])


def bag_of_words_loss(
    logits: Float[Tensor, "B V"], ids: Int[Tensor, "B L"], weights: Float[Tensor, " V"]
) -> Float[Tensor, ""]:
    """Weighted cross-entropy of a sentence's words, predicted from one vector.

    Without weights, as in DupMAE (Liu et al. 2022, https://arxiv.org/abs/2211.08769, section 3.2),
    the vector would mostly learn that sentences contain "the" and "of".
    """
    weight = weights[ids]
    log_probabilities = logits.float().log_softmax(dim=1).gather(1, ids)
    return -(weight * log_probabilities).sum() / weight.sum()


def encoder_losses(
    model: BertForPreTraining,
    tokenizer: PreTrainedTokenizerBase,
    batch: Mapping[str, Tensor],
    *,
    masked: float,
    weights: Float[Tensor, " V"] | None,
) -> dict[str, Float[Tensor, ""]]:
    """Losses of single sentences (masked LM, bag of words), or of pairs (masked LM, next sentence).

    The masks are drawn anew at every call (RoBERTa's dynamic masking,
    https://arxiv.org/abs/1907.11692). The bag contains the masked words too. The losses of pairs
    are BERT's (Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1).

    Args:
        batch: input_ids and attention_mask, (B, L); of pairs also token_type_ids, (B, L), and
            next_sentence_label, 0 if the second sentence follows, else 1, (B,).
        masked: Share of the tokens that is masked in single sentences.
        weights: As in `bag_of_words_loss`; None: no bag-of-words loss.
    """
    inputs = dict(batch)
    labels, ids = inputs.pop("next_sentence_label", None), inputs.pop("input_ids")
    name, share = ("masked LM", masked) if labels is None else ("masked LM of pairs", PAIRS_MASKED)
    hidden = random_tokens(ids, tokenizer.all_special_ids, share)
    output = model.base_model(ids.masked_fill(hidden, tokenizer.mask_token_id), **inputs)
    states, losses = output.last_hidden_state, {}
    if labels is not None:
        follows = model.cls.seq_relationship(output.pooler_output).float()
        losses["next sentence"] = F.cross_entropy(follows, labels)
    elif weights is not None:
        words = model.cls.predictions(states[:, 0])
        losses["bag of words"] = bag_of_words_loss(words, ids, weights)
    losses[name] = token_loss(model, states, ids, hidden)
    return losses


def next_token_loss(
    model: LlamaForCausalLM, ids: Int[Tensor, "B L"], mask: Int[Tensor, "B L"]
) -> Float[Tensor, ""]:
    """Mean cross-entropy of every token except the first, given the previous tokens."""
    output = model.model(input_ids=ids, attention_mask=mask, use_cache=False)
    is_token = mask[:, 1:].bool()
    logits = model.lm_head(output.last_hidden_state[:, :-1][is_token])
    return F.cross_entropy(logits.float(), ids[:, 1:][is_token])


@torch.no_grad()
def held_out_loss(
    model: BertForPreTraining | LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerBase,
    rows: Rows,
    which: np.ndarray,
    *,
    masked: float,
) -> float:
    """Loss in nats per predicted token, without dropout; keeps the random state.

    Args:
        which: Positions of the held-out sentences in `rows`.
        masked: Share of the tokens that is masked for an encoder, the same ones at every call.
    """
    model.eval()
    pad, total, count = tokenizer.pad_token_id, 0.0, 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in np.array_split(which, max(1, len(which) // 250)):
            on_cpu = rows.padded(part, pad)
            # drawn on the CPU: the same on every device
            hidden = random_tokens(on_cpu, tokenizer.all_special_ids, masked).to(model.device)
            ids = on_cpu.to(model.device)
            mask = (ids != pad).long()
            if isinstance(model, LlamaForCausalLM):
                loss, predicted = next_token_loss(model, ids, mask), int(mask[:, 1:].sum())
            else:
                inputs = ids.masked_fill(hidden, tokenizer.mask_token_id)
                states = model.base_model(inputs, mask).last_hidden_state
                loss, predicted = token_loss(model, states, ids, hidden), int(hidden.sum())
            total += loss.item() * predicted
            count += predicted
    return total / count


def next_sentence_pairs(
    rows: Rows, pairs: int, pad: int, random: np.random.Generator
) -> tuple[Int[Tensor, "B L"], Int[Tensor, "B L"], Int[Tensor, " B"]]:
    """Pairs for BERT's next-sentence task: token ids, segments and labels.

    Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1, task 2. In every second pair,
    the second sentence is a random one of the text.

    Returns:
        Ids `[CLS] a [SEP] b [SEP]`, (B, L); segments, 0 for a and 1 for b, (B, L); and labels, 0 if
        b follows a, (B,).
    """
    first = random.integers(0, len(rows) - 1, pairs)
    second = np.where(np.arange(pairs) % 2, random.integers(0, len(rows), pairs), first + 1)
    a, b = rows.padded(first, pad), rows.padded(second, pad, skip=1)
    lengths_a, lengths_b = (a != pad).sum(1), (b != pad).sum(1)
    ids = torch.full((pairs, int((lengths_a + lengths_b).max())), pad)
    segments = torch.zeros_like(ids)
    columns = torch.arange(ids.shape[1])
    in_a = columns < lengths_a[:, None]
    in_b = ~in_a & (columns < (lengths_a + lengths_b)[:, None])
    ids[in_a], ids[in_b], segments[in_b] = a[a != pad], b[b != pad], 1
    return ids, segments, torch.arange(pairs) % 2
