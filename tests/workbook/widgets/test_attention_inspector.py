"""The attention inspector, and bertviz's page of the same."""

import base64
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cselab.analysis import read_lengths, trace
from cselab.errors import ModelError, SettingsError
from cselab.models import SentenceEncoder
from cselab.workbook.analysis import token_labels
from cselab.workbook.widgets import AttentionInspector, bertviz_page
from cselab.workbook.widgets.bertviz_page import show_bertviz
from cselab.workbook.widgets.reading import LONGEST

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


@pytest.fixture
def inspector(encoders):
    return AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)])


def maps(inspector):
    """The attention maps of the static figure."""
    return [torch.tensor(part.z) for part in inspector.static().data if part.type == "heatmap"]


def ids(encoder, text):
    return encoder.tokenizer([text], return_tensors="pt", return_token_type_ids=False)["input_ids"]


def unpacked(reading, name, *shape):
    values = np.frombuffer(base64.b64decode(reading[name]), dtype=np.float16)
    return torch.from_numpy(values.astype(np.float32)).view(*shape)


def test_the_maps_are_the_models_own(encoders, inspector):
    """Prevents a map of another layer, head or model: layers and heads count from 1, head 0 is
    their mean."""
    inspector.model_b = "twin, tower II"
    inspector.layer = 3
    expected = [
        trace(tower, ids(encoders["one"], SENTENCE)).attention[2, 0]
        for tower in (encoders["one"].backbone, encoders["twin"].tower_ii)
    ]
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs.mean(0))
    inspector.head = 2
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs[1])


def test_the_browser_gets_the_same_numbers(encoders, inspector):
    """Prevents layers, heads, queries and keys that change places on the way to the browser, and a
    tower's own values in place of the other one's."""
    twin = encoders["twin"]
    reading = inspector.read("twin, tower I", SENTENCE).packed()
    one, two = (trace(tower, ids(twin, SENTENCE)) for tower in twin.backbones)
    n, _, h, length, _ = one.attention.shape
    close = {"atol": 1e-3, "rtol": 1e-3}
    packed = unpacked(reading, "attention", n, h, length, length)
    torch.testing.assert_close(packed, one.attention[:, 0], **close)
    for name, values in (("values", one.values), ("others", two.values)):
        lengths = values[:, 0].norm(dim=-1)
        torch.testing.assert_close(unpacked(reading, name, n, h, length), lengths, **close)
    states = one.states[1:, 0].norm(dim=-1)
    torch.testing.assert_close(unpacked(reading, "states", n, length), states, **close)
    context = one.context[:, 0].norm(dim=-1)
    torch.testing.assert_close(unpacked(reading, "context", n, length), context, **close)


def test_a_second_sentence_is_read_by_model_b_alone(inspector):
    """Prevents a second sentence that replaces the first in both maps."""
    before = maps(inspector)
    inspector.second, inspector.shown_sentence = OTHER, "both"
    after = maps(inspector)
    torch.testing.assert_close(after[0], before[0])
    assert after[1].shape != before[1].shape


def test_the_other_towers_values_are_read_at_cross_attention_layers_only(encoders, inspector):
    """Prevents a picture of cross-attention where there is none: weights are tower I's, values
    tower II's, at a CAEL."""
    twin = encoders["twin"]
    one, two = (trace(tower, ids(twin, SENTENCE)) for tower in twin.backbones)
    inspector.model_a, inspector.show = "twin, tower I", "other lengths"
    for layer, values in ((2, two.values), (3, one.values)):
        inspector.layer = layer
        torch.testing.assert_close(
            maps(inspector)[0], read_lengths(one.attention, values)[layer - 1, 0].mean(0)
        )
    inspector.show = "lengths"
    torch.testing.assert_close(
        maps(inspector)[0], read_lengths(one.attention, one.values)[2, 0].mean(0)
    )


def test_shares_are_of_one(inspector):
    """The four classes at each layer sum to 1 in each model."""
    figure = inspector.static()
    lines = [part for part in figure.data if part.type == "scatter" and part.name not in ("A", "B")]
    for side in (lines[:4], lines[4:]):
        torch.testing.assert_close(torch.tensor([line.y for line in side]).sum(0), torch.ones(4))


def test_what_a_user_types_is_shown_letter_by_letter(inspector):
    """Prevents a link or a tag of the user's from becoming one in the figure, where plotly reads
    HTML."""
    inspector.sentence = "<b>a</b> dog"
    labels = [text for axis in inspector.static().select_xaxes() for text in axis.ticktext or ()]
    assert not any("<" in text for text in labels)


def test_a_long_sentence_is_cut(inspector):
    """Prevents a map of thousands of cells that freezes the page."""
    inspector.sentence = "a dog " * 200
    assert max(len(part) for part in maps(inspector)) == LONGEST


def test_the_kernel_answers_with_what_the_browser_asks_for(inspector, monkeypatch):
    """Prevents a browser that waits for a sentence for ever, or gets another one's."""
    sent = []
    monkeypatch.setattr(inspector, "send", sent.append)
    inspector._handle_custom_msg({"ask": ["read", "twin, tower II", OTHER]}, [])
    inspector._handle_custom_msg({"ask": ["compare", "one", SENTENCE, OTHER]}, [])
    inspector._handle_custom_msg({"ask": ["read", "nobody", OTHER]}, [])
    read, compared, failed = sent
    assert failed == {"failed": {"ask": ["read", "nobody", OTHER]}, "error": "KeyError: 'nobody'"}
    assert read["key"] == ["read", "twin, tower II", OTHER]
    assert read["found"] == inspector.read("twin, tower II", OTHER).packed()
    one = inspector.encoders["one"]
    cosine = torch.cosine_similarity(*one.encode([SENTENCE, OTHER]), dim=0)
    assert compared["found"]["cosine"] == pytest.approx(cosine.item(), abs=1e-5)


def test_a_page_has_what_each_of_its_pairs_needs_and_no_more_than_fits(
    encoders, inspector, monkeypatch
):
    """Prevents a page without a kernel that offers a pair it cannot draw, and one of many
    megabytes."""
    state = inspector.page_state()
    json.dumps(state)
    known = {tuple(one["key"]) for one in state["readings"]}
    for pair in state["pairs"]:
        assert {("read", name, text) for name in inspector.streams for text in pair} <= known
        assert {("compare", name, *pair) for name in encoders} <= known
    monkeypatch.setattr("cselab.workbook.widgets.attention.PAGE_BYTES", 1)
    state = inspector.page_state()
    assert state["pairs"] == []
    assert {one["key"][2] for one in state["readings"]} == {SENTENCE}


@pytest.mark.parametrize(("first", "second"), [("", ""), ("a cat", " a dog "), ("a cat", "a cat")])
def test_a_page_has_its_own_sentence_as_the_browser_asks_for_it(encoders, first, second):
    """Prevents a page that waits for a sentence with a space too many, or for an empty one."""
    inspector = AttentionInspector(encoders, first)
    inspector.second = second
    keys = [tuple(one["key"]) for one in inspector.page_state()["readings"]]
    assert len(keys) == len(set(keys))
    for text in (first.strip(), second.strip() or first.strip()):
        assert {("read", name, text) for name in inspector.streams} <= set(keys)


def test_models_of_different_shape_are_refused_by_name(encoders, make_bert, word_tokenizer):
    """Prevents the numbers of one model under the layers of another."""
    small = SentenceEncoder(make_bert(1, num_hidden_layers=2), word_tokenizer)
    with pytest.raises(ModelError, match="'small' 2 × .*; give models of one shape"):
        AttentionInspector({**encoders, "small": small}, SENTENCE)


def test_tokens_of_a_byte_level_tokenizer_are_readable(make_bert):
    """Prevents "Ġguitar" and the bytes of "é" in a RoBERTa's maps."""
    bytes_of = pre_tokenizers.ByteLevel.alphabet()
    vocabulary = ["<s>", "</s>", "<pad>", "<unk>", "Ġguitar", *sorted(bytes_of)]
    backend = Tokenizer(models.BPE({t: n for n, t in enumerate(vocabulary)}, [], unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, cls_token="<s>", sep_token="</s>", pad_token="<pad>"
    )
    ids = tokenizer("é 🎸")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids[:3]) == ["Ã", "©", "Ġ"]
    assert token_labels(tokenizer, [0, 4, *ids]) == ["<s>", "guitar", "é", "é", "␣", *"🎸🎸🎸🎸"]
    assert token_labels(tokenizer, ids[:1]) == ["�"]  # the sentence was cut inside a character


def test_a_model_that_is_not_there_is_refused_with_the_nearest(inspector):
    with pytest.raises(SettingsError, match="unknown model 'twin, tower III'.*'twin, tower II'"):
        inspector.model_a = "twin, tower III"


def test_without_a_network_bertviz_gives_its_reason_alone(inspector, monkeypatch, capsys):
    """Prevents an empty cell in a page that opens offline, and the inspector's figure once more."""
    shown = []
    monkeypatch.setattr(bertviz_page, "display", shown.append)
    monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
    show_bertviz(inspector)
    assert "bertviz loads its scripts from the network" in capsys.readouterr().out
    assert shown == []


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
