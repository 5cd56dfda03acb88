"""Layers taken apart: equal to the stock models, in values and in gradients."""

import pytest
import torch
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from cselab.models import SentenceEncoder

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
