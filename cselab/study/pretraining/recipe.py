"""Recipe of the shipped backbones, and the measurements on their cards.

The licences of the text allow derived works: Wikipedia (CC BY-SA 3.0), OneStopEnglish (CC BY-SA
4.0), Leipzig (CC BY 4.0), and books, speeches and Factbook in the public domain. Synthetic
sentences take the place of captions.
"""

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForPreTraining

from cselab.data.corpus import load_corpus
from cselab.data.sts import STS7, load_sts
from cselab.data.synthetic import sentences as synthetic_sentences
from cselab.data.token_rows import Rows
from cselab.errors import ModelError, SettingsError, suggest
from cselab.evaluation.sts import evaluate_sts
from cselab.experiments.environment import environment_stamp
from cselab.methods.baselines.sif import SifMean
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.models.backbone import quiet_loading, read_config
from cselab.models.encode import Encoder
from cselab.models.folder import check_folder
from cselab.study.pretraining.architectures import MODELS, BackboneConfig, Kind
from cselab.study.pretraining.backbones import held_out_positions, pretrain
from cselab.study.pretraining.objectives import held_out_loss, next_sentence_pairs
from cselab.study.pretraining.trainer import check_device
from cselab.workbook.templates import templates

TEXT = (
    "wiki1m-piece",
    "wikipedia-2014",
    "wikipedia-2018",
    "wikipedia-core",
    "books",
    "factbook",
    "us-speeches",
    "onestopenglish",
    "leipzig-10k",
    "wikipedia-2014-b",
    "wikipedia-2014-c",
)
IN_ORDER = ("wikipedia-core", "wikipedia-2014-b", "wikipedia-2014-c")
SYNTHETIC_SENTENCES, SYNTHETIC_SEED = 150_000, 7


class _Text:
    """The corpora and then synthetic sentences; can be iterated over repeatedly."""

    def __init__(self, corpora: tuple[str, ...], data_dir: str | Path | None):
        self.corpora = load_corpus(corpora, folder=data_dir)

    def __iter__(self) -> Iterator[str]:
        synthetic = synthetic_sentences(SYNTHETIC_SENTENCES, SYNTHETIC_SEED)
        return itertools.chain(self.corpora, synthetic)

    def __len__(self) -> int:
        return len(self.corpora) + SYNTHETIC_SENTENCES


def make_backbone(
    kind: Kind,
    folder: str | Path,
    data_dir: str | Path | None,
    corpora: tuple[str, ...] = TEXT,
    **config: Any,
) -> dict:
    """Pretrain a backbone into `folder`, measure it and write its `card.json` and README.

    After an interruption, the same call continues, as `pretrain`. Returns the card's content.

    Args:
        data_dir: A data folder with the corpora; None: CSELAB_DATA.
        **config: Fields of `BackboneConfig`.

    Raises:
        SettingsError: For a corpus whose licence is not known to allow derived works, and for a
            BERT without a corpus that keeps its order.
        DataError: For a corpus or an STS set that is missing.
        ModelError: For a folder that holds something else.
    """
    for name in set(corpora) - set(TEXT):
        hint = suggest(name, TEXT)
        raise SettingsError(f"corpus {name!r} is not known to allow derived works; {hint}")
    in_order = [name for name in IN_ORDER if name in corpora]
    if kind == "bert" and not in_order:
        listed = ", ".join(IN_ORDER)
        raise SettingsError(f"next-sentence prediction needs a text in order; add one of {listed}")
    check_device(config.get("device", "cpu"))
    if check_folder(folder):
        raise ModelError(f"{folder} holds a saved encoder; choose a new folder, or an empty one")
    if kind != "llama":  # what the card is measured with
        for task in STS7:
            load_sts(task, folder=data_dir)
    text = _Text(corpora, data_dir)
    ordered = load_corpus(in_order, folder=data_dir) if kind == "bert" else None
    settings = BackboneConfig(**config)
    card = pretrain(kind, settings, text, folder, ordered=ordered)
    hardware = environment_stamp(torch.device(settings.device))["hardware"]
    card |= {"hardware": hardware, "corpora": list(corpora)}
    folder = Path(folder)
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    card["measured"] = measure(folder, data_dir)
    (folder / "card.json").write_text(json.dumps(card, indent=1) + "\n")
    page = card_text(folder.name, kind, card, corpora, in_order)
    (folder / "README.md").write_text(page, encoding="utf-8")
    return card


def measure(folder: str | Path, data_dir: str | Path | None) -> dict:
    """Measure a backbone: held-out losses (nats); for a BERT also its next-sentence accuracy, and
    STS before contrastive training.

    Args:
        folder: Folder of the backbone, with its card, which names the held-out text.
        data_dir: As in `make_backbone`.

    Raises:
        ModelError: For a folder without a card, or with a damaged one.
    """
    path = Path(folder) / "card.json"
    if not path.is_file():
        raise ModelError(f"no card.json in {folder}: expected a backbone made by `cselab pretrain`")
    try:
        corpora = tuple(json.loads(path.read_text())["corpora"])
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelError(f"{path} is damaged ({reason}); make the backbone again") from None
    text, tokenizer = _Text(corpora, data_dir), load_tokenizer(folder)
    positions = held_out_positions(len(text), BackboneConfig())
    held_out = set(positions[positions < len(text.corpora)].tolist())  # real sentences only
    sentences = (sentence for i, sentence in enumerate(text.corpora) if i in held_out)
    rows = Rows.tokenize(sentences, tokenizer, max_length=BackboneConfig.max_length)
    kind = read_config(folder, f"no backbone in {folder}").model_type
    with quiet_loading():  # a masked LM leaves the pooler out
        model = MODELS[kind].from_pretrained(folder, dtype=torch.float32)

    def loss(masked: float = 0.0) -> float:
        every = np.arange(len(rows))
        return round(held_out_loss(model, tokenizer, rows, every, masked=masked), 3)

    if kind == "llama":
        return {"next-token loss": loss()}
    ordered = load_corpus([name for name in IN_ORDER if name in corpora], folder=data_dir)
    return {
        **{f"masked-LM loss, {share:.0%} masked": loss(share) for share in (0.15, 0.3)},
        "next-sentence accuracy": _next_sentence_accuracy(model, tokenizer, ordered),
        "sts": _sts_scores(folder, data_dir, text),
    }


def card_text(
    name: str, kind: str, card: Mapping, text: Sequence[str], in_order: Sequence[str]
) -> str:
    """Markdown with the front matter of a hub card (card.md.j2).

    Args:
        kind: "bert" or "llama".
        card: The result of `recipe.make_backbone`.
        text: Names of the corpora; `in_order`: of those that keep their order.
    """
    config, curve = card["config"], card["curve"]
    last = config.get("dropout_last", 0)
    return (
        templates(Path(__file__).parent)
        .get_template("card.md.j2")
        .render(
            card,
            **config,
            name=name,
            kind=kind,
            text=text,
            in_order=in_order,
            own=kind != "llama" and not config["bag_weight"],
            late="every step" if last >= 1 else f"the last {last:.0%} of the steps",
            rows=[*curve[: -1 : max(1, len(curve) // 10)], curve[-1]],
            percent="{:.0%}".format,
        )
    )


@torch.no_grad()
def _next_sentence_accuracy(
    model: BertForPreTraining, tokenizer, ordered: Iterable[str], pairs: int = 2000
) -> float:
    """Accuracy on new pairs of the training text, half of which are consecutive sentences."""
    sentences = itertools.islice(ordered, 20_000)
    rows = Rows.tokenize(sentences, tokenizer, max_length=BackboneConfig.max_length)
    ids, segments, labels = next_sentence_pairs(
        rows, pairs, tokenizer.pad_token_id, np.random.default_rng(1)
    )
    correct = 0
    for part in torch.arange(pairs).split(250):
        mask = (ids[part] != tokenizer.pad_token_id).long()
        out = model(input_ids=ids[part], attention_mask=mask, token_type_ids=segments[part])
        correct += int((out.seq_relationship_logits.argmax(1) == labels[part]).sum())
    return round(correct / pairs, 3)


def _sts_scores(
    folder: str | Path, data_dir: str | Path | None, text: _Text
) -> dict[str, dict[str, float]]:
    """STS scores of [CLS], of the mean over tokens, and of SIF vectors of the same text."""
    model, tokenizer = load_backbone(folder), load_tokenizer(folder)
    rows = Rows.tokenize(text, tokenizer, max_length=BackboneConfig.max_length)
    encoders: dict[str, Encoder] = {
        pooling: SentenceEncoder(model, tokenizer, pooling=pooling) for pooling in ("cls", "mean")
    }
    encoders["SIF mean"] = SifMean.fit(rows, tokenizer, size=model.config.hidden_size)
    scores = {}
    for name, encoder in encoders.items():
        report = evaluate_sts(encoder.encode, STS7, folder=data_dir)
        scores[name] = {task: round(score, 2) for task, score in report.scores.items()}
        scores[name]["average"] = round(report.average, 2)
    return scores
