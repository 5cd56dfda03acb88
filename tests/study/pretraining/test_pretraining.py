"""Pretraining of small backbones: what is learned from what, and runs that can be interrupted."""

import errno
import gzip
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, BertForPreTraining

from cselab.data.synthetic import sentences
from cselab.data.token_rows import Rows
from cselab.errors import DataError, ModelError, SettingsError
from cselab.methods.baselines.sif import sif_weights
from cselab.models import load_backbone, load_tokenizer
from cselab.seals import seal
from cselab.study.pretraining import recipe
from cselab.study.pretraining.architectures import BackboneConfig
from cselab.study.pretraining.backbones import BERT_OBJECTIVES, BackboneTrainer, pretrain
from cselab.study.pretraining.objectives import bag_of_words_loss, random_tokens
from cselab.study.pretraining.tokenizer import train_tokenizer

TEXT = list(sentences(900, 21))
SIZES = {"layers": 2, "width": 32, "heads": 2, "inner": 64}
SMALL = BackboneConfig(
    **SIZES,
    steps=8,
    batch_size=32,
    vocab_size=400,
    max_length=24,
    held_out=64,
    evaluations=4,
    pair_every=4,
)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(TEXT, vocab_size=400, max_length=64)


@pytest.fixture(scope="module")
def rows(tokenizer):
    return Rows.tokenize(TEXT, tokenizer, max_length=24)


def test_the_tokenizer_knows_its_text_after_saving(tokenizer, tmp_path):
    """Prevents transformers 5's silent tokenizer that maps every word to [UNK]."""
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    ids = loaded(TEXT[:50])["input_ids"]
    assert not any(loaded.unk_token_id in row for row in ids)
    assert ids == tokenizer(TEXT[:50])["input_ids"]
    assert loaded.decode(ids[0], skip_special_tokens=True) == TEXT[0].lower()
    assert len(loaded) == 400
    assert (loaded.cls_token_id, loaded.sep_token_id) == (ids[0][0], ids[0][-1])
    assert "[UNK]" not in loaded.tokenize("gtdb tgdb")  # a letter can start and continue a word


def test_the_same_text_gives_the_same_tokenizer(tokenizer):
    """Prevents a resumed run from training on with other token numbers: WordPieceTrainer's differ
    from run to run."""
    again = train_tokenizer(TEXT, vocab_size=400, max_length=64)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


def test_masks_take_the_share_asked_for_and_no_special_token(rows, tokenizer):
    """Prevents [CLS] or padding that is to be guessed, and a share of the padded length."""
    ids = rows.padded(np.arange(600), tokenizer.pad_token_id)
    special = tokenizer.all_special_ids
    torch.manual_seed(0)
    where = random_tokens(ids, special, 0.3)
    ordinary = ~torch.isin(ids, torch.tensor(special))
    assert not (where & ~ordinary).any()
    assert (where.sum() / ordinary.sum()).item() == pytest.approx(0.3, abs=0.02)


def test_the_bag_of_words_loss_equals_a_loop(rows, tokenizer):
    """Prevents padding or [CLS] from being named, and a mean over sentences that forgets how long
    they are."""
    weights = torch.tensor(sif_weights(rows, 400, tokenizer.all_special_ids))
    ids = rows.padded(np.array([0, 5, 9]), tokenizer.pad_token_id)
    logits = torch.randn(3, 400, dtype=torch.float64)
    top = bottom = 0.0
    for line, row in zip(logits.float(), ids, strict=True):
        for token in row.tolist():
            if token not in tokenizer.all_special_ids:
                top -= weights[token] * line.log_softmax(0)[token]
                bottom += weights[token]
    torch.testing.assert_close(
        bag_of_words_loss(logits, ids, weights), top / bottom, rtol=1e-5, atol=1e-6
    )
    frequent, rare = rows.flat[rows.starts[0] + 1], int((weights > 0).nonzero()[-1])
    assert 0 < weights[frequent] <= weights[rare] <= 1


@pytest.mark.parametrize(("changes", "with_bag"), [(BERT_OBJECTIVES, False), ({}, True)])
def test_berts_own_objectives_ask_nothing_of_cls_but_the_next_sentence(
    changes, with_bag, rows, tokenizer, tmp_path
):
    """Prevents a plain BERT whose [CLS] is still trained for the words of its sentence, or one
    without dropout in its first steps, on which SimCSE would have nothing to learn."""
    config = replace(SMALL, **changes)
    trainer = BackboneTrainer("bert", config, tokenizer, rows, tmp_path, rows)
    batches = {"pairs": trainer.pairs(0), "single": trainer.batch(range(32))}
    trained = {name: trained_by(trainer, batch) for name, batch in batches.items()}
    bag = {"bag of words"} if with_bag else set()
    assert trained == {
        "pairs": (True, {"masked LM of pairs", "next sentence"}),
        "single": (with_bag, {"masked LM"} | bag),
    }
    dropout = {m.p for m in trainer.model.modules() if isinstance(m, torch.nn.Dropout)}
    assert dropout == ({0.0} if with_bag else {config.dropout})


def trained_by(trainer, batch):
    """Whether a batch trains the first token's last state, and the names of its losses."""
    states = []

    def keep(_, __, output):
        output.last_hidden_state.retain_grad()
        states.append(output.last_hidden_state)

    hook = trainer.model.base_model.register_forward_hook(keep)
    losses = trainer.losses(batch)
    sum(losses.values()).backward()
    hook.remove()
    return bool(states[0].grad[:, 0].abs().sum() > 0), set(losses)


def test_the_card_names_the_objectives_that_were_used():
    """Prevents a plain backbone whose card says that [CLS] learned the words of its sentence."""
    curve = [{"step": 8, "held_out": 5.0}]
    report = {
        "sentences": 9,
        "tokens_seen": 9,
        "hours": 1,
        "hardware": "",
        "curve": curve,
        "measured": {},
    }
    bert, plain = (
        recipe.card_text(
            "x", "bert", {**report, "measured": {}, "config": vars(config)}, (), ("y",)
        )
        for config in (SMALL, replace(SMALL, **BERT_OBJECTIVES))
    )
    assert "words from [CLS]" in bert
    assert bert.count("| 8 | 5.00 |") == 1  # the last row of the curve, once
    assert "15% of the words of single sentences" in plain
    assert "dropout of 0.1 in every step. Only the next sentence trains [CLS]." in plain


def test_a_run_learns_and_its_folder_loads_like_any_bert(tmp_path):
    """Prevents a run that learns nothing, a pooler that is not trained, and a pickle among the
    files."""
    config = replace(SMALL, steps=150)
    report = pretrain("bert", config, TEXT, tmp_path / "bb", ordered=TEXT)
    losses = [row["held_out"] for row in report["curve"]]
    assert losses[-1] < losses[0] - 0.3
    assert {"masked LM", "bag of words", "next sentence"} <= report["curve"][-1].keys()
    assert 0 < report["tokens_seen"] < 150 * 32 * 24 * 2
    model = load_backbone(tmp_path / "bb", pooler="required")
    ids = load_tokenizer(tmp_path / "bb")(TEXT[:2], padding=True, return_tensors="pt")
    assert model(**ids).pooler_output.shape == (2, 32)
    assert {path.suffix for path in (tmp_path / "bb").iterdir()} == {".json", ".safetensors"}


KILLED = """
import os, signal, sys
from test_pretraining import BackboneTrainer, train_small

step = BackboneTrainer.training_step

def kill(self, *batch):
    if self.state.global_step == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return step(self, *batch)

BackboneTrainer.training_step = kill
train_small(sys.argv[1])
"""


def train_small(folder):
    """Train for eight steps, with a checkpoint after every second one."""
    return pretrain("bert", SMALL, TEXT, folder, ordered=TEXT)


def test_a_run_that_is_killed_and_then_meets_a_full_disk_ends_where_it_would_have(
    tmp_path, monkeypatch
):
    """Prevents a resumed run from seeing other batches, masks or dropout, one that is lost to a
    full disk at its end, and a card that has the hours since the last interruption alone."""
    whole, part = train_small(tmp_path / "whole"), tmp_path / "part"
    command = [sys.executable, "-c", KILLED, str(part)]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    killed = subprocess.run(command, capture_output=True, text=True, env=where, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not part.exists()
    save = BertForPreTraining.save_pretrained

    def full(self, folder, **options):
        if "checkpoint" not in str(folder):
            raise OSError(errno.ENOSPC, "no space left")
        save(self, folder, **options)

    with monkeypatch.context() as patch:
        patch.setattr(BertForPreTraining, "save_pretrained", full)
        with pytest.raises(ModelError, match="no space left"):
            train_small(part)
    checkpoint = tmp_path / "part.checkpoints" / "checkpoint-6"
    rows = json.loads((checkpoint / "history.json").read_text())
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert 0 < rows[-1]["seconds"] < 600
    rows[-1]["seconds"] += 2 * 3600
    (checkpoint / "history.json").write_text(json.dumps(rows))
    (checkpoint / "sha256.json").unlink()
    seal(checkpoint)
    resumed = train_small(part)
    assert 2 <= resumed["hours"] < 2.5
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "part"))
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)
    for report in (whole, resumed):  # all but the time
        report["hours"] = 0
        report["curve"] = [{**row, "seconds": 0} for row in report["curve"]]
    assert resumed == whole
    assert not (tmp_path / "part.checkpoints").exists()


def test_a_decoder_learns_and_loads(tmp_path):
    """Prevents a decoder that sees the token it is to predict: its loss would fall far below what
    these sentences allow."""
    config = replace(SMALL, steps=80, evaluations=20)
    report = pretrain("llama", config, TEXT, tmp_path / "decoder")
    losses = [row["held_out"] for row in report["curve"]]
    assert losses[-1] < losses[0] - 0.5
    assert losses[-1] > 1.5
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "decoder", dtype=torch.float32)
    ids = load_tokenizer(tmp_path / "decoder")(TEXT[0], return_tensors="pt")["input_ids"]
    changed = ids.clone()
    changed[0, -1] = 7
    with torch.no_grad():
        torch.testing.assert_close(model(ids).logits[:, :-1], model(changed).logits[:, :-1])


@pytest.mark.parametrize("changes", [{"learning_rate": 0.5}, {"text": TEXT[:-1]}])
def test_checkpoints_of_other_settings_or_text_are_refused(changes, tmp_path, rows, tokenizer):
    """Prevents a run that goes on with the weights of another."""
    BackboneTrainer("bert", SMALL, tokenizer, rows, tmp_path / "bb.checkpoints")
    text = changes.pop("text", TEXT)
    with pytest.raises(SettingsError, match="of a run on other text or settings; remove it"):
        pretrain("bert", replace(SMALL, **changes), text, tmp_path / "bb")


def test_what_cannot_be_trained_is_refused(tmp_path):
    """Prevents transformers' traceback after the tokenizer is trained, and a held-out set that is
    the whole text."""
    for heads in (5, 0):
        with pytest.raises(SettingsError, match=f"^heads={heads} does not divide width=192"):
            BackboneConfig(heads=heads)
    with pytest.raises(DataError, match="90 sentences are too few"):
        pretrain("bert", SMALL, TEXT[:90], tmp_path / "bb")


def test_a_backbone_that_cannot_be_shared_saved_or_measured_is_not_trained(
    tmp_path, short_corpora, monkeypatch
):
    """Prevents hours of training for weights that may not be given away, a folder that is then
    refused, or a card that cannot be measured."""
    monkeypatch.setattr(BackboneTrainer, "losses", lambda *_: pytest.fail("it trains"))
    with pytest.raises(SettingsError, match="'imdb-reviews' is not known to allow derived works"):
        recipe.make_backbone("bert", tmp_path / "bb", tmp_path, ("imdb-reviews",))
    with pytest.raises(SettingsError, match="needs a text in order; add one of wikipedia-core"):
        recipe.make_backbone("bert", tmp_path / "bb", tmp_path, ("leipzig-10k",))
    (short_corpora / "sts").unlink()
    with pytest.raises(DataError, match="sts"):
        recipe.make_backbone("bert", tmp_path / "bb", short_corpora, ("wikipedia-core",), steps=1)
    assert not (tmp_path / "bb").exists()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="exists and is no saved encoder"):
        pretrain("bert", SMALL, TEXT, tmp_path)
    with pytest.raises(ModelError, match="exists and is no saved encoder"):
        recipe.make_backbone("bert", tmp_path, tmp_path)  # before it reads the text


@pytest.fixture
def short_corpora(data_dir, tmp_path) -> Path:
    """The data folder, with the first lines of two corpora and all of the rest."""
    folder = tmp_path / "data"
    (folder / "corpus").mkdir(parents=True)
    for part in data_dir.iterdir():
        if part.name != "corpus":
            (folder / part.name).symlink_to(part)
    for name in ("leipzig-10k", "wikipedia-core"):
        file = f"corpus/{name}.txt.gz"
        lines = gzip.decompress((data_dir / file).read_bytes()).splitlines(keepends=True)
        (folder / file).write_bytes(gzip.compress(b"".join(lines[:4000])))
    return folder


@pytest.mark.slow
def test_a_card_is_measured_again_to_the_last_digit(tmp_path, short_corpora, monkeypatch):
    """Prevents a card whose numbers are of another text, other masks or weights that were not yet
    rounded to float16."""
    monkeypatch.setattr(recipe, "SYNTHETIC_SENTENCES", 2000)
    monkeypatch.setattr(recipe, "STS7", ("STS16",))
    small = {**SIZES, "steps": 4, "vocab_size": 2000}
    names = ("leipzig-10k", "wikipedia-core")
    card = recipe.make_backbone("bert", tmp_path / "bb", short_corpora, names, **small)
    assert recipe.measure(tmp_path / "bb", short_corpora) == card["measured"]
    text = (tmp_path / "bb" / "README.md").read_text()
    assert "leipzig-10k, wikipedia-core (" in text
    measured = card["measured"].values()
    assert all(str(value) in text for value in measured if not isinstance(value, dict))
