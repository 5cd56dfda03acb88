"""Methods with a masked language model beside the encoder: DiffCSE and InfoCSE."""

import pytest
import torch
from build_method import build
from method_helpers import HEADS, SENTENCES

from cselab.errors import ModelError
from cselab.methods.baselines.masked_lm import fill_masks, load_masked_lm


def reached(module) -> bool:
    return any(p.grad is not None and p.grad.any() for p in module.parameters())


def test_only_masked_words_are_filled_and_by_the_model(small_pretrained, batch, word_tokenizer):
    """Prevents a generator that changes words it was not asked for."""
    model = load_masked_lm(small_pretrained)
    ids, seen = batch["input_ids"], batch["attention_mask"]
    fish = word_tokenizer.convert_tokens_to_ids("fish")
    masked, expected = ids.clone(), ids.clone()
    masked[0, 2] = masked[2, 4] = word_tokenizer.mask_token_id
    expected[0, 2] = expected[2, 4] = fish
    with torch.no_grad():
        model.cls.predictions.decoder.bias[fish] = 100.0
    assert torch.equal(fill_masks(model, ids, seen, masked), expected)
    assert torch.equal(fill_masks(model, ids, seen, ids), ids)


def test_a_checkpoint_without_a_head_is_refused(small_backbone):
    """Prevents a generator that fills in words from chance."""
    with pytest.raises(ModelError, match="has no masked-LM head"):
        build("diffcse", [small_backbone])


def test_diffcse_asks_the_vector_about_every_word_but_cls(small_pretrained, batch):
    """Prevents a detector that can do without the vector, one that trains its generator, and
    padding that is counted."""
    method = build("diffcse", [small_pretrained], terms=["rtd"]).train()
    outputs = method(batch)
    words = batch["attention_mask"][: len(SENTENCES)].sum(1) - 1
    assert outputs.extra[0, :, 1].tolist() == words.tolist()
    method.compare(outputs, HEADS)["rtd"].backward()
    assert reached(method.encoder)
    assert all(p.grad is None for p in method.generator.parameters())


def test_infocse_reaches_the_encoder_through_cls_alone(small_pretrained, batch):
    """Prevents a reconstruction that trains the lower layers directly, and extra layers that are
    the backbone's own."""
    method = build("infocse", [small_pretrained], terms=["reconstruction"]).train()
    texts = method.texts(batch)
    vectors = method.encoder(**texts)
    constant = method.reconstructed(texts, vectors.detach())
    constant[..., 0].sum().backward()
    assert not reached(method.encoder)
    assert reached(method.extra)
    through = method.reconstructed(texts, vectors)
    through[..., 0].sum().backward()
    assert reached(method.encoder)
    assert (through[0, :, 1] >= 1).all()  # each sentence has a masked word
