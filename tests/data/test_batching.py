"""Batches: every row once, like lengths together, the same again on resume."""

import numpy as np
import pytest
import torch
from cselab.data.batching import BucketedBatchSampler, TwoViewCollator
from cselab.errors import DataError

LENGTHS = np.random.default_rng(0).integers(4, 64, size=1003).tolist()


def test_every_row_at_most_once_and_only_the_ragged_rest_is_left_out():
    sampler = BucketedBatchSampler(LENGTHS, 16, seed=1, batches_per_bucket=10)
    batches = list(sampler)
    rows = [row for batch in batches for row in batch]
    assert len(batches) == len(sampler) == 1003 // 16
    assert {len(batch) for batch in batches} == {16}
    assert len(set(rows)) == len(rows)


def test_batches_are_of_like_lengths_but_not_in_order_of_length():
    """Prevents padding waste, and an epoch that goes from short to long sentences."""
    sampler = BucketedBatchSampler(LENGTHS, 16, seed=1)
    longest = [max(LENGTHS[row] for row in batch) for batch in sampler]
    waste = sum(top * 16 for top in longest) / sum(LENGTHS[row] for batch in sampler for row in batch)
    assert waste < 1.05
    assert abs(np.corrcoef(longest, range(len(longest)))[0, 1]) < 0.5


def test_order_depends_on_seed_and_epoch_only():
    """A sampler on the global random state would show other batches after a resume or one more evaluation."""
    sampler = BucketedBatchSampler(LENGTHS, 16, seed=1)
    first = list(sampler)
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    assert list(sampler) == first
    sampler.set_epoch(1)
    second = list(sampler)
    assert second != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert list(BucketedBatchSampler(LENGTHS, 16, seed=2)) != first


def test_two_views_are_stacked_and_padded_to_the_batch(word_tokenizer):
    ids = word_tokenizer(["a dog is running", "a cat"])["input_ids"]
    batch = TwoViewCollator(word_tokenizer)([{"input_ids": row} for row in ids])
    assert batch["input_ids"].shape == batch["attention_mask"].shape == (4, 6)
    assert torch.equal(batch["input_ids"][:2], batch["input_ids"][2:])
    assert batch["attention_mask"].sum(1).tolist() == [6, 4, 6, 4]
    assert (batch["input_ids"][1, 4:] == word_tokenizer.pad_token_id).all()


def test_another_text_as_second_view(word_tokenizer):
    a, b = word_tokenizer(["a dog", "the big dog is here"])["input_ids"]
    batch = TwoViewCollator(word_tokenizer)([{"input_ids": a, "input_ids_b": b}, {"input_ids": a, "input_ids_b": b}])
    assert batch["attention_mask"].sum(1).tolist() == [4, 4, 7, 7]


def test_too_small_is_one_clear_line():
    with pytest.raises(DataError, match="a batch of 1 has no negatives; use a batch_size of at least 2"):
        BucketedBatchSampler(LENGTHS, 1, seed=0)
    with pytest.raises(DataError, match="the corpus has 3 sentences, fewer than one batch of 16"):
        BucketedBatchSampler([5, 6, 7], 16, seed=0)
