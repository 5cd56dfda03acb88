"""The translator trained here: its loss against a loop, and that it learns to translate in both
directions."""

import random

import pytest
import torch
import torch.nn.functional as F

from cselab.data.translation.parallel import Parallel
from cselab.data.translation.translators import open_translator
from cselab.errors import DataError, SettingsError
from cselab.pretraining import translator as module
from cselab.pretraining.translator import TranslatorConfig, train_translator, translation_loss

NOUNS = {
    "dog": "chien",
    "cat": "chat",
    "man": "homme",
    "boy": "garçon",
    "bird": "oiseau",
    "cook": "cuisinier",
}
VERBS = {"sleeps": "dort", "sings": "chante", "runs": "court", "eats": "mange"}
COLOURS = {"red": "rouge", "green": "vert", "small": "petit", "old": "vieux"}


def pairs(count, seed):
    draw = random.Random(seed)
    out = []
    for _ in range(count):
        noun, verb, colour = (draw.choice(list(words)) for words in (NOUNS, VERBS, COLOURS))
        out.append(
            (f"The {colour} {noun} {verb}.", f"Le {NOUNS[noun]} {COLOURS[colour]} {VERBS[verb]}.")
        )
    return out


TRAIN, TEST = Parallel(("en", "fr"), pairs(3000, 0)), Parallel(("en", "fr"), pairs(50, 1))
SMALL = dict(width=32, heads=2, inner=64, encoder_layers=1, decoder_layers=1, vocab_size=120)


def test_it_learns_both_directions(tmp_path):
    """Prevents a decoder that reads what it must say, a wrong language token, and a folder that
    does not open again."""
    card = train_translator(
        TranslatorConfig(steps=400, learning_rate=5e-3, **SMALL), TRAIN, TEST, tmp_path / "fr"
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


def test_the_same_steps_give_the_same_translator(tmp_path):
    """Prevents a training that depends on the time, so that nobody can repeat the results that used
    its round trips."""
    weights = []
    for name in ("one", "two"):
        train_translator(TranslatorConfig(steps=5, **SMALL), TRAIN, TEST, tmp_path / name)
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_the_loss_is_the_mean_over_target_tokens(tmp_path):
    """Prevents padding from being learned, and a target that is read one place too early."""
    config = TranslatorConfig(**SMALL)
    tokenizer = module._tokenizer(TRAIN, config.vocab_size)
    model = module.MarianMTModel(module._marian(config, tokenizer)).eval()
    lines = [
        (">>fr<< The old dog sleeps.", "Le chien vieux dort."),
        (">>fr<< The cat.", "Le chat."),
    ]
    source, target = (
        tokenizer([pair[i] for pair in lines], padding=True, return_tensors="pt") for i in (0, 1)
    )
    total, count = 0.0, 0
    for ids, mask, said, kept in zip(
        source["input_ids"],
        source["attention_mask"],
        target["input_ids"],
        target["attention_mask"],
        strict=True,
    ):
        ids, said = ids[mask.bool()][None], said[kept.bool()]
        for place in range(len(said)):
            start = torch.tensor([[model.config.decoder_start_token_id, *said[:place]]])
            logits = model(input_ids=ids, decoder_input_ids=start).logits[0, -1]
            total, count = total + F.cross_entropy(logits, said[place]).item(), count + 1
    found = translation_loss(model, source["input_ids"], target["input_ids"]).item()
    assert found == pytest.approx(total / count, rel=1e-4)


def test_text_and_steps_that_are_not_enough_are_refused(tmp_path):
    """Prevents a folder of a translator that saw other languages, or nothing."""
    other = Parallel(("en", "de"), TEST.pairs)
    with pytest.raises(DataError, match="training text is .*the test .*the same pair of languages"):
        train_translator(TranslatorConfig(), TRAIN, other, tmp_path / "x")
    with pytest.raises(SettingsError, match="steps=0: expected at least one"):
        train_translator(TranslatorConfig(steps=0), TRAIN, TEST, tmp_path / "x")
    with pytest.raises(SettingsError, match="^heads=5 does not divide width=192; expected"):
        TranslatorConfig(heads=5)
    with pytest.raises(DataError, match="less than half a batch of 48"):
        train_translator(
            TranslatorConfig(), Parallel(("en", "fr"), TEST.pairs[:5]), TEST, tmp_path / "x"
        )
    assert not (tmp_path / "x").exists()
