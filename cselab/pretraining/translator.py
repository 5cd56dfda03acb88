"""A small translator trained from parallel text, for round trips without a hub: one Marian model for both directions."""

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
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from cselab.data.parallel import Parallel
from cselab.data.translators import LONGEST, Seq2Seq
from cselab.errors import DataError, SettingsError
from cselab.models.folder import new_folder, write_card
from cselab.pretraining.run import check_device
from cselab.pretraining.text import Rows, batches
from cselab.progress import progress_bar

UNREAD = -100
"""Target ids that the loss leaves out."""


@dataclass(frozen=True)
class TranslatorConfig:
    """Shape and length of a run. minutes: of training; the rate warms up over their first twentieth and falls to 0 at their end,
    so that a slow machine gets a finished model too, of fewer steps."""

    minutes: float = 10.0
    batch_size: int = 48  # sentence pairs
    learning_rate: float = 1e-3
    width: int = 192
    heads: int = 3
    inner: int = 384
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.0  # minutes of a CPU are a few epochs, which do not overfit; where there is time for thirty, 0.1
    label_smoothing: float = 0.1
    vocab_size: int = 4000  # joint
    device: str = "cpu"
    bf16: bool = False
    seed: int = 0


def train_translator(config: TranslatorConfig, train: Parallel, test: Parallel, folder: str | Path) -> dict:
    """Fit one model to both directions of `train` and write it, with its tokenizer and `card.json`, to `folder`.

    Returns the card: configuration, steps, epochs, seconds, and BLEU and chrF (sacrebleu's defaults) of each direction on `test`,
    greedy. The language to translate into is the source's first token, `>>fr<<`, as in Marian's models of several languages.

    Raises DataError for languages that differ between `train` and `test` and for less text than a batch, SettingsError for
    no time, ModelError for a folder that is something else.
    """
    if train.languages != test.languages:
        raise DataError(
            f"training text is {train.languages}, the test {test.languages}; give the same pair of languages"
        )
    if config.minutes <= 0:
        raise SettingsError(f"minutes={config.minutes} leaves no time to train; give some")
    if 2 * len(train.pairs) < config.batch_size:
        raise DataError(f"{len(train.pairs)} pairs are less than half a batch of {config.batch_size}; give more text")
    check_device(config.device)
    torch.manual_seed(config.seed)
    tokenizer = _tokenizer(train, config.vocab_size)
    rows = _both_ways(train, tokenizer)
    model = MarianMTModel(_marian(config, tokenizer)).to(config.device)
    with new_folder(folder) as work:
        progress = _fit(model, *rows, config)
        model.save_pretrained(work)
        tokenizer.save_pretrained(work)
        there = Seq2Seq(work, source=train.languages[0], target=train.languages[1], device=config.device)
        scores = {}
        for source, target in (train.languages, train.languages[::-1]):
            scores[f"{source}-{target}"] = _score(there.towards(source, target), _direction(test, source))
        card = {"config": asdict(config), "pairs": len(train.pairs), **progress, "test_pairs": len(test.pairs)}
        card |= {"languages": train.languages, "scores": scores, "signature": "sacrebleu defaults, greedy"}
        write_card(work, "translator", languages=train.languages)
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    return card


def _fit(model: MarianMTModel, source: Rows, target: Rows, config: TranslatorConfig) -> dict:
    """Train until the time is up."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, betas=(0.9, 0.98), fused=True)
    model.train()
    started, spent, steps, recent = time.perf_counter(), 0.0, 0, None
    lengths = source.lengths + target.lengths
    bar = progress_bar("training the translator", round(60 * config.minutes), unit="s")
    for which in batches(lengths, config.batch_size, seed=config.seed):
        share = spent / (60 * config.minutes)
        if share >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * min(max(share, 1e-3) / 0.05, (1 - share) / 0.95)
        with torch.autocast(torch.device(config.device).type, torch.bfloat16, enabled=config.bf16):
            loss = translation_loss(model, *_batch(model, source, target, which), smoothing=config.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
        recent = loss.detach() if recent is None else 0.98 * recent + 0.02 * loss.detach()
        before, spent = spent, time.perf_counter() - started
        bar.update(min(round(spent), bar.total) - min(round(before), bar.total))
        if steps % 20 == 0:
            bar.set_postfix_str(f"step {steps}, loss {recent:.2f}", refresh=False)
    bar.close()
    epochs = steps * config.batch_size / len(source)
    return {"steps": steps, "epochs": round(epochs, 2), "seconds": round(spent, 1), "loss": round(recent.item(), 3)}


def translation_loss(
    model: MarianMTModel, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Mean cross-entropy of the target's tokens; the decoder reads them one place later, behind its start token."""
    pad = model.config.pad_token_id
    start = target.new_full((len(target), 1), model.config.decoder_start_token_id)
    logits = model(
        input_ids=source, attention_mask=(source != pad).long(), decoder_input_ids=torch.cat([start, target[:, :-1]], 1)
    ).logits
    labels = target.masked_fill(target == pad, UNREAD)
    return F.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=UNREAD, label_smoothing=smoothing
    )


def _batch(model: MarianMTModel, source: Rows, target: Rows, which: np.ndarray) -> tuple[Tensor, Tensor]:
    pad, device = model.config.pad_token_id, model.device
    return source.padded(which, pad).to(device), target.padded(which, pad).to(device)


def _score(translate: Seq2Seq, pairs: list[tuple[str, str]]) -> dict[str, float]:
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i][0]))
    said: list[str] = [""] * len(pairs)
    for start in range(0, len(order), 128):
        part = order[start : start + 128]
        for i, line in zip(part, translate([pairs[i][0] for i in part]), strict=True):
            said[i] = line
    references = [[target for _, target in pairs]]
    return {
        "BLEU": round(sacrebleu.corpus_bleu(said, references, force=True).score, 1),
        "chrF": round(sacrebleu.corpus_chrf(said, references).score, 1),
    }


def _direction(text: Parallel, source: str) -> list[tuple[str, str]]:
    return text.pairs if source == text.languages[0] else [(b, a) for a, b in text.pairs]


def _both_ways(text: Parallel, tokenizer: PreTrainedTokenizerFast) -> tuple[Rows, Rows]:
    """Source rows, which begin with the target's language, and target rows: every pair twice, once in each direction."""
    one, other = text.languages
    sources = [f">>{other}<< {a}" for a, _ in text.pairs] + [f">>{one}<< {b}" for _, b in text.pairs]
    targets = [b for _, b in text.pairs] + [a for a, _ in text.pairs]
    return tuple(Rows.tokenize(side, tokenizer, max_length=LONGEST) for side in (sources, targets))


def _tokenizer(text: Parallel, vocab_size: int) -> PreTrainedTokenizerFast:
    """Byte-pair pieces of both languages together; case is kept."""
    special = ["<pad>", "</s>", "<unk>", *(f">>{language}<<" for language in text.languages)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(_lines(text), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=LONGEST
    )


def _lines(text: Parallel) -> Iterable[str]:
    for pair in text.pairs:
        yield from pair


def _marian(config: TranslatorConfig, tokenizer: PreTrainedTokenizerFast) -> MarianConfig:
    return MarianConfig(
        vocab_size=len(tokenizer), d_model=config.width, dropout=config.dropout, max_position_embeddings=2 * LONGEST + 16,
        encoder_layers=config.encoder_layers, encoder_attention_heads=config.heads, encoder_ffn_dim=config.inner,
        decoder_layers=config.decoder_layers, decoder_attention_heads=config.heads, decoder_ffn_dim=config.inner,
        init_std=config.width**-0.5, activation_function="relu", scale_embedding=True, share_encoder_decoder_embeddings=True,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id, bos_token_id=None,
        decoder_start_token_id=tokenizer.pad_token_id, forced_eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
