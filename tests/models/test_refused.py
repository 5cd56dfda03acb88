"""Models, folders, texts and options that are refused, each in one line of words."""

from types import SimpleNamespace

import jaxtyping
import pytest
import torch
from transformers import LlamaConfig, LlamaModel, PreTrainedTokenizerFast, ViTConfig

import cselab
from cselab.errors import DataError, ModelError, SettingsError
from cselab.methods.baselines.fitted import Whitened
from cselab.models import (
    Ensemble,
    SentenceEncoder,
    TwinEncoder,
    cael_positions,
    export,
    load_backbone,
    load_decoder,
    load_tokenizer,
    pool,
    remove_layer_norms,
    with_pooling,
)
from cselab.models.prompts import fill_prompt

LLAMA = LlamaConfig(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=50
)


@pytest.fixture
def m(make_bert, make_roberta, word_tokenizer, tmp_path, monkeypatch):
    """Small models, and folders that are not as they should be."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)  # users have no type checker

    def single(tokenizer=word_tokenizer, *, prompt="", pooling="cls", **config):
        return SentenceEncoder(make_bert(1, **config), tokenizer, pooling=pooling, prompt=prompt)

    def twin(**options):
        return TwinEncoder(make_bert(1), make_bert(2), tokenizer=word_tokenizer, **options)

    def folder(name=None, text=None):
        """A saved encoder with another text in a file."""
        single().save_pretrained(path := tmp_path / "encoder")
        if name:
            (path / name).write_text(text)
        return path

    def of(what):
        """A folder with something else."""
        what.save_pretrained(tmp_path / "other")
        return tmp_path / "other"

    bare = make_bert(1)
    bare.pooler = None
    return SimpleNamespace(
        empty=tmp_path / "empty",
        bert=make_bert,
        roberta=make_roberta,
        words=word_tokenizer,
        bare=bare,
        **{"single": single, "twin": twin, "folder": folder, "of": of},
    )


def no_words():
    from tokenizers import Tokenizer, models

    empty = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(tokenizer_object=empty, unk_token="[UNK]")


class WordVectors(torch.nn.Module):
    backbones = ()

    def encode(self, sentences):
        return torch.zeros(len(sentences), 8)


STATES, MASK = torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.long)
REFUSED = [
    # backbones and tokenizers
    (lambda m: load_backbone(m.folder(), pooler="requird"), "did you mean 'required'"),
    (lambda m: load_backbone(m.folder(), dropout=1.5), "no probability below 1"),
    (lambda m: load_decoder(m.folder()), "a 'bert' model; expected a Llama-like decoder"),
    (lambda m: cselab.load(m.of(ViTConfig())), "a 'vit' model; expected an encoder"),
    (lambda m: load_tokenizer(m.of(no_words())), r"maps every common English word to \[UNK\]"),
    # poolings
    (lambda m: m.single(pooling="pool"), "unknown pooling 'pool'"),
    (lambda m: m.single(pooling="mask"), "reads the tokenizer's mask token"),
    (lambda m: pool([STATES], MASK, "maen"), "did you mean 'mean'"),
    (lambda m: pool(STATES, MASK, "last_two"), "needs the states of all layers"),
    (lambda m: SentenceEncoder(m.bare, m.words, pooling="pooler"), "pooler, and it has none"),
    (lambda m: with_pooling(TwinEncoder(m.bare, m.bare), "pooler"), "pooler, and it has none"),
    (lambda m: with_pooling(m.twin(cael=(2,), cross_stream="fused"), "mean"), "fused twin"),
    (lambda m: with_pooling(WordVectors(), "mean"), "a WordVectors has no token states"),
    (lambda m: cselab.load("tiny-llama", pooling="cls"), "'cls' of a decoder"),
    (lambda m: cselab.load(m.folder(), pooling="avg"), "unknown pooling 'avg'"),
    # folders and exports
    (lambda m: SentenceEncoder.from_pretrained(m.empty), "no cselab.json in"),
    (lambda m: cselab.load(m.folder("cselab.json", "{")), "is damaged .*JSONDecodeError"),
    (lambda m: cselab.load(m.folder("cselab.json", '{"kind": "sentence"}')), "'pooling'"),
    (lambda m: cselab.load(m.folder("cselab.json", '{"kind": "triplet"}')), "holds a triplet"),
    (lambda m: SentenceEncoder.from_pretrained(m.of(m.twin())), "holds a twin"),
    (lambda m: export(m.single(pooling="first_last"), m.empty), "'first_last' is no stock module"),
    (lambda m: export(m.single(None), m.empty), "needs its tokenizer"),
    (lambda m: export(m.single(prompt="a {sentence}"), m.empty), "prompt .* no stock module"),
    (lambda m: export(Ensemble([m.single()] * 2), m.empty), "2 encoders.*use cselab.load on its"),
    # ensembles, twins, maps
    (lambda m: Ensemble([m.single()] * 3, [1.0]), "got 3 and 1"),
    (lambda m: Ensemble([]), "got 0 and 0"),
    (lambda m: Ensemble([m.single(), WordVectors()]), "got a WordVectors"),
    (lambda m: Ensemble.uc(m.twin(), m.single(), weight=1.5), "weight=1.5 is outside 0..1"),
    (lambda m: m.twin(cael=(5,)), "must be rising layer numbers from 1 to 4"),
    (lambda m: m.twin(cross_stream="paralel"), "did you mean 'parallel'"),
    (lambda m: TwinEncoder(m.bert(), m.bert(hidden_size=16)), "hidden_size: 32 and 16"),
    (lambda m: TwinEncoder(m.bert(), m.roberta()), "model_type: bert and roberta"),
    (
        lambda m: TwinEncoder(m.bert(), LlamaModel(LLAMA)),
        "tower II is a 'llama' model; a",
    ),
    (
        lambda m: TwinEncoder(m.bert(is_decoder=True), m.bert()),
        "tower I is a 'bert' decoder",
    ),
    (lambda m: cael_positions(12, 5), "does not divide 12 layers; use one of 1, 2, 3, 4, 6, 12"),
    (lambda m: remove_layer_norms(m.bert(), -1), "of the last -1 layers"),
    (lambda m: Whitened(WordVectors().encode, ["a"] * 8), "8 dimensions needs more .* got 8"),
    # texts and prompts
    (lambda m: m.single()(torch.full((2, 70), 7)), "70 tokens wide, .* at most 66; truncate it"),
    (lambda m: m.single().encode(["a dog"], max_length=2), "max_length=2 is filled by 2 special"),
    (lambda m: m.single(None).encode(["a dog"]), "built without a tokenizer"),
    (lambda m: m.single().encode(["a dog"], conditions=["a"]), "conditions need a prompt"),
    (lambda m: m.single(prompt="represent"), "none of .*write {sentence} where"),
    (lambda m: fill_prompt("conditional", ["a dog"], m.words, 64), "conditions do not fit"),
    (lambda m: fill_prompt("{sentence}", ["a"], m.words, 9, conditions=["a"]), "do not fit"),
    (lambda m: fill_prompt("the {sentence} is", ["dog"], m.words, 4), "no room for a sentence"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused_is_one_line(m, call, message):
    """Prevents a traceback, random weights that look trained, and numbers of another model."""
    with pytest.raises((ModelError, DataError, SettingsError), match=message) as caught:
        call(m)
    assert "\n" not in str(caught.value)
    assert not m.empty.exists()
