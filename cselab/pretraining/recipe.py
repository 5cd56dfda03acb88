"""The recipe of the shipped `tiny-bert`, and a check that its card says the truth.

The text is what may be passed on in derived works: Wikipedia (CC BY-SA 3.0), OneStopEnglish (CC BY-SA 4.0), Leipzig (CC BY 4.0),
public domain books, speeches and Factbook; and sentences of the generated world in the place of captions.
"""

import itertools
import json
import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from transformers import BertForPreTraining

from cselab.data.corpus import load_corpus
from cselab.data.sts import STS7
from cselab.data.world import sentences as world_sentences
from cselab.evaluation import evaluate_sts
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.pretraining.bert import PretrainConfig, held_out_loss, pretrain
from cselab.pretraining.run import held_out_positions
from cselab.pretraining.text import Rows, neighbours

TEXT = (
    "wiki1m-piece", "wikipedia-2014", "wikipedia-2018", "wikipedia-core", "books", "factbook", "us-speeches",
    "onestopenglish", "leipzig-10k", "wikipedia-2014-b", "wikipedia-2014-c",
)  # fmt: skip
IN_ORDER = ("wikipedia-core", "wikipedia-2014-b", "wikipedia-2014-c")
WORLD_SENTENCES, WORLD_SEED = 150_000, 7
CARD = "pretraining.json"


class _Text:
    """The corpora, then the world: iterable as often as needed."""

    def __init__(self, data_dir: str | Path | None):
        self.corpora = load_corpus(TEXT, folder=data_dir)

    def __iter__(self) -> Iterator[str]:
        return itertools.chain(self.corpora, world_sentences(WORLD_SENTENCES, WORLD_SEED))

    def __len__(self) -> int:
        return len(self.corpora) + WORLD_SENTENCES


def make(folder: str | Path, data_dir: str | Path | None, *, steps: int, bf16: bool, checkpoint: str | Path) -> dict:
    """Pretrain the backbone into `folder`, measure it, and write its numbers beside it; returns them."""
    started = time.perf_counter()
    config = PretrainConfig(steps=steps, bf16=bf16)
    ordered = load_corpus(IN_ORDER, folder=data_dir)
    report = pretrain(config, _Text(data_dir), folder, ordered=ordered, checkpoint=checkpoint)
    hours = (time.perf_counter() - started) / 3600
    hardware = {"machine": platform.machine(), "threads": torch.get_num_threads(), "cores": os.cpu_count()}
    card = {**report, "hours": round(hours, 2), "hardware": hardware, "measured": measure(folder, data_dir)}
    (Path(folder) / CARD).write_text(json.dumps(card, indent=1) + "\n")
    return card


def measure(folder: str | Path, data_dir: str | Path | None) -> dict:
    """Of a finished backbone: held-out losses (nats), next-sentence accuracy, and STS scores before contrastive training."""
    model = BertForPreTraining.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = load_tokenizer(folder)
    text = _Text(data_dir)
    kept = held_out_positions(len(text), PretrainConfig(steps=1))
    kept = set(kept[kept < len(text.corpora)].tolist())  # real sentences only
    rows = Rows.tokenize((s for i, s in enumerate(text.corpora) if i in kept), tokenizer, max_length=48)
    special = torch.tensor(tokenizer.all_special_ids)
    ids_of = {"mask_id": tokenizer.mask_token_id, "pad_id": tokenizer.pad_token_id}
    every = np.arange(len(rows))
    losses = {
        f"masked-LM loss, {share:.0%} masked": round(
            held_out_loss(model, rows, every, special, share=share, **ids_of), 3
        )
        for share in (0.15, 0.3)
    }
    scores = {}
    for pooling in ("cls", "mean"):
        encoder = SentenceEncoder(load_backbone(folder), tokenizer, pooling=pooling)
        result = evaluate_sts(encoder.encode, STS7, folder=data_dir)
        scores[pooling] = {task: round(score, 2) for task, score in result.scores.items()} | {
            "average": round(result.average, 2)
        }
    return {**losses, "next-sentence accuracy": _next_sentence_accuracy(model, tokenizer, data_dir), "sts": scores}


@torch.no_grad()
def _next_sentence_accuracy(model: BertForPreTraining, tokenizer, data_dir, pairs: int = 2000) -> float:
    """On pairs of the training text (a held-out article does not exist): half follow one another, half do not."""
    rows = Rows.tokenize(itertools.islice(load_corpus(IN_ORDER, folder=data_dir), 20_000), tokenizer, max_length=48)
    ids, segments, labels = neighbours(rows, pairs, tokenizer.pad_token_id, np.random.default_rng(1))
    right = 0
    for part in torch.arange(pairs).split(250):
        mask = (ids[part] != tokenizer.pad_token_id).long()
        out = model(input_ids=ids[part], attention_mask=mask, token_type_ids=segments[part])
        right += int((out.seq_relationship_logits.argmax(1) == labels[part]).sum())
    return round(right / pairs, 3)
