"""LayerNorm removal: exactly the LayerNorms meant, and a saved model comes back as it was."""

import pytest
import torch
from torch import nn
from transformers import AutoModel

from cselab.models import SentenceEncoder, TwinEncoder, load_backbone, remove_layer_norms


@pytest.fixture
def batch(word_tokenizer):
    texts = ["a man is playing guitar .", "the dog"]
    return dict(
        word_tokenizer(texts, padding=True, return_tensors="pt", return_token_type_ids=False)
    )


@pytest.mark.parametrize("last", [0, 1, 3, 4])
def test_both_layer_norms_of_the_last_layers_go_and_no_other(make_tower, last):
    """Prevents the embeddings' LayerNorm, or one of a layer's two, from being missed or taken."""
    model = make_tower()
    remove_layer_norms(model, last)
    for j, layer in enumerate(model.encoder.layer, 1):
        kind = nn.Identity if j > 4 - last else nn.LayerNorm
        assert type(layer.attention.output.LayerNorm) is kind
        assert type(layer.output.LayerNorm) is kind
    assert type(model.embeddings.LayerNorm) is nn.LayerNorm


def test_removal_survives_saving_where_plain_loading_undoes_it(
    make_tower, word_tokenizer, batch, tmp_path
):
    """transformers re-creates them with only a load report: h^L would silently have a fixed norm
    again."""
    encoder = SentenceEncoder(make_tower(), word_tokenizer)
    intact = encoder.encode(["the dog"])
    remove_layer_norms(encoder.backbone, 2)
    cut = encoder.encode(["the dog"])
    assert not torch.allclose(cut, intact)
    encoder.save_pretrained(tmp_path / "cut")
    assert torch.equal(SentenceEncoder.from_pretrained(tmp_path / "cut").encode(["the dog"]), cut)
    assert load_backbone(tmp_path / "cut").config.layer_norms_removed == 2
    plain = AutoModel.from_pretrained(tmp_path / "cut").eval()  # the trap, and that it is still one
    ours = load_backbone(tmp_path / "cut")
    with torch.no_grad():
        assert not torch.allclose(plain(**batch).last_hidden_state, ours(**batch).last_hidden_state)


def test_a_twin_without_layer_norms_keeps_its_cross_stream(
    make_tower, word_tokenizer, batch, tmp_path
):
    """Prevents a cross stream with LayerNorms that its towers no longer have."""
    twin = TwinEncoder(make_tower(1), make_tower(2), cael=(2, 4), tokenizer=word_tokenizer).eval()
    for tower in twin.backbones:
        remove_layer_norms(tower, 3)
    twin.save_pretrained(tmp_path / "twin")
    again = TwinEncoder.from_pretrained(tmp_path / "twin")
    with torch.no_grad():
        for a, b in zip(twin(**batch), again.eval()(**batch), strict=True):
            assert torch.equal(a, b)
