"""Attention maps against transformers' own, energy and sink against loops over tokens."""

import pytest
import torch

from cselab.analysis import (
    CLASSES,
    attention_sink,
    cls_energy,
    received_attention,
    token_classes,
    trace,
)
from cselab.models import load_backbone
from cselab.models.layers import context, embed_tokens

TEXT = ["a man is playing guitar .", "the dog", "is a cat sleeping in the house ?"]
TEXT.append("the ball was red ,")


@pytest.fixture(params=["bert", "roberta"])
def tower(request, make_bert, make_roberta):
    return (make_bert if request.param == "bert" else make_roberta)(1).eval()


@pytest.fixture
def batch(word_tokenizer):
    return dict(
        word_tokenizer(TEXT, padding=True, return_tensors="pt", return_token_type_ids=False)
    )


def test_the_maps_are_those_of_eager_attention(tower, batch, tmp_path):
    """Prevents a scale, a mask or a head order that differs from the model's: every layer's map,
    and the states beside it."""
    tower.save_pretrained(tmp_path / "tower")
    eager = load_backbone(tmp_path / "tower", attn_implementation="eager")
    with torch.no_grad():
        out = eager(**batch, output_attentions=True, output_hidden_states=True)
    found = trace(tower, **batch)
    assert len(found.attention) == len(out.attentions) == tower.config.num_hidden_layers
    real = batch["attention_mask"].bool()
    for mine, theirs in zip(found.attention, out.attentions, strict=True):
        queries = real[:, None, :, None].expand_as(mine)
        torch.testing.assert_close(mine[queries], theirs[queries], atol=1e-5, rtol=1e-4)
    for mine, theirs in zip(found.states, out.hidden_states, strict=True):
        torch.testing.assert_close(mine[real], theirs[real], atol=1e-5, rtol=1e-4)


def test_the_context_is_the_towers_own(tower, batch):
    """The tensor of Eq. 6 is what a cross-attention layer calls CT."""
    found = trace(tower, **batch)
    _, mask = embed_tokens(tower, **batch)
    layer = tower.encoder.layer[1]
    with torch.no_grad():
        expected = context(layer, layer, found.states[1].clone(), found.states[1].clone(), mask)
    real = batch["attention_mask"].bool()
    torch.testing.assert_close(found.context[1][real], expected[real], atol=1e-5, rtol=1e-4)


def test_energy_by_hand(tower, word_tokenizer):
    """Prevents padding or [CLS] itself in H, a mean before the ratio, and batches that change the
    result."""
    expected = []
    for sentence in TEXT:
        ids = word_tokenizer(sentence, return_tensors="pt")["input_ids"]
        rows = trace(tower, ids).context[:, 0]
        expected.append(torch.stack([layer[0].norm() / layer[1:].norm() for layer in rows]))
    torch.testing.assert_close(
        cls_energy(tower, word_tokenizer, TEXT), torch.stack(expected).mean(0), atol=1e-5, rtol=1e-4
    )


def test_a_long_sentence_is_cut_where_the_tower_ends(tower, word_tokenizer, monkeypatch):
    """Prevents an error after a training, at a tokenizer whose folder names no length."""
    monkeypatch.setattr(word_tokenizer, "model_max_length", int(1e30))
    long = [" ".join(["dog"] * 500)]
    assert cls_energy(tower, word_tokenizer, long).isfinite().all()
    assert attention_sink(tower, word_tokenizer, long).isfinite().all()


def test_energy_falls_with_length(tower, word_tokenizer):
    """Why models are compared on the same sentences."""
    short, long = (cls_energy(tower, word_tokenizer, [" ".join(["dog"] * n)]) for n in (2, 20))
    assert (short > long).all()


def test_the_sink_by_hand(tower, word_tokenizer):
    """Against a loop over tokens; prevents classes that are averaged over padding."""
    expected = torch.zeros(tower.config.num_hidden_layers, len(CLASSES))
    for sentence in TEXT:
        tokens = word_tokenizer(sentence, return_tensors="pt")
        maps = trace(tower, tokens["input_ids"]).attention[:, 0]  # n h q k
        words = word_tokenizer.convert_ids_to_tokens(tokens["input_ids"][0])
        for k, word in enumerate(words):
            last = len(words) - 1 - k
            final = last == 1 and word in ".,?"
            kind = 0 if k == 0 else 1 if last == 0 else 2 if final else 3
            expected[:, kind] += maps[..., k].mean((1, 2)) / len(TEXT)
    found = attention_sink(tower, word_tokenizer, TEXT)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(found.sum(1), torch.ones(len(found)))


def test_received_attention_sums_to_one_over_tokens(tower, batch):
    """Prevents a mean over padded queries."""
    received = received_attention(trace(tower, **batch).attention, batch["attention_mask"])
    torch.testing.assert_close(received.sum(-1), torch.ones_like(received[..., 0]))
    assert (received[:, batch["attention_mask"] == 0] < 1e-6).all()


def test_classes_of_tokens(word_tokenizer):
    """Prevents a comma inside the sentence, or a last word, from being called final punctuation."""

    assert CLASSES == ("[CLS]", "[SEP]", "final punctuation", "other tokens")
    for sentence, expected in (("the dog , is .", "0333321"), ("the dog", "0331"), (".", "021")):
        tokens = word_tokenizer(sentence, padding="max_length", max_length=9, return_tensors="pt")
        found = token_classes(word_tokenizer, tokens["input_ids"][0], tokens["attention_mask"][0])
        assert found.tolist() == [*map(int, expected), *[-1] * (9 - len(expected))]
