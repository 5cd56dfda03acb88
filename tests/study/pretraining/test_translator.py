"""The translator trained here: its loss against a loop, and that it learns to translate in both
directions."""

import random

import pytest
import torch
import torch.nn.functional as F

from cselab.data.translation.parallel import Parallel
from cselab.data.translation.translators import open_translator
from cselab.errors import DataError, SettingsError
from cselab.study.pretraining import translator as module
from cselab.study.pretraining.tokenizer import train_pair_tokenizer
from cselab.study.pretraining.translator import TranslatorConfig, train_translator

NOUNS = {"dog": "chien", "cat": "chat", "man": "homme", "boy": "garçon", "bird": "oiseau"}
VERBS = {"sleeps": "dort", "sings": "chante", "runs": "court", "eats": "mange"}
COLOURS = {"red": "rouge", "green": "vert", "small": "petit", "old": "vieux"}


def pairs(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        noun, verb, colour = (draw.choice(list(words)) for words in (NOUNS, VERBS, COLOURS))
        french = f"Le {NOUNS[noun]} {COLOURS[colour]} {VERBS[verb]}."
        yield f"The {colour} {noun} {verb}.", french


TRAIN, TEST = (Parallel(("en", "fr"), list(pairs(n, seed))) for n, seed in ((3000, 0), (50, 1)))
SMALL = dict(width=32, heads=2, inner=64, encoder_layers=1, decoder_layers=1, vocab_size=120)


def test_it_learns_both_directions(tmp_path):
    """Prevents a decoder that reads what it must say, a wrong language token, and a folder that
    does not open again."""
    card = train_translator(
        TranslatorConfig(steps=400, evaluations=2, learning_rate=5e-3, **SMALL),
        TRAIN,
        TEST,
        tmp_path / "fr",
    )
    assert card["scores"]["en-fr"]["BLEU"] > 50
    assert card["scores"]["fr-en"]["BLEU"] > 50
    text = [source for source, _ in TEST.pairs]
    trip = open_translator(str(tmp_path / "fr"), "fr")
    assert "chien" in " ".join(trip.to_pivot(text))
    back = trip(text)
    assert sum(a == b for a, b in zip(back, text, strict=True)) > 25
    with pytest.raises(DataError, match="no token >>de<<, so it does not know 'de'"):
        open_translator(str(tmp_path / "fr"), "de")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_is_the_mean_over_target_tokens(smoothing, tmp_path):
    """Prevents padding from being learned, and a target that is read one place too early."""
    text = Parallel(
        ("en", "fr"), [("The old dog sleeps.", "Le chien vieux dort."), ("The cat.", "Le chat.")]
    )
    config = TranslatorConfig(label_smoothing=smoothing, **SMALL)
    tokenizer = train_pair_tokenizer(TRAIN, config.vocab_size)
    trainer = module.translation_trainer(config, text, tokenizer, tmp_path)
    rows, model = trainer.train_dataset, trainer.model.eval()
    total, count = 0.0, 0
    for row in rows[:2]:  # English to French
        target = torch.tensor(row["labels"])
        for i in range(len(target)):
            start = torch.tensor([[model.config.decoder_start_token_id, *target[:i]]])
            ids = torch.tensor([row["input_ids"]])
            logits = model(input_ids=ids, decoder_input_ids=start).logits[0, -1]
            loss = F.cross_entropy(logits, target[i], label_smoothing=smoothing)
            total, count = total + loss.item(), count + 1
    (loss,) = trainer.losses(dict(trainer.data_collator(rows[:2]))).values()
    assert loss.item() == pytest.approx(total / count, rel=1e-4)


def test_text_and_steps_that_are_not_enough_are_refused(tmp_path):
    """Prevents a folder of a translator that saw other languages, or nothing."""
    other = Parallel(("en", "de"), TEST.pairs)
    with pytest.raises(DataError, match="training text is .*, but the test is"):
        train_translator(TranslatorConfig(), TRAIN, other, tmp_path / "x")
    with pytest.raises(SettingsError, match="steps=0: expected at least one"):
        train_translator(TranslatorConfig(steps=0), TRAIN, TEST, tmp_path / "x")
    with pytest.raises(SettingsError, match="^heads=5 does not divide width=192"):
        TranslatorConfig(heads=5)
    few = Parallel(("en", "fr"), TEST.pairs[:5])
    with pytest.raises(DataError, match="less than half a batch of 48"):
        train_translator(TranslatorConfig(), few, TEST, tmp_path / "x")
    assert not (tmp_path / "x").exists()
