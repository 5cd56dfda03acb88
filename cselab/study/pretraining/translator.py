"""Training of a small translator from parallel text: one Marian model for both directions."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sacrebleu
import torch
from transformers import (
    DataCollatorForSeq2Seq,
    MarianConfig,
    MarianMTModel,
    PreTrainedTokenizerFast,
)

from cselab.data.translation.parallel import Parallel
from cselab.data.translation.translators import LONGEST, Seq2Seq
from cselab.errors import DataError, SettingsError
from cselab.models.folder import check_folder, new_folder, write_card
from cselab.seals import remove
from cselab.study.pretraining.tokenizer import train_pair_tokenizer
from cselab.study.pretraining.trainer import CurveTrainer, ModelConfig, check_device


@dataclass(frozen=True)
class TranslatorConfig(ModelConfig):
    """Settings of a translator and its training."""

    steps: int = 3000
    batch_size: int = 48
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0
    """0: a few epochs do not overfit; 0.1 for thirty epochs."""
    label_smoothing: float = 0.1
    vocab_size: int = 4000
    """Pieces of both languages together."""


def train_translator(
    config: TranslatorConfig, train: Parallel, test: Parallel, folder: str | Path
) -> dict:
    """Train one model for both directions; write it with its tokenizer and `card.json`.

    The first token of a source names the target language, `>>fr<<`, as in Marian's multilingual
    models. After an interruption, the same call continues from `<folder>.checkpoints` to exactly
    the same result.

    Returns:
        The card: configuration, epochs, seconds, training loss, and BLEU and chrF (sacrebleu's
            defaults) of each direction on `test`, with greedy search.

    Raises:
        DataError, SettingsError, ModelError: Before the training, as `pretrain`; also for different
            languages of `train` and `test`, and for no steps.
    """
    if train.languages != test.languages:
        raise DataError(f"training text is {train.languages}, but the test is {test.languages}")
    if config.steps < 1:
        raise SettingsError(f"steps={config.steps}: expected at least one step of training")
    if 2 * len(train.pairs) < (size := config.batch_size):
        raise DataError(f"{len(train.pairs)} pairs are less than half a batch of {size}")
    check_device(config.device)
    check_folder(folder)
    torch.manual_seed(config.seed)
    tokenizer = train_pair_tokenizer(train, config.vocab_size)
    checkpoints = Path(f"{folder}.checkpoints")
    trainer = translation_trainer(config, train, tokenizer, checkpoints)
    seconds = trainer.run()
    with new_folder(folder) as work:
        trainer.model.save_pretrained(work)
        tokenizer.save_pretrained(work)
        first, second = train.languages
        translator = Seq2Seq(work, source=first, target=second, device=config.device)
        scores = {}
        for source, target in ((first, second), (second, first)):
            translate = translator.with_languages(source, target)
            pairs = test.pairs if source == first else [(b, a) for a, b in test.pairs]
            scores[f"{source}-{target}"] = _score(translate, pairs)
        card = {
            "config": asdict(config),
            "pairs": len(train.pairs),
            "epochs": round(config.steps * config.batch_size / (2 * len(train.pairs)), 2),
            "seconds": round(seconds, 1),
            "loss": round(trainer.curve[-1]["loss"], 3),
            "test_pairs": len(test.pairs),
            "languages": train.languages,
            "scores": scores,
            "signature": "sacrebleu defaults, greedy",
        }
        write_card(work, "translator", languages=train.languages)
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    remove(checkpoints)
    return card


def translation_trainer(
    config: TranslatorConfig,
    text: Parallel,
    tokenizer: PreTrainedTokenizerFast,
    checkpoints: Path,
) -> CurveTrainer:
    """Trainer of a new model on both directions of the text."""
    first, second = text.languages
    pairs = [(f">>{second}<< {a}", b) for a, b in text.pairs]
    pairs += [(f">>{first}<< {b}", a) for a, b in text.pairs]
    sources, targets = map(list, zip(*pairs, strict=True))
    ids = tokenizer(sources, text_target=targets, truncation=True, max_length=LONGEST)
    sides = zip(ids["input_ids"], ids["labels"], strict=True)
    rows = [{"input_ids": source, "labels": target} for source, target in sides]
    model = MarianMTModel(_marian(config, tokenizer))
    return CurveTrainer(
        model,
        config,
        rows,
        np.array([len(row["input_ids"]) + len(row["labels"]) for row in rows]),
        DataCollatorForSeq2Seq(tokenizer, model),
        text=hashlib.sha256(json.dumps(text.pairs).encode()).hexdigest(),
        checkpoints=checkpoints,
        adam_beta2=0.98,
        label_smoothing_factor=config.label_smoothing,
    )


def _score(translate: Seq2Seq, pairs: list[tuple[str, str]]) -> dict[str, float]:
    pairs = sorted(pairs, key=lambda pair: len(pair[0]))  # a batch has similar lengths
    translations: list[str] = []
    for start in range(0, len(pairs), 128):
        translations += translate([source for source, _ in pairs[start : start + 128]])
    references = [[target for _, target in pairs]]
    return {
        "BLEU": round(sacrebleu.corpus_bleu(translations, references, force=True).score, 1),
        "chrF": round(sacrebleu.corpus_chrf(translations, references).score, 1),
    }


def _marian(config: TranslatorConfig, tokenizer: PreTrainedTokenizerFast) -> MarianConfig:
    return MarianConfig(
        vocab_size=len(tokenizer),
        d_model=config.width,
        dropout=config.dropout,
        max_position_embeddings=2 * LONGEST + 16,
        encoder_layers=config.encoder_layers,
        encoder_attention_heads=config.heads,
        encoder_ffn_dim=config.inner,
        decoder_layers=config.decoder_layers,
        decoder_attention_heads=config.heads,
        decoder_ffn_dim=config.inner,
        init_std=config.width**-0.5,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=tokenizer.eos_token_id,
    )
