"""Views: functions from a token batch to a token batch, by name; what makes a sentence's second view differ besides dropout.

A batch is `input_ids` and `attention_mask`, (B, L) each, a row a text with [CLS] first and [SEP] last; rows may grow. [CLS] and [SEP]
stay. Random numbers are torch's own, as dropout's are, so that a replayed step draws the same views.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from cselab.errors import DataError, SettingsError, suggest

Batch = dict[str, Tensor]
AUXILIARIES = ("is", "are", "was", "were", "will", "would", "can", "could", "should", "must", "may", "might", "has", "have", "had", "do",
               "does", "did")  # fmt: skip
"""Words after which `negate` puts "not"."""


@dataclass(frozen=True)
class Tokens:
    """What views know of a vocabulary: ids of the special tokens, and of the words that negate."""

    pad: int
    mask: int
    special: frozenset[int]
    auxiliaries: frozenset[int]
    negation: tuple[int, ...]
    denial: tuple[int, ...]

    @classmethod
    def of(cls, tokenizer: PreTrainedTokenizerBase) -> "Tokens":
        """Raises DataError for a tokenizer without a padding or mask token."""
        if tokenizer.pad_token_id is None or tokenizer.mask_token_id is None:
            raise DataError(
                "views of a sentence need a tokenizer with a padding and a mask token, as BERT's and RoBERTa's have"
            )

        def ids(text: str) -> tuple[int, ...]:
            return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])

        single = {found[0] for word in AUXILIARIES if len(found := ids(f" {word}")) == 1}
        return cls(tokenizer.pad_token_id, tokenizer.mask_token_id, frozenset(tokenizer.all_special_ids), frozenset(single),
                   ids(" not"), ids("it is not true that"))  # fmt: skip


View = Callable[[Batch, Tokens], Batch]


def same(batch: Batch, tokens: Tokens) -> Batch:
    """The text itself: dropout alone makes the views differ (SimCSE)."""
    return batch


def shuffle(batch: Batch, tokens: Tokens) -> Batch:
    """Words in random order (ConSERT's token shuffling; a sequence without positions is the same)."""
    ids = batch["input_ids"]
    inner = _inner(batch, tokens)
    places = inner.nonzero()[:, 1]
    keys = torch.rand(ids.shape, device=ids.device).masked_fill(~inner, 2.0)
    order = keys.argsort(dim=1)  # the inner tokens' columns first, in random order
    chosen = order[torch.arange(ids.shape[1], device=ids.device) < inner.sum(1, keepdim=True)]
    rows = inner.nonzero()[:, 0]
    shuffled = ids.clone()
    shuffled[rows, places] = ids[rows, chosen]
    return {**batch, "input_ids": shuffled}


def repeat(batch: Batch, tokens: Tokens, share: float = 0.32) -> Batch:
    """ESimCSE: some tokens twice, how many is uniform in 0 … max(2, share · length), so that length says nothing."""
    inner = _inner(batch, tokens)
    most = torch.clamp((share * inner.sum(1)).long(), min=2)
    wanted = (torch.rand(len(inner), device=inner.device) * (most + 1)).long()
    twice = _drawn(inner, wanted)
    return _rebuilt(batch, tokens, torch.ones_like(inner, dtype=torch.long) + twice)


def delete(batch: Batch, tokens: Tokens, share: float = 0.1) -> Batch:
    """A tenth of the words left out, one at least stays (PCL)."""
    inner = _inner(batch, tokens)
    gone = _drawn(inner, torch.clamp((share * inner.sum(1)).round().long(), max=inner.sum(1) - 1))
    return _rebuilt(batch, tokens, 1 - gone.long())


def cutoff(batch: Batch, tokens: Tokens, share: float = 0.15) -> Batch:
    """ConSERT's token cutoff: some words are hidden from attention, at their places."""
    inner = _inner(batch, tokens)
    hidden = _drawn(inner, (share * inner.sum(1)).round().long())
    return {**batch, "attention_mask": batch["attention_mask"].masked_fill(hidden, 0)}


def mask(batch: Batch, tokens: Tokens, share: float = 0.3) -> Batch:
    """Some words as [MASK], one at least (DiffCSE, InfoCSE: 30 %)."""
    inner = _inner(batch, tokens)
    hidden = _drawn(inner, torch.clamp((share * inner.sum(1)).round().long(), min=1))
    return {**batch, "input_ids": batch["input_ids"].masked_fill(hidden, tokens.mask)}


def mask_span(batch: Batch, tokens: Tokens, share: float = 0.2) -> Batch:
    """One run of neighbouring words as [MASK] (ArcCSE: 20 % lightly, 40 % heavily)."""
    inner = _inner(batch, tokens)
    place = inner.cumsum(1) - 1  # of a token among its row's words
    count = inner.sum(1, keepdim=True)
    length = torch.clamp((share * count).round(), min=1)
    start = (torch.rand(count.shape, device=count.device) * (count - length + 1)).floor()
    hidden = inner & (place >= start) & (place < start + length)
    return {**batch, "input_ids": batch["input_ids"].masked_fill(hidden, tokens.mask)}


def negate(batch: Batch, tokens: Tokens) -> Batch:
    """SNCSE's soft negative, by a simpler rule than its parser: "not" after the first auxiliary verb, else "it is not true that" before."""
    rows = []
    for ids in _rows(batch):
        at = next((place for place, token in enumerate(ids) if token in tokens.auxiliaries), None)
        said = (tokens.denial, 1) if at is None else (tokens.negation, at + 1)
        rows.append([*ids[: said[1]], *said[0], *ids[said[1] :]])
    return _padded(rows, batch, tokens)


def wrapped(batch: Batch, tokens: Tokens, before: list[int], after: list[int]) -> Batch:
    """Every text between the tokens of a prompt, inside [CLS] and [SEP]."""
    framed = [[ids[0], *before, *ids[1:-1], *after, ids[-1]] for ids in _rows(batch)]
    return _padded(framed, {name: batch[name] for name in ("input_ids", "attention_mask")}, tokens)


VIEWS: dict[str, View] = {
    "same": same, "shuffle": shuffle, "repeat": repeat, "delete": delete, "cutoff": cutoff, "mask": mask, "mask_span": mask_span,
    "negate": negate,
}  # fmt: skip


def checked(names: tuple[str, ...], views: int) -> tuple[str, ...]:
    """`names`, one for each of `views` or none at all. Raises SettingsError, with the nearest name, for an unknown one, and for too many
    or too few."""
    for name in names:
        if name not in VIEWS:
            raise SettingsError(f"augment: unknown view {name!r}; {suggest(name, VIEWS)}")
    if names and len(names) != views:
        raise SettingsError(
            f"augment: {len(names)} names ({', '.join(names)}) for {views} views; give one for each, {'same'!r} changes nothing"
        )
    return names


def augmented(batch: Batch, names: tuple[str, ...], tokens: Tokens) -> Batch:
    """A view-major batch with each of its views changed by its function; what has another width is padded."""
    texts = {key: batch[key] for key in ("input_ids", "attention_mask")}
    parts = [
        VIEWS[name](dict(zip(texts, some, strict=True)), tokens)
        for name, *some in zip(names, *(rows.chunk(len(names)) for rows in texts.values()), strict=True)
    ]
    return {**batch, **joined(parts, tokens)}


def joined(parts: list[Batch], tokens: Tokens) -> Batch:
    """Batches below one another, padded to the widest."""
    width = max(part["input_ids"].shape[1] for part in parts)
    fill = {"input_ids": tokens.pad, "attention_mask": 0}
    return {
        key: torch.cat([torch.nn.functional.pad(p[key], (0, width - p[key].shape[1]), value=value) for p in parts])
        for key, value in fill.items()
    }


def _inner(batch: Batch, tokens: Tokens) -> Tensor:
    """True at the words: what is neither padding nor a special token."""
    special = torch.tensor(sorted(tokens.special), device=batch["input_ids"].device)
    return batch["attention_mask"].bool() & ~torch.isin(batch["input_ids"], special)


def _drawn(among: Tensor, counts: Tensor) -> Tensor:
    """`counts` random positions of each row, of those that are True in `among`."""
    keys = torch.rand(among.shape, device=among.device).masked_fill(~among, 2.0)
    return among & (keys.argsort(dim=1).argsort(dim=1) < counts[:, None])


def _rows(batch: Batch) -> list[list[int]]:
    return [ids[seen.bool()].tolist() for ids, seen in zip(batch["input_ids"], batch["attention_mask"], strict=True)]


def _rebuilt(batch: Batch, tokens: Tokens, times: Tensor) -> Batch:
    """Each token as often as `times` says; padding is dropped and made anew."""
    pairs = zip(batch["input_ids"], times * batch["attention_mask"], strict=True)
    return _padded([ids.repeat_interleave(count).tolist() for ids, count in pairs], batch, tokens)


def _padded(rows: list[list[int]], batch: Batch, tokens: Tokens) -> Batch:
    device, width = batch["input_ids"].device, max(map(len, rows))
    seen = torch.arange(width, device=device) < torch.tensor([len(row) for row in rows], device=device)[:, None]
    ids = torch.full(seen.shape, tokens.pad, device=device)
    ids[seen] = torch.tensor([token for row in rows for token in row], device=device)
    return {**batch, "input_ids": ids, "attention_mask": seen.long()}
