"""Layers taken apart: equal to the stock models, in values and in gradients; without LayerNorms,
exactly those meant, and as they were after saving."""

import pytest
import torch
from torch import nn
from transformers import AutoModel, BertConfig, BertModel, RobertaConfig, RobertaModel

from cselab.models import SentenceEncoder, load_backbone, remove_layer_norms

SHAPE = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


@pytest.fixture(params=["bert", "roberta"])
def tower(request):
    torch.manual_seed(0)
    if request.param == "bert":
        return BertModel(BertConfig(**SHAPE))
    return RobertaModel(RobertaConfig(**SHAPE, pad_token_id=1))


@pytest.fixture
def batch(tower):
    """Rows of different lengths."""
    lengths = torch.tensor([7, 4, 1, 6])
    mask = (torch.arange(7) < lengths[:, None]).long()
    ids = torch.randint(4, 50, mask.shape)
    return {
        "input_ids": ids.where(mask.bool(), tower.config.pad_token_id),
        "attention_mask": mask,
    }


@pytest.mark.parametrize("pooling", ["cls", "pooler"])
def test_cls_of_the_last_layer_is_the_stock_models(tower, batch, pooling):
    """Prevents a last layer whose [CLS] misses a token, a residual or a gradient, since nothing
    else of that layer is computed."""
    found = SentenceEncoder(tower, None, pooling=pooling).embed(batch)
    found.square().sum().backward()
    gradients = {name: p.grad.clone() for name, p in tower.named_parameters() if p.grad is not None}
    tower.zero_grad()
    output = tower(**batch)
    wanted = output.pooler_output if pooling == "pooler" else output.last_hidden_state[:, 0]
    torch.testing.assert_close(found, wanted)
    wanted.square().sum().backward()
    for name, p in tower.named_parameters():
        if p.grad is not None:
            torch.testing.assert_close(gradients[name], p.grad, rtol=1e-4, atol=1e-6)


@pytest.fixture
def words(word_tokenizer):
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
    make_tower, word_tokenizer, words, tmp_path
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
        assert not torch.allclose(plain(**words).last_hidden_state, ours(**words).last_hidden_state)
