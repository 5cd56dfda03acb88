"""A backbone in the papers' situation: a published sentence encoder, trained on with masked LM.

Its words and syntax stay, its sentence space is forgotten: before contrastive training, its vectors
score as far below SimCSE as BERT's do (56.70 against 76.25, SimCSE Table 5). The vocabulary is cut
to the pieces that English as in Wikipedia and in STS needs.
"""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import BertForPreTraining, BertTokenizer, PreTrainedTokenizerBase

from cselab.data.corpus import load_corpus
from cselab.data.hub import model_folder
from cselab.data.sts import StsData, load_sts
from cselab.data.token_rows import Rows
from cselab.errors import ModelError
from cselab.evaluation.sts import score_data
from cselab.experiments.environment import environment_stamp
from cselab.models import SentenceEncoder, load_tokenizer
from cselab.models.backbone import quiet_loading, read_config
from cselab.models.folder import check_folder, new_folder
from cselab.seals import remove
from cselab.study.pretraining.gate import measure
from cselab.study.pretraining.objectives import random_tokens, token_loss
from cselab.study.pretraining.trainer import CurveTrainer, TrainingConfig, check_device
from cselab.workbook.templates import templates

CORPORA = ("wiki1m-piece", "wikipedia-2014")
POOLINGS = ("cls", "mean", "first_last")
"""What forgetting is followed by."""


@dataclass(frozen=True)
class ResetConfig(TrainingConfig):
    """Settings of a reset; defaults as shipped."""

    steps: int = 800
    batch_size: int = 64
    learning_rate: float = 5e-4
    max_length: int = 48
    """Tokens per sentence."""
    masked: float = 0.2
    """Share of tokens to predict; of these BERT's 80 % become [MASK], 10 % another token. (With all
    of them [MASK], contrastive training recovers nothing: 40 steps of SimCSE from step 500 raised
    [CLS] from 67.2 to 68.6 on STS-B dev; with BERT's rule, from step 300, from 71.2 to 79.3.)"""
    vocab_size: int = 9_600
    """Pieces that are kept; with 6 layers of width 384, the weights then have 29 MB."""


def reset_encoder(
    name: str, folder: str | Path, data_dir: str | Path | None, config: ResetConfig
) -> dict:
    """Cut the vocabulary of a BERT-like sentence encoder, and train it on with masked LM alone.

    Writes a stock transformers folder in float16 with the MLM head, and the pooler as published.
    After an interruption, the same call continues from `<folder>.checkpoints` to the same result.

    Args:
        name: The encoder, as in `cselab.load`.
        data_dir: A data folder with `CORPORA` and STSBenchmark (train part: only its words are
            counted; dev: measured along the way); None: CSELAB_DATA.

    Returns:
        The content of a card; `curve` has step, STS-B dev by pooling, and loss (nats).

    Raises:
        DataError, SettingsError, ModelError: Before the training, for missing data, checkpoints of
            other text or settings, and a folder that holds something else.
    """
    check_device(config.device)
    if check_folder(folder):
        raise ModelError(f"{folder} holds a saved encoder; choose a new folder, or an empty one")
    start, text = model_folder(name), load_corpus(CORPORA, folder=data_dir)
    if (kind := read_config(start, f"no encoder in {start}").model_type) != "bert":
        raise ModelError(f"{name} is a {kind!r} model; only a BERT can be reset")
    pairs = [load_sts("STSBenchmark", split, folder=data_dir) for split in ("train", "dev")]
    texts = [list(text), [*pairs[0].sentences1, *pairs[0].sentences2]]
    torch.manual_seed(config.seed)  # of the new MLM head, which is drawn next
    with quiet_loading():
        model = BertForPreTraining.from_pretrained(start, dtype=torch.float32)
    tokenizer = cut_vocabulary(model, load_tokenizer(start), texts, config.vocab_size)
    rows = Rows.tokenize(texts[0], tokenizer, max_length=config.max_length)
    checkpoints = Path(f"{folder}.checkpoints")
    trainer = ResetTrainer(model, config, tokenizer, rows, checkpoints, pairs[1])
    before = trainer.measured()
    seconds = trainer.run()
    weights = {
        k: v for k, v in model.cpu().half().state_dict().items() if "seq_relationship" not in k
    }
    model.config.architectures = ["BertForMaskedLM"]
    with new_folder(folder) as work:
        model.save_pretrained(work, state_dict=weights)
        tokenizer.save_pretrained(work)
        card = {
            "start": name,
            "config": asdict(config),
            "corpora": list(CORPORA),
            "sentences": len(rows),
            "hours": round(seconds / 3600, 2),
            "hardware": environment_stamp(torch.device(config.device))["hardware"],
            "before": before,
            "curve": trainer.curve,
        }
        (work / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    remove(checkpoints)
    return card


def write_card(folder: str | Path, data_dir: str | Path | None) -> dict:
    """Measure the gate of a backbone that `reset_encoder` made; write its README.md.

    Returns the card, whose `gate` is as `cselab.study.pretraining.gate.measure` returns it.
    """
    folder = Path(folder)
    card = json.loads((folder / "card.json").read_text())
    card["gate"] = measure(folder, data_dir)
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    page = templates(Path(__file__).parent).get_template("reset.md.j2")
    text = page.render(
        card,
        name=folder.name,
        model=read_config(folder, f"no backbone in {folder}"),
        rows={row["row"]: row for row in card["gate"]},
        untrained=[row for row in card["gate"] if row["row"].startswith("untrained")],
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
    return card


class ResetTrainer(CurveTrainer):
    """Masked LM on single sentences; a row of the curve has STS-B dev by pooling."""

    config: ResetConfig

    def __init__(
        self,
        model: BertForPreTraining,
        config: ResetConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        checkpoints: Path,
        dev: StsData,
    ):
        self.tokenizer, self.dev = tokenizer, dev
        super().__init__(
            model,
            config,
            range(len(rows)),
            rows.lengths,
            partial(rows.batch, pad=tokenizer.pad_token_id),
            text=hashlib.sha256(rows.flat.data).hexdigest(),
            checkpoints=checkpoints,
            adam_beta2=0.98,
        )

    def losses(self, batch: MutableMapping[str, Tensor]) -> dict[str, Tensor]:
        """The masked-LM loss; masks are drawn anew in each step."""
        ids, special = batch["input_ids"], self.tokenizer.all_special_ids
        where = random_tokens(ids, special, self.config.masked)
        rule = torch.rand(ids.shape, device=ids.device)
        other = torch.randint(len(self.tokenizer), ids.shape, device=ids.device)
        other = torch.where(rule < 0.8, self.tokenizer.mask_token_id, other)
        inputs = torch.where(where & (rule < 0.9), other, ids)
        states = self.model.base_model(inputs, batch["attention_mask"]).last_hidden_state
        return {"masked LM": token_loss(self.model, states, ids, where)}

    def measured(self) -> dict[str, float]:
        """Spearman × 100 on STS-B dev."""
        scores = {}
        for pooling in POOLINGS:
            encoder = SentenceEncoder(self.model.base_model, self.tokenizer, pooling=pooling)
            scores[pooling] = round(score_data(encoder.encode, [self.dev], resamples=0).average, 2)
        return scores


def cut_vocabulary(
    model: BertForPreTraining,
    tokenizer: PreTrainedTokenizerBase,
    texts: Sequence[Iterable[str]],
    size: int,
) -> PreTrainedTokenizerBase:
    """Cut a BERT's vocabulary to the `size` most frequent pieces, in place; return its tokenizer.

    A piece counts by its mean share in the `texts`, so that a short text counts as much as a long
    one. Special tokens and the characters of ASCII stay, and the order; a word whose piece is gone
    is split into shorter ones.
    """
    ranked: Counter[int] = Counter()
    for text in texts:
        rows = Rows.tokenize(text, tokenizer, max_length=model.config.max_position_embeddings)
        counts = np.bincount(rows.flat, minlength=len(tokenizer)) / len(rows.flat)
        ranked.update(dict(enumerate(counts.tolist())))
    vocabulary = tokenizer.get_vocab()
    letters = (chr(code) for code in range(33, 127))
    pieces = itertools.chain.from_iterable((letter, f"##{letter}") for letter in letters)
    always = {*tokenizer.all_special_ids, *(vocabulary[p] for p in pieces if p in vocabulary)}
    ordered = [*always, *(i for i, _ in ranked.most_common() if i not in always)]
    kept = sorted(ordered[:size])
    names = {number: piece for piece, number in vocabulary.items()}
    words = model.get_input_embeddings().weight.detach()[kept].clone()
    model.resize_token_embeddings(len(kept))
    model.get_input_embeddings().weight.data.copy_(words)
    model.config.pad_token_id = kept.index(tokenizer.pad_token_id)
    return BertTokenizer(
        vocab={names[number]: i for i, number in enumerate(kept)},
        do_lower_case=True,
        model_max_length=model.config.max_position_embeddings,
    )
