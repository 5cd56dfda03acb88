"""Training of a small translator from parallel text: one Marian model for both directions."""

import itertools
import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import sacrebleu
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from cselab.data.progress import progress_bar
from cselab.data.token_rows import Rows, batches
from cselab.data.translation.parallel import Parallel
from cselab.data.translation.translators import LONGEST, Seq2Seq
from cselab.errors import DataError, SettingsError
from cselab.models.folder import new_folder, write_card
from cselab.pretraining.run import check_device, check_heads

IGNORED = -100
"""Target id that the loss ignores."""


@dataclass(frozen=True)
class TranslatorConfig:
    """Settings of a translator and its training."""

    steps: int = 3000
    """The learning rate warms up over the first twentieth and falls to 0 at the end."""
    batch_size: int = 48
    """Sentence pairs per step."""
    learning_rate: float = 1e-3
    width: int = 192
    heads: int = 3
    inner: int = 384
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0
    """0: a few epochs do not overfit; 0.1 for thirty epochs."""
    label_smoothing: float = 0.1
    vocab_size: int = 4000
    """Of both languages together."""
    device: str = "cpu"
    bf16: bool = False
    seed: int = 0

    def __post_init__(self):
        check_heads(self.heads, self.width)


def train_translator(
    config: TranslatorConfig, train: Parallel, test: Parallel, folder: str | Path
) -> dict:
    """Train one model for both directions; write it with its tokenizer and `card.json`.

    The first token of a source names the target language, `>>fr<<`, as in Marian's multilingual
    models.

    Args:
        config: Settings of the model and its training.
        train: Parallel text.
        test: Parallel text of the same languages.
        folder: Folder of the translator.

    Returns:
        The card: configuration, steps, epochs, seconds, and BLEU and chrF (sacrebleu's defaults) of
            each direction on `test`, with greedy search.

    Raises:
        DataError: For different languages of `train` and `test`, and for less text than a batch.
        SettingsError: For no steps.
        ModelError: For a folder that holds something else.
    """
    if train.languages != test.languages:
        raise DataError(
            f"training text is {train.languages}, the test {test.languages}; give the same pair of "
            "languages"
        )
    if config.steps < 1:
        raise SettingsError(f"steps={config.steps}: expected at least one step of training")
    if 2 * len(train.pairs) < config.batch_size:
        raise DataError(
            f"{len(train.pairs)} pairs are less than half a batch of {config.batch_size}; give "
            "more text"
        )
    check_device(config.device)
    torch.manual_seed(config.seed)
    tokenizer = _tokenizer(train, config.vocab_size)
    rows = _both_directions(train, tokenizer)
    model = MarianMTModel(_marian(config, tokenizer)).to(config.device)
    with new_folder(folder) as work:
        progress = _train(model, *rows, config)
        model.save_pretrained(work)
        tokenizer.save_pretrained(work)
        first, second = train.languages
        translator = Seq2Seq(work, source=first, target=second, device=config.device)
        scores = {}
        for source, target in ((first, second), (second, first)):
            translate = translator.with_languages(source, target)
            scores[f"{source}-{target}"] = _score(translate, _direction(test, source))
        card = {
            "config": asdict(config),
            "pairs": len(train.pairs),
            **progress,
            "test_pairs": len(test.pairs),
            "languages": train.languages,
            "scores": scores,
            "signature": "sacrebleu defaults, greedy",
        }
        write_card(work, "translator", languages=train.languages)
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    return card


def _train(model: MarianMTModel, source: Rows, target: Rows, config: TranslatorConfig) -> dict:
    """Train for the configured steps; returns epochs, seconds and loss."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), fused=True
    )
    model.train()
    started, recent = time.perf_counter(), torch.zeros(())
    chosen = batches(source.lengths + target.lengths, config.batch_size, seed=config.seed)
    bar = progress_bar("training the translator", config.steps, unit="step")
    for step, which in enumerate(itertools.islice(chosen, config.steps)):
        share = step / config.steps
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * min(max(share, 1e-3) / 0.05, (1 - share) / 0.95)
        with torch.autocast(torch.device(config.device).type, torch.bfloat16, enabled=config.bf16):
            batch = _batch(model, source, target, which)
            loss = translation_loss(model, *batch, smoothing=config.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent = loss.detach() if step == 0 else 0.98 * recent + 0.02 * loss.detach()
        bar.update()
        if step % 20 == 0:
            bar.set_postfix_str(f"loss {recent:.2f}", refresh=False)
    bar.close()
    return {
        "epochs": round(config.steps * config.batch_size / len(source), 2),
        "seconds": round(time.perf_counter() - started, 1),
        "loss": round(recent.item(), 3),
    }


def translation_loss(
    model: MarianMTModel,
    source: Int[Tensor, "B S"],
    target: Int[Tensor, "B T"],
    *,
    smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target tokens, which the decoder reads shifted by its start.

    Args:
        model: The translator.
        source: Tokens of the sources, (B, S).
        target: Tokens of the targets, (B, T).
        smoothing: Label smoothing.
    """
    pad = model.config.pad_token_id
    start = target.new_full((len(target), 1), model.config.decoder_start_token_id)
    logits = model(
        input_ids=source,
        attention_mask=(source != pad).long(),
        decoder_input_ids=torch.cat([start, target[:, :-1]], 1),
    ).logits
    labels = target.masked_fill(target == pad, IGNORED)
    return F.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.flatten(),
        ignore_index=IGNORED,
        label_smoothing=smoothing,
    )


def _batch(
    model: MarianMTModel, source: Rows, target: Rows, which: np.ndarray
) -> tuple[Tensor, Tensor]:
    pad, device = model.config.pad_token_id, model.device
    return source.padded(which, pad).to(device), target.padded(which, pad).to(device)


def _score(translate: Seq2Seq, pairs: list[tuple[str, str]]) -> dict[str, float]:
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    translations = [""] * len(pairs)
    for start in range(0, len(order), 128):
        part = order[start : start + 128]
        for i, line in zip(part, translate([pairs[i][0] for i in part]), strict=True):
            translations[i] = line
    references = [[target for _, target in pairs]]
    return {
        "BLEU": round(sacrebleu.corpus_bleu(translations, references, force=True).score, 1),
        "chrF": round(sacrebleu.corpus_chrf(translations, references).score, 1),
    }


def _direction(text: Parallel, source: str) -> list[tuple[str, str]]:
    return text.pairs if source == text.languages[0] else [(b, a) for a, b in text.pairs]


def _both_directions(text: Parallel, tokenizer: PreTrainedTokenizerFast) -> tuple[Rows, Rows]:
    """Source rows, which begin with the target language, and target rows, in both directions."""
    first, second = text.languages
    forward = [f">>{second}<< {a}" for a, _ in text.pairs]
    backward = [f">>{first}<< {b}" for _, b in text.pairs]
    sources = [*forward, *backward]
    targets = [b for _, b in text.pairs] + [a for a, _ in text.pairs]
    return (
        Rows.tokenize(sources, tokenizer, max_length=LONGEST),
        Rows.tokenize(targets, tokenizer, max_length=LONGEST),
    )


def _tokenizer(text: Parallel, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a cased byte-pair tokenizer on both languages together."""
    special = ["<pad>", "</s>", "<unk>", *(f">>{language}<<" for language in text.languages)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(_lines(text), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=LONGEST,
    )


def _lines(text: Parallel) -> Iterable[str]:
    for pair in text.pairs:
        yield from pair


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
