"""The attention inspector, and bertviz's page of the same."""

import json

import pytest
import torch

from cselab.analysis import read_lengths, trace
from cselab.widgets import AttentionInspector, bertviz_page
from cselab.widgets.attention import CROSS_LENGTHS, LENGTHS
from cselab.widgets.bertviz_page import show_bertviz

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


@pytest.fixture
def inspector(encoders):
    return AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)])


def maps(inspector):
    """The attention maps that are drawn."""
    return [torch.tensor(part.z) for part in inspector.static().data if part.type == "heatmap"]


def ids(encoder, text):
    return encoder.tokenizer([text], return_tensors="pt", return_token_type_ids=False)["input_ids"]


def test_the_maps_are_the_models_own(encoders, inspector):
    """Prevents a map of another layer, head or model: layers and heads count from 1, head 0 is
    their mean."""
    inspector.controls["model_b"].value = "twin, tower II"
    inspector.controls["layer"].value = 3
    expected = [
        trace(tower, ids(encoders["one"], SENTENCE)).attention[2, 0]
        for tower in (encoders["one"].backbone, encoders["twin"].tower_ii)
    ]
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs.mean(0))
    inspector.controls["head"].value = 2
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs[1])


def test_a_second_sentence_is_read_by_model_b_alone(inspector):
    """Prevents a second sentence that replaces the first in both maps."""
    before = maps(inspector)
    inspector.pick.value = (SENTENCE, OTHER)
    after = maps(inspector)
    torch.testing.assert_close(after[0], before[0])
    assert after[1].shape != before[1].shape


def test_the_other_towers_values_are_read_at_cross_attention_layers_only(encoders, inspector):
    """Prevents a picture of cross-attention where there is none: weights are tower I's, values
    tower II's, at a CAEL."""
    twin = encoders["twin"]
    one, two = (trace(tower, ids(twin, SENTENCE)) for tower in twin.backbones)
    inspector.controls["model_a"].value = "twin, tower I"
    inspector.controls["show"].value = CROSS_LENGTHS
    for layer, values in ((2, two.values), (3, one.values)):
        inspector.controls["layer"].value = layer
        torch.testing.assert_close(
            maps(inspector)[0], read_lengths(one.attention, values)[layer - 1, 0].mean(0)
        )
        said = "no cross-attention in this layer (CAELs: 2, 4)" in inspector.static().to_json()
        assert said == (layer == 3)
    inspector.controls["show"].value = LENGTHS
    torch.testing.assert_close(
        maps(inspector)[0], read_lengths(one.attention, one.values)[2, 0].mean(0)
    )


def test_shares_are_of_one(inspector):
    """Bars of received attention over all tokens, and the four classes at each layer, sum to 1 in
    each model."""
    figure = inspector.static()
    for axis in {bar.xaxis for bar in figure.data if bar.type == "bar"}:
        assert sum(
            sum(bar.y) for bar in figure.data if bar.type == "bar" and bar.xaxis == axis
        ) == pytest.approx(1, abs=1e-5)
    lines = [part for part in figure.data if part.type == "scatter" and "energy" not in part.name]
    for side in (lines[:4], lines[4:]):
        torch.testing.assert_close(torch.tensor([line.y for line in side]).sum(0), torch.ones(4))


def test_what_a_user_types_is_shown_letter_by_letter(inspector):
    """Prevents a link or a tag of the user's from becoming one in the figure, where plotly reads
    HTML."""
    inspector.controls["sentence"].value = "<b>a</b> dog"
    labels = [text for axis in inspector.static().select_xaxes() for text in axis.ticktext or ()]
    assert not any("<" in text for text in labels)


def test_a_long_sentence_is_cut(inspector):
    """Prevents a map of thousands of cells that freezes the page."""
    inspector.controls["sentence"].value = "a dog " * 200
    assert max(len(part) for part in maps(inspector)) <= 48


def test_without_a_network_our_own_figure_is_shown_with_the_reason(inspector, monkeypatch, capsys):
    """Prevents an empty cell in a page that opens offline."""
    monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
    show_bertviz(inspector)
    assert "bertviz needs scripts from the network" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["head", "model"])
def test_bertviz_gets_the_same_attention_and_cannot_be_ended_by_a_token(
    inspector, monkeypatch, kind
):
    """Prevents bertviz from showing other numbers, and a sentence with </script> from ending
    bertviz's own."""
    shown = []
    monkeypatch.delenv("CSELAB_RUN_DIR", raising=False)
    monkeypatch.setattr(bertviz_page, "_online", lambda: True)
    monkeypatch.setattr(bertviz_page, "display", shown.append)
    reading = inspector.read("one", SENTENCE)
    reading.tokens[1] = "</script>"  # as a byte-level tokenizer may have it
    show_bertviz(inspector, kind)
    (page,) = shown
    assert page.data.count("</script>") == 2  # require.js and the page's own
    first = json.dumps(reading.trace.attention[0, 0].tolist())
    assert first in page.data
