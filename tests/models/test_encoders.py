"""Loading, pooling and encoding: the silent failures of everyday use."""

import pytest
import torch
from safetensors.torch import load_file, save_file

from cselab.errors import ModelError
from cselab.models import (
    POOLINGS,
    SentenceEncoder,
    load_backbone,
    longest_input,
    pool,
)

SENTENCES = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was not under the table , in the house .",
    "dog",
]


@pytest.fixture
def saved(make_tower, word_tokenizer, tmp_path):
    """A saved encoder folder, and the model that was saved."""
    encoder = SentenceEncoder(make_tower(3), word_tokenizer, pooling="mean")
    encoder.save_pretrained(tmp_path / "encoder")
    return tmp_path / "encoder", encoder


def test_a_half_precision_file_is_loaded_in_single_precision(saved):
    """from_pretrained keeps the file's dtype, so an fp16 file would silently train in fp16."""
    folder, encoder = saved
    encoder.backbone.half().save_pretrained(folder)
    assert load_backbone(folder).dtype == torch.float32


def _drop(folder, prefix):
    path = folder / "model.safetensors"
    save_file(
        {k: v for k, v in load_file(path).items() if not k.startswith(prefix)},
        path,
        metadata={"format": "pt"},
    )


def test_a_missing_pooler_is_an_error_where_it_is_read(saved):
    """The commonest wrong number of this field: a pooler that transformers re-initialised with a
    warning."""
    folder, _ = saved
    _drop(folder, "pooler.")
    with pytest.raises(
        ModelError, match="has no trained pooler.*pooler='fresh'.*measured_on='cls'"
    ):
        load_backbone(folder, pooler="required")
    assert load_backbone(folder).pooler is None
    assert load_backbone(folder, pooler="fresh").pooler is not None


def test_loading_moves_the_random_state_only_for_a_fresh_pooler(saved):
    """Prevents a checkpoint without a pooler from shifting every later dropout mask of a seeded
    run."""
    folder, _ = saved
    _drop(folder, "pooler.")
    state = torch.get_rng_state()
    load_backbone(folder)
    assert torch.equal(state, torch.get_rng_state())
    first, second = (load_backbone(folder, pooler="fresh").pooler.dense.weight for _ in range(2))
    assert not torch.equal(first, second)


def test_poolings_on_numbers_that_can_be_checked_by_hand():
    """Layer 0 is the embedding layer and takes part in no pooling; padding takes part in none."""
    layers = [
        torch.full((2, 3, 1), 100.0),
        torch.tensor([[[1.0], [3.0], [50.0]], [[2.0], [4.0], [6.0]]]),
    ]
    layers += [layers[1] + 10, layers[1] * 2]
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    expected = {
        "cls": [2, 4],
        "mean": [4, 8],
        "first_last": [3, 6],
        "last_two": [8, 11],
        "last_token": [6, 12],
    }
    assert expected.keys() == set(POOLINGS)
    for how, values in expected.items():
        assert pool(layers, mask, how).flatten().tolist() == values, how
    left = torch.tensor([[0, 1, 1], [1, 1, 1]])
    assert pool(layers, left, "last_token").flatten().tolist() == [100, 12]


def test_one_tensor_is_the_last_layer():
    """Indexed like a sequence of layers, a (B, L, d) tensor would give its last sentence."""
    states, mask = torch.arange(12.0).view(2, 3, 2), torch.tensor([[1, 1, 0], [1, 1, 1]])
    for how in ("cls", "mean", "last_token"):
        assert torch.equal(pool(states, mask, how), pool([states], mask, how))


def test_the_pooling_is_saved_with_the_model(saved):
    """Prevents the same checkpoint from scoring 57 with one pooler and 76 with another, depending
    on who loads it."""
    folder, encoder = saved
    again = SentenceEncoder.from_pretrained(folder)
    assert again.pooling == "mean"
    assert torch.equal(again.encode(SENTENCES), encoder.encode(SENTENCES))


def test_a_pooler_that_nobody_trained_is_never_read(make_tower, word_tokenizer, tmp_path):
    """Prevents a re-initialised pooler from giving plausible vectors (roberta-base ships without
    one)."""
    tower = make_tower(3)
    encoder = SentenceEncoder(tower, word_tokenizer, pooling="pooler")
    batch = dict(
        word_tokenizer(SENTENCES, padding=True, return_tensors="pt", return_token_type_ids=False)
    )
    torch.testing.assert_close(encoder.embed(batch), tower(**batch).pooler_output)
    encoder.save_pretrained(tmp_path / "whole")
    again = SentenceEncoder.from_pretrained(tmp_path / "whole").eval()
    torch.testing.assert_close(again.embed(batch), encoder.embed(batch))
    tower.pooler = None
    encoder.save_pretrained(tmp_path / "bare")  # its pooler is gone, its card still says "pooler"
    with pytest.raises(ModelError, match="has no trained pooler"):
        SentenceEncoder.from_pretrained(tmp_path / "bare")
    assert SentenceEncoder.from_pretrained(tmp_path / "bare", pooler="fresh").pooling == "pooler"


@pytest.mark.parametrize("pooling", [*POOLINGS, "pooler"])
@pytest.mark.parametrize("tokens_per_batch", [1, 24, 8192])
def test_encoding_together_equals_encoding_alone_in_order(
    make_tower, word_tokenizer, pooling, tokens_per_batch
):
    """Prevents padding that changes a vector, and vectors in the order of their lengths."""
    encoder = SentenceEncoder(make_tower(3).double(), word_tokenizer, pooling=pooling)
    alone = torch.cat([encoder.encode([sentence]) for sentence in SENTENCES])
    together = encoder.encode(SENTENCES, tokens_per_batch=tokens_per_batch)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_encoding_leaves_mode_and_random_state_alone(make_bert, word_tokenizer):
    """Prevents an evaluation from switching dropout off for the rest of training, from moving its
    masks, and from switching it on in a frozen part."""
    encoder = SentenceEncoder(make_bert(), word_tokenizer).train()
    encoder.backbone.embeddings.eval()
    state = torch.get_rng_state()
    first = encoder.encode(SENTENCES)
    assert encoder.training
    assert encoder.backbone.encoder.training
    assert not encoder.backbone.embeddings.dropout.training
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first, encoder.encode(SENTENCES))
    assert first.dtype == torch.float32


def test_vectors_can_be_constants_in_a_loss(make_bert, word_tokenizer):
    """A distillation teacher's vectors made in inference mode would make backward() raise."""
    teacher = SentenceEncoder(make_bert(), word_tokenizer).encode(SENTENCES)
    student = torch.ones_like(teacher, requires_grad=True)
    (student * teacher).sum().backward()
    assert torch.equal(student.grad, teacher)


def test_a_sentence_longer_than_the_backbone_reads_is_cut(make_tower, word_tokenizer):
    """RoBERTa's positions start after the padding index: 66 positions hold 65 tokens with padding
    index 0."""
    model = make_tower()
    assert longest_input(model) == (66 if model.config.model_type == "bert" else 65)
    encoder = SentenceEncoder(model, word_tokenizer)
    assert encoder.encode(["dog " * 500]).isfinite().all()
    assert torch.equal(encoder.encode(["dog " * 500], max_length=4), encoder.encode(["dog dog"]))
