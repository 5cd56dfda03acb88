"""The reset of a sentence encoder: its vocabulary, its pooler, and what is trained."""

import pytest
import torch
from transformers import BertForMaskedLM, BertForPreTraining

import cselab
from cselab.data import load_sts
from cselab.data.corpus import load_corpus
from cselab.data.hub import model_folder
from cselab.errors import ModelError
from cselab.models import load_backbone, load_tokenizer
from cselab.study.pretraining import reset
from cselab.study.pretraining.reset import ResetConfig, cut_vocabulary, reset_encoder

TEXT = ["The dog sleeps on the mat.", "A quick brown fox jumps.", "Prices fell by 3 per cent."] * 30


@pytest.fixture
def start():
    folder = model_folder("tiny-bert")
    return BertForPreTraining.from_pretrained(folder, dtype=torch.float32), load_tokenizer(folder)


def test_a_cut_vocabulary_reads_kept_words_alike_and_no_letter_is_lost(start):
    """Prevents ids that point to another word's vector, and text that becomes [UNK]."""
    model, tokenizer = start
    before = tokenizer(TEXT[:3], padding=True, return_tensors="pt")
    with torch.no_grad():
        states = model.bert.eval()(**before).last_hidden_state
    smaller = cut_vocabulary(model, tokenizer, [TEXT, TEXT[:3]], 300)
    assert len(smaller) == model.config.vocab_size == 300
    after = smaller(TEXT[:3], padding=True, return_tensors="pt")
    with torch.no_grad():
        torch.testing.assert_close(model.bert(**after).last_hidden_state, states)
    pieces = smaller.tokenize("zyx Quizzical jukebox 1789 (!)")
    assert smaller.unk_token not in pieces
    assert "".join(piece.removeprefix("##") for piece in pieces) == "zyxquizzicaljukebox1789(!)"


def test_a_reset_keeps_the_pooler_and_a_head_and_changes_the_rest(monkeypatch, tmp_path):
    """Prevents a pooler that is lost (ICTM reads it), a head that another model cannot load, and a
    training that does not reach the encoder."""
    corpus = tmp_path / "text.txt"
    corpus.write_text("\n".join(TEXT))
    pairs = load_sts("Synthetic", "dev").subsample(20)
    monkeypatch.setattr(reset, "load_corpus", lambda *_, **__: load_corpus([str(corpus)]))
    monkeypatch.setattr(reset, "load_sts", lambda *_, **__: pairs)
    config = ResetConfig(steps=2, batch_size=4, evaluations=1, vocab_size=400)
    card = reset_encoder("tiny-bert", tmp_path / "new", None, config)
    assert [row["step"] for row in card["curve"]] == [2]
    new, old = load_backbone(tmp_path / "new"), load_backbone(model_folder("tiny-bert"))
    assert torch.equal(new.pooler.dense.weight, old.pooler.dense.weight.half().float())
    changed = new.encoder.layer[0].output.dense.weight - old.encoder.layer[0].output.dense.weight
    assert changed.abs().max() > 1e-5
    assert BertForMaskedLM.from_pretrained(tmp_path / "new").cls.predictions.bias.shape == (400,)
    assert cselab.load(tmp_path / "new").encode(["The dog."]).isfinite().all()
    with pytest.raises(ModelError, match="exists and is no saved encoder, so it is not replaced"):
        reset_encoder("tiny-bert", tmp_path / "new", None, config)
