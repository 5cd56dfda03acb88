"""Batches: every row at most once, little padding, exact resume; two views, padded to the batch."""

import numpy as np
import pytest
import torch
from accelerate import Accelerator, skip_first_batches
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from cselab.data import BucketedBatchSampler, ViewCollator
from cselab.errors import DataError


def lengths(n, seed=0):
    return np.random.default_rng(seed).geometric(0.05, size=n)


@given(n=st.integers(2, 700), batch_size=st.integers(2, 12), epoch=st.integers(0, 3))
def test_every_row_at_most_once_and_only_the_ragged_end_is_left_out(n, batch_size, epoch):
    """Prevents rows that are lost, doubled, or alone in a batch without negatives."""
    batch_size = min(batch_size, n)
    sampler = BucketedBatchSampler(lengths(n), batch_size, seed=1)
    sampler.set_epoch(epoch)
    batches = list(sampler)
    rows = [row for batch in batches for row in batch]
    assert len(set(rows)) == len(rows)
    assert len(batches) == len(sampler)
    assert [len(batch) for batch in batches] == [batch_size] * (n // batch_size)


def test_the_rows_left_out_change_from_epoch_to_epoch():
    """Prevents dropping the same sentences, say the longest, in every epoch."""
    sampler = BucketedBatchSampler(lengths(103), 10, seed=0)
    left_out = set()
    for epoch in range(40):
        sampler.set_epoch(epoch)
        left_out |= set(range(103)) - {row for batch in sampler for row in batch}
    assert len(left_out) > 40


def test_batches_depend_on_seed_and_epoch_alone():
    """Prevents other batches in a resumed run because something else drew a random number."""
    sampler = BucketedBatchSampler(lengths(500), 8, seed=3)
    first = list(sampler)
    torch.rand(7)
    np.random.rand(7)  # noqa: NPY002
    state = torch.get_rng_state()
    assert list(BucketedBatchSampler(lengths(500), 8, seed=3)) == first
    assert torch.equal(torch.get_rng_state(), state)
    sampler.set_epoch(1)
    assert list(sampler) != first
    assert list(BucketedBatchSampler(lengths(500), 8, seed=4)) != first


def test_batches_hold_like_lengths_in_no_order():
    """Prevents padding to a random batch's longest, and training from short to long sentences."""
    n = lengths(6400)
    batches = [n[batch] for batch in BucketedBatchSampler(n, 64, seed=0)]
    padding = sum((batch.max() - batch).sum() for batch in batches) / n.sum()
    drawn = [n[batch] for batch in BucketedBatchSampler(n, 64, seed=0, by_length=False)]
    assert sum((batch.max() - batch).sum() for batch in drawn) / n.sum() > 3 * padding
    assert sorted(np.concatenate(drawn)) == sorted(n)
    shuffled = np.random.default_rng(0).permutation(n).reshape(-1, 64)
    assert padding < 0.15 < 1.0 < (shuffled.max(1, keepdims=True) - shuffled).sum() / n.sum()
    means = np.array([batch.mean() for batch in batches])
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.4


def test_impossible_batches_are_refused():
    """Prevents an epoch without a single batch."""
    for n, size, message in [(10, 1, "no negatives"), (10, 16, "fewer than one batch of 16")]:
        with pytest.raises(DataError, match=message):
            BucketedBatchSampler(lengths(n), size, seed=0)


def test_a_prepared_loader_resumes_in_the_middle_of_an_epoch():
    """Prevents a resumed loader from starting over with the batches of epoch 0."""

    def prepared():
        loader = DataLoader(
            range(40), batch_sampler=BucketedBatchSampler(lengths(40), 4, seed=0), collate_fn=list
        )
        return Accelerator(cpu=True).prepare(loader)

    loader = prepared()
    loader.set_epoch(2)
    whole = list(loader)
    resumed = skip_first_batches(prepared(), 3)
    resumed.set_epoch(2)
    resumed.batch_sampler.batch_sampler.set_epoch(2)  # as transformers.Trainer does
    assert list(resumed) == whole[3:]
    loader.set_epoch(0)
    assert list(loader) != whole


def test_two_views_are_view_major_and_padded_to_the_longest(word_tokenizer):
    """Prevents sentence-major rows, whose positives would be other sentences."""
    pad = word_tokenizer.pad_token_id
    batch = ViewCollator(word_tokenizer)(
        [{"input_ids": [2, 7, 3]}, {"input_ids": [2, 7, 8, 9, 3], "length": 5}]
    )
    one = [[2, 7, 3, pad, pad], [2, 7, 8, 9, 3]]
    assert batch.keys() == {"input_ids", "attention_mask"}
    assert batch["input_ids"].tolist() == one + one
    assert batch["attention_mask"].tolist() == 2 * [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]]
    assert {tensor.dtype for tensor in batch.values()} == {torch.int64}


def test_a_second_text_is_the_second_view(word_tokenizer):
    """Prevents a round trip that is cut, or set beside the wrong sentence."""
    rows = [
        {"input_ids": [2, 7, 3], "input_ids_b": [2, 9, 9, 9, 3]},
        {"input_ids": [2, 8, 3], "input_ids_b": [2, 3]},
    ]
    batch = ViewCollator(word_tokenizer)(rows)
    tokens = [
        ids[mask.bool()].tolist()
        for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)
    ]
    assert tokens == [[2, 7, 3], [2, 8, 3], [2, 9, 9, 9, 3], [2, 3]]


def test_a_tokenizer_that_cannot_pad_is_refused_at_once(word_tokenizer):
    """Prevents an error in the first batch, after hours of preparation."""
    from transformers import PreTrainedTokenizerFast

    bare = PreTrainedTokenizerFast(tokenizer_object=word_tokenizer.backend_tokenizer)
    bare.pad_token = None  # a tokenizer that has padded before hands its token on
    with pytest.raises(DataError, match=r"no padding token; set tokenizer\.pad_token"):
        ViewCollator(bare)


def test_triplets_and_teachers_are_a_third_view_and_a_column(word_tokenizer):
    """Prevents pairs taken for triplets, and a teacher's vector repeated for each view."""
    three = ViewCollator(word_tokenizer, views=3)
    message = "learns from triplets: rows need input_ids, input_ids_b and input_ids_c"
    with pytest.raises(DataError, match=message):
        three([{"input_ids": [1], "input_ids_b": [2]}])
    row = {"input_ids": [1], "input_ids_b": [2], "input_ids_c": [3, 4], "target": [0.5, 1.0]}
    assert three([row])["input_ids"].tolist() == [[1, 0], [2, 0], [3, 4]]
    one = ViewCollator(word_tokenizer, views=1)([row])
    assert (one["input_ids"].tolist(), one["target"].tolist()) == ([[1]], [[0.5, 1.0]])
