"""Augmented views of token batches, by name: how a sentence's views differ besides dropout.

A view is a function from a batch to a batch: `input_ids` and `attention_mask`, (B, L) each, one
text per row, with [CLS] first and [SEP] last, which no view changes. L may change. Random numbers
come from torch's default generator, as those of dropout do, so that a replayed step draws the same
views.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError, SettingsError, suggest

Batch = dict[str, Tensor]
AUXILIARIES = (
    *("is", "are", "was", "were", "has", "have", "had", "do", "does", "did"),
    *("will", "would", "can", "could", "should", "must", "may", "might"),
)
"""Words after which `negate` inserts "not"."""
REPEATED = 0.32
"""Largest share of the tokens that `repeat` repeats."""


@dataclass(frozen=True)
class Tokens:
    """The token ids that views need: special tokens, auxiliary verbs and negations."""

    pad: int
    mask: int
    special: frozenset[int]
    auxiliaries: frozenset[int]
    negation: tuple[int, ...]
    denial: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> "Tokens":
        """The ids in a vocabulary, which needs a padding and a mask token."""
        if tokenizer.pad_token_id is None or tokenizer.mask_token_id is None:
            raise DataError("views need a tokenizer with a padding and a mask token, as BERT's")

        def ids(text: str) -> tuple[int, ...]:
            return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

        auxiliaries = [ids(f" {word}") for word in AUXILIARIES]
        return cls(
            tokenizer.pad_token_id,
            tokenizer.mask_token_id,
            frozenset(tokenizer.all_special_ids),
            frozenset(token[0] for token in auxiliaries if len(token) == 1),
            ids(" not"),
            ids("it is not true that"),
        )


View = Callable[[Batch, Tokens], Batch]


def same(batch: Batch, tokens: Tokens) -> Batch:
    """The unchanged text: only dropout makes the views differ (SimCSE)."""
    return batch


def shuffle(batch: Batch, tokens: Tokens) -> Batch:
    """Put the tokens into random order.

    ConSERT, https://arxiv.org/abs/2105.11741, shuffles position ids, which is the same.
    """
    ids = batch["input_ids"]
    words = _is_word(batch, tokens)
    rows, columns = words.nonzero(as_tuple=True)
    keys = torch.rand(ids.shape, device=ids.device).masked_fill(~words, 2.0)
    order = keys.argsort(dim=1)  # the columns of words first, in random order
    chosen = order[torch.arange(ids.shape[1], device=ids.device) < words.sum(1, keepdim=True)]
    shuffled = ids.clone()
    shuffled[rows, columns] = ids[rows, chosen]
    return {**batch, "input_ids": shuffled}


def repeat(batch: Batch, tokens: Tokens, share: float = REPEATED) -> Batch:
    """Repeat some tokens, so that positives differ in length.

    ESimCSE, https://arxiv.org/abs/2109.04380: the number is uniform in 0 … max(2, share · length).
    """
    words = _is_word(batch, tokens)
    most = torch.clamp((share * words.sum(1)).long(), min=2)
    counts = (torch.rand(len(words), device=words.device) * (most + 1)).long()
    twice = _random_positions(words, counts)
    return _repeat_tokens(batch, tokens, torch.ones_like(words, dtype=torch.long) + twice)


def delete(batch: Batch, tokens: Tokens, share: float = 0.1) -> Batch:
    """Delete a tenth of the words; at least one stays (PCL, https://arxiv.org/abs/2201.12093)."""
    words = _is_word(batch, tokens)
    counts = torch.clamp((share * words.sum(1)).round().long(), max=words.sum(1) - 1)
    return _repeat_tokens(batch, tokens, 1 - _random_positions(words, counts).long())


def cutoff(batch: Batch, tokens: Tokens, share: float = 0.15) -> Batch:
    """Hide some words from attention (ConSERT's cutoff, https://arxiv.org/abs/2105.11741)."""
    words = _is_word(batch, tokens)
    hidden = _random_positions(words, (share * words.sum(1)).round().long())
    return {**batch, "attention_mask": batch["attention_mask"].masked_fill(hidden, 0)}


def mask(batch: Batch, tokens: Tokens, share: float = 0.3) -> Batch:
    """Replace some words by [MASK], at least one.

    30 % in DiffCSE, https://arxiv.org/abs/2204.10298, and InfoCSE,
    https://arxiv.org/abs/2210.06432.
    """
    words = _is_word(batch, tokens)
    hidden = _random_positions(words, torch.clamp((share * words.sum(1)).round().long(), min=1))
    return {**batch, "input_ids": batch["input_ids"].masked_fill(hidden, tokens.mask)}


def mask_span(batch: Batch, tokens: Tokens, share: float = 0.2) -> Batch:
    """Replace a run of neighbouring words by [MASK].

    ArcCSE, https://aclanthology.org/2022.acl-long.336: 20 % lightly, 40 % heavily.
    """
    words = _is_word(batch, tokens)
    number = words.cumsum(1) - 1  # of a token among its row's words
    count = words.sum(1, keepdim=True)
    length = torch.clamp((share * count).round(), min=1)
    start = (torch.rand(count.shape, device=count.device) * (count - length + 1)).floor()
    hidden = words & (number >= start) & (number < start + length)
    return {**batch, "input_ids": batch["input_ids"].masked_fill(hidden, tokens.mask)}


def negate(batch: Batch, tokens: Tokens) -> Batch:
    """Negate the sentence, as a soft negative (SNCSE, https://arxiv.org/abs/2201.05979).

    A simpler rule than the paper's parser: "not" after the first auxiliary verb; without one, "it
    is not true that" before the sentence.
    """
    rows = []
    for ids in _token_lists(batch):
        after = [i + 1 for i, token in enumerate(ids) if token in tokens.auxiliaries]
        start, words = (after[0], tokens.negation) if after else (1, tokens.denial)
        rows.append([*ids[:start], *words, *ids[start:]])
    return _pad(rows, batch, tokens)


def wrap_in_prompt(batch: Batch, tokens: Tokens, before: list[int], after: list[int]) -> Batch:
    """Put the tokens of a prompt around every text, inside [CLS] and [SEP]."""
    rows = [[ids[0], *before, *ids[1:-1], *after, ids[-1]] for ids in _token_lists(batch)]
    return _pad(rows, {name: batch[name] for name in ("input_ids", "attention_mask")}, tokens)


def most_added(name: str, words: int, tokens: Tokens) -> int:
    """Greatest number of tokens that a view adds to a text of `words` tokens."""
    if name == "repeat":
        return min(words, max(2, int(REPEATED * words)))
    return max(len(tokens.negation), len(tokens.denial)) if name == "negate" else 0


_VIEWS: tuple[View, ...] = (same, shuffle, repeat, delete, cutoff, mask, mask_span, negate)
VIEWS = {view.__name__: view for view in _VIEWS}


def check_view_names(names: tuple[str, ...], views: int) -> tuple[str, ...]:
    """Return `names` if they are one per view, or none; else raise a SettingsError."""
    for name in names:
        if name not in VIEWS:
            raise SettingsError(f"augment: unknown view {name!r}; {suggest(name, VIEWS)}")
    if names and len(names) != views:
        raise SettingsError(
            f"augment: {len(names)} names for {views} views; give one for each, or 'same'"
        )
    return names


def augment(batch: Batch, names: tuple[str, ...], tokens: Tokens) -> Batch:
    """Apply a view of VIEWS to each view of a view-major batch; pads to the widest result.

    `input_ids` and `attention_mask`, (views * N, L) each, change; other columns stay.
    """
    texts = {key: batch[key] for key in ("input_ids", "attention_mask")}
    views = zip(names, *(rows.chunk(len(names)) for rows in texts.values()), strict=True)
    parts = [
        VIEWS[name](dict(zip(texts, columns, strict=True)), tokens) for name, *columns in views
    ]
    return {**batch, **concatenate(parts, tokens)}


def concatenate(parts: list[Batch], tokens: Tokens) -> Batch:
    """Concatenate the rows of batches, padded to the widest."""
    width = max(part["input_ids"].shape[1] for part in parts)

    def column(key: str, value: int) -> Tensor:
        rows = [F.pad(part[key], (0, width - part[key].shape[1]), value=value) for part in parts]
        return torch.cat(rows)

    return {
        "input_ids": column("input_ids", tokens.pad),
        "attention_mask": column("attention_mask", 0),
    }


def _is_word(batch: Batch, tokens: Tokens) -> Tensor:
    """Mask of the words, (B, L): True where a token is neither padding nor special."""
    special = torch.tensor(sorted(tokens.special), device=batch["input_ids"].device)
    return batch["attention_mask"].bool() & ~torch.isin(batch["input_ids"], special)


def _random_positions(among: Tensor, counts: Tensor) -> Tensor:
    """Mask of `counts` random positions per row, of those that are True in `among`."""
    keys = torch.rand(among.shape, device=among.device).masked_fill(~among, 2.0)
    return among & (keys.argsort(dim=1).argsort(dim=1) < counts[:, None])


def _token_lists(batch: Batch) -> list[list[int]]:
    """The rows without padding."""
    rows = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    return [ids[mask.bool()].tolist() for ids, mask in rows]


def _repeat_tokens(batch: Batch, tokens: Tokens, times: Tensor) -> Batch:
    """Repeat each token as often as `times` says, 0 included, and pad anew."""
    pairs = zip(batch["input_ids"], times * batch["attention_mask"], strict=True)
    return _pad([ids.repeat_interleave(count).tolist() for ids, count in pairs], batch, tokens)


def _pad(rows: list[list[int]], batch: Batch, tokens: Tokens) -> Batch:
    """Padded rows in the place of the batch's."""
    device, width = batch["input_ids"].device, max(map(len, rows))
    lengths = torch.tensor([len(row) for row in rows], device=device)
    mask = torch.arange(width, device=device) < lengths[:, None]
    ids = torch.full(mask.shape, tokens.pad, device=device)
    ids[mask] = torch.tensor([token for row in rows for token in row], device=device)
    return {**batch, "input_ids": ids, "attention_mask": mask.long()}
