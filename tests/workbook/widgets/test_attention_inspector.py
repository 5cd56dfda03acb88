"""The attention inspector, and bertviz's page of the same."""

import base64
import json

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from cselab.analysis import trace
from cselab.errors import ModelError
from cselab.models import SentenceEncoder
from cselab.workbook.analysis import token_labels
from cselab.workbook.widgets import AttentionInspector, bertviz_page
from cselab.workbook.widgets.attention import LONGEST
from cselab.workbook.widgets.bertviz_page import show_bertviz

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


@pytest.fixture
def inspector(encoders):
    return AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)])


def ids(encoder, text):
    return encoder.tokenizer([text], return_tensors="pt", return_token_type_ids=False)["input_ids"]


def unpacked(reading, name, *shape):
    values = np.frombuffer(base64.b64decode(reading[name]), dtype=np.float16)
    return torch.from_numpy(values.astype(np.float32)).view(*shape)


def cells(run_js, reading, *chosen):
    """The browser's map of a layer, a head, a quantity and cross-attention layers."""
    script = "const result = [...select(unpack(given[0]), ...given[1])];"
    flat = torch.tensor(run_js("reading", script, [reading.packed(), chosen]))
    return flat.view(len(reading.tokens), -1)


def test_the_maps_are_the_models_own(encoders, inspector, run_js):
    """Prevents a map of another layer, head or model (both count from 1, head 0 is the mean), and
    cross-attention where there is none: at a CAEL tower I's weights read tower II's values."""
    twin, reading = encoders["twin"], inspector.read("twin, tower I", SENTENCE)
    one, two = (trace(tower, ids(twin, SENTENCE)) for tower in twin.backbones)
    own, other = (one.attention * x.values.norm(dim=-1)[..., None, :] for x in (one, two))
    for layer, head, show, expected in (
        (3, 0, "weights", one.attention[2, 0].mean(0)),
        (3, 2, "weights", one.attention[2, 0, 1]),
        (3, 0, "lengths", own[2, 0].mean(0)),
        (2, 0, "other lengths", other[1, 0].mean(0)),
        (3, 0, "other lengths", own[2, 0].mean(0)),
    ):
        drawn = cells(run_js, reading, layer, head, show, [2, 4])
        torch.testing.assert_close(drawn, expected, atol=2e-3, rtol=2e-3)


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


def test_the_plain_figure_has_the_weights_of_the_chosen_layer_and_head(encoders, inspector):
    """Prevents a saved notebook with the weights of another head, a user's tag that plotly reads as
    HTML, and a long sentence of thousands of cells."""
    inspector.sentence, inspector.layer, inspector.head = "<b>a</b> dog " * 99, 3, 2
    first, last = inspector.static().data
    assert len(first.z) == len(last.z) == LONGEST
    assert not any("<" in label for label in first.x)
    inspector.sentence = SENTENCE
    tower = encoders["twin"].tower_ii
    expected = trace(tower, ids(encoders["twin"], SENTENCE)).attention[2, 0, 1]
    torch.testing.assert_close(torch.tensor(inspector.static().data[1].z), expected)


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


@pytest.mark.parametrize("kind", ["head", "model"])
def test_bertviz_draws_the_attention_of_the_layer_without_a_network(
    inspector, browser, tmp_path, monkeypatch, kind
):
    """Prevents an empty cell offline, another layer than the inspector's, other numbers, and a
    sentence with </script> that ends bertviz's own."""
    shown, said = [], []
    monkeypatch.setattr(bertviz_page, "display", shown.append)
    inspector.layer = 2
    reading = inspector.read("one", SENTENCE)
    reading.tokens[1] = "</script>"  # as a byte-level tokenizer may have it
    show_bertviz(inspector, kind)
    (view,) = shown
    expected = reading.trace.attention[1].double().round(decimals=4)
    assert f'"attn": [{json.dumps(expected[0].tolist())}]' in view.data
    (tmp_path / "page.html").write_text(f"<meta charset=utf-8>{view.data}")
    page = browser.new_page()
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("svg line", state="attached")
    text = page.locator("[id^=bertviz]").inner_text()
    page.close()
    assert ("guitar" if kind == "head" else "Heads") in text
    assert said == [(tmp_path / "page.html").as_uri()]
