"""Views: what each may change, what it must leave, and that batches keep their shape."""

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from cselab.data.augment import (
    VIEWS,
    Tokens,
    augment,
    check_view_names,
    mask_span,
    repeat,
    wrap_in_prompt,
)
from cselab.errors import DataError, SettingsError

TEXTS = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was under the table , and a cat in the park .",
    "dog",
]


@pytest.fixture(scope="module")
def tokens(word_tokenizer):
    return Tokens.of(word_tokenizer)


@pytest.fixture
def batch(word_tokenizer):
    return dict(
        word_tokenizer(TEXTS, padding=True, return_tensors="pt", return_token_type_ids=False)
    )


def rows(batch):
    pairs = zip(batch["input_ids"], batch["attention_mask"], strict=True)
    return [ids[seen.bool()].tolist() for ids, seen in pairs]


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_a_view_keeps_the_frame_of_its_texts(name, batch, tokens, word_tokenizer):
    """Prevents a moved [CLS], words in the padding, and a batch changed under its owner."""
    before = {key: value.clone() for key, value in batch.items()}
    torch.manual_seed(0)
    for _ in range(20):
        view = VIEWS[name](batch, tokens)
        ids, seen = view["input_ids"], view["attention_mask"]
        assert ids.shape == seen.shape
        assert (ids[:, 0] == word_tokenizer.cls_token_id).all()
        for row in rows(view):
            assert row[-1] == word_tokenizer.sep_token_id
            assert row.count(word_tokenizer.sep_token_id) == 1
            assert len(row) > 2 or name == "cutoff"
        if name != "cutoff":  # which hides words where they stand
            assert (ids[seen == 0] == tokens.pad).all()
            assert (seen.diff(dim=1) <= 0).all()
    for key, value in before.items():
        assert torch.equal(batch[key], value)


def test_shuffling_keeps_the_words_and_moves_them(batch, tokens):
    """Prevents words that are lost or doubled, and one order for all."""
    torch.manual_seed(0)
    orders = {tuple(rows(VIEWS["shuffle"](batch, tokens))[2]) for _ in range(20)}
    assert len(orders) > 15
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(rows(batch)[2]))}


def test_repetition_is_of_words_in_place_and_uniform_in_number(batch, tokens):
    """Prevents words that move, and a count that always is the largest (ESimCSE)."""
    torch.manual_seed(0)
    plain, counts = rows(batch)[2], Counter()
    for _ in range(600):
        longer = rows(repeat(batch, tokens))[2]
        kept = [token for i, token in enumerate(longer) if i == 0 or token != longer[i - 1]]
        assert kept == plain  # no word of this text stands twice in a row
        counts[len(longer) - len(plain)] += 1
    words = len(plain) - 2
    assert set(counts) == set(range(int(0.32 * words) + 1))
    assert max(counts.values()) < 1.6 * min(counts.values())
    # two words: at most two more
    assert max(len(row) for row in rows(repeat(batch, tokens))[1:2]) <= 4 + 2


def test_deletion_cutoff_and_masks_take_their_share(batch, tokens):
    """Prevents another share than the papers', and a short text of which nothing is left."""
    torch.manual_seed(0)
    words = len(rows(batch)[2]) - 2
    assert len(rows(VIEWS["delete"](batch, tokens))[2]) - 2 == words - round(0.1 * words)
    assert len(rows(VIEWS["delete"](batch, tokens))[3]) == 3  # one word stays
    assert len(rows(VIEWS["cutoff"](batch, tokens))[2]) - 2 == words - round(0.15 * words)
    assert rows(VIEWS["mask"](batch, tokens))[2].count(tokens.mask) == round(0.3 * words)
    assert rows(VIEWS["mask"](batch, tokens))[3].count(tokens.mask) == 1


def test_a_span_is_one_run_and_may_be_anywhere(batch, tokens):
    """Prevents masks that are scattered, and a span that never reaches an end."""
    torch.manual_seed(0)
    starts, words = set(), len(rows(batch)[2]) - 2
    for _ in range(400):
        row = rows(mask_span(batch, tokens, 0.4))[2]
        places = [i for i, token in enumerate(row) if token == tokens.mask]
        assert places == list(range(places[0], places[0] + round(0.4 * words)))
        starts.add(places[0])
    assert starts == set(range(1, words - round(0.4 * words) + 2))


def test_negation_follows_the_verb_or_comes_first(batch, tokens, word_tokenizer):
    """Prevents a soft negative that says the same, and "not" in the middle of a phrase."""
    texts = word_tokenizer.batch_decode(rows(VIEWS["negate"](batch, tokens)))
    assert texts[0] == "[CLS] a man is not playing guitar . [SEP]"
    assert texts[2].startswith("[CLS] the big red ball was not under")
    assert texts[1].endswith("the dog [SEP]")
    assert " not " in texts[1]


def test_a_prompt_stands_inside_cls_and_sep(batch, tokens):
    """Prevents a prompt before [CLS], after [SEP], or in the padding."""
    framed_rows = rows(wrap_in_prompt(batch, tokens, [9, 8], [7]))
    for plain, framed in zip(rows(batch), framed_rows, strict=True):
        assert framed == [plain[0], 9, 8, *plain[1:-1], 7, plain[-1]]


def test_each_view_has_its_own_function(batch, tokens):
    """Prevents the first view's text from being changed too, and ids that are lost on the way."""
    two = {key: torch.cat([value, value]) for key, value in batch.items()}
    torch.manual_seed(0)
    seen = augment({**two, "text_hash": torch.arange(4)}, ("same", "repeat"), tokens)
    first = {key: seen[key][:4] for key in ("input_ids", "attention_mask")}
    assert rows(first) == rows(batch)
    assert rows({key: seen[key][4:] for key in first}) != rows(batch)
    assert torch.equal(seen["text_hash"], torch.arange(4))


def test_wrong_views_are_refused_before_anything_is_loaded(word_tokenizer):
    """Prevents a batch cut at the wrong rows, and masks that are None in the middle of training."""
    assert check_view_names((), 2) == ()
    with pytest.raises(SettingsError, match="unknown view 'shufle'.*'shuffle'"):
        check_view_names(("same", "shufle"), 2)
    with pytest.raises(SettingsError, match="3 names for 2 views; give one for each"):
        check_view_names(("same", "same", "same"), 2)
    backend = word_tokenizer.backend_tokenizer
    with pytest.raises(DataError, match="a padding and a mask token"):
        Tokens.of(PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="[PAD]"))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=6),
    st.sampled_from(sorted(VIEWS)),
    st.integers(0, 10**6),
)
def test_views_take_texts_of_any_length(lengths, name, seed):
    """Prevents a crash on empty texts, which corpora hold."""
    tokens = Tokens(0, 4, frozenset({0, 1, 2, 3, 4}), frozenset({9}), (8,), (7, 7))
    width = max(lengths) + 2
    ids = torch.tensor([[2, *range(9, 9 + n), 3, *[0] * (width - n - 2)] for n in lengths])
    mask = (torch.arange(width) < torch.tensor(lengths)[:, None] + 2).long()
    torch.manual_seed(seed)
    view = VIEWS[name]({"input_ids": ids, "attention_mask": mask}, tokens)
    assert len(view["input_ids"]) == len(lengths)
    assert (view["input_ids"][:, 0] == 2).all()
