"""The explorers of norms and of cross-attention layers."""

import copy

import pytest
import torch

from cselab.analysis import vector_norms
from cselab.evaluation import twin_training_cost
from cselab.models import remove_layer_norms
from cselab.widgets import CaelExplorer, NormExplorer

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


def test_norms_after_surgery_on_a_copy(encoders):
    """Prevents the slider from operating on the reader's own model, and a norm of another r than
    the slider says."""
    sentences = [SENTENCE, OTHER, "a cat", "the big red ball ."]
    explorer = NormExplorer(encoders, sentences)
    untouched = copy.deepcopy(encoders["one"].backbone.state_dict())
    for removed in (0, 2, 4):
        explorer.controls["removed"].value = removed
        tower = copy.deepcopy(encoders["one"].backbone)
        remove_layer_norms(tower, removed)
        expected = vector_norms(tower, encoders["one"].tokenizer, sentences)
        drawn = [
            violin
            for violin in explorer.static().data
            if violin.type == "violin" and "one" in violin.name
        ]
        for violin, lengths in zip(drawn, expected, strict=True):
            torch.testing.assert_close(torch.tensor(violin.y), lengths)
    assert encoders["one"].backbone.state_dict().keys() == untouched.keys()


def test_ticked_layers_are_drawn_and_costed(make_bert):
    """Prevents a picture, a cost or a score of another placement than the ticks'."""
    config = make_bert(0).config
    explorer = CaelExplorer(config, {((2, 4), "parallel"): 70.0, ((4,), "fused"): 60.0})
    assert "CAELs at 2, 4" in explorer.static().to_json()  # what scored best
    explorer.preset.value = (4,)
    explorer.controls["cross_stream"].value = "fused"
    figure = explorer.static()
    assert "CAELs at 4" in figure.to_json()
    bars, scores = figure.data
    assert bars.y[1] == pytest.approx(
        twin_training_cost(config, length=32)((4,), "fused").with_attention
    )
    assert list(scores.y) == [70.0, 60.0]
    assert scores.marker.size[1] > scores.marker.size[0]
    for n in range(1, 5):
        explorer.controls[f"layer_{n}"].value = False
    assert "CAELs at no layer" in explorer.static().to_json()
