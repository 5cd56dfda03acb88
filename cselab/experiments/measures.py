"""Measures of an encoder: its scores on the tests and on dev, its geometry and energy."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.analysis import cls_energy
from cselab.data.csts import load_csts
from cselab.evaluation.couples import rank_couples
from cselab.evaluation.csts import evaluate_csts, with_condition
from cselab.evaluation.geometry import alignment, uniformity
from cselab.evaluation.sts import StsReport, resampled, score_data
from cselab.experiments.run_data import RunData
from cselab.models import Ensemble
from cselab.models.encode import Encoder
from cselab.models.layers import is_bert_like
from cselab.training.distributed import rank_and_world

MOST_PAIRS = 5000
"""Uniformity compares all sentences with all others, in memory."""
RESAMPLES = 200
"""Bootstrap resamples of the test pairs that a store keeps a run's scores of."""
CURVE = "dev curve"
RESAMPLED = {"test": "resample", "no captions": "resample, no captions"}
"""By measure: that of its averages on resamples of the pairs."""
LONG = (CURVE, *RESAMPLED.values())
"""Measures of many numbers a run, which no table of scores shows."""


def score(data: RunData, encoder: Encoder) -> StsReport:
    """Scores of an encoder on the tests."""
    return score_data(encoder.encode, data.test_data)


def dev_score(data: RunData, encoder: Encoder) -> float:
    """Spearman x100 on the dev pairs: what may choose between checkpoints and between settings."""
    return score_data(encoder.encode, [data.dev_pairs], resamples=0).average


def comparison(reports: Mapping[str, StsReport]) -> pandas.DataFrame:
    """Methods by tasks, of reports of the same tasks: score and 95 % bootstrap interval over pairs,
    as text.

    Examples:
        >>> import cselab
        >>> from cselab.evaluation import evaluate_sts
        >>> from cselab.experiments import comparison
        >>> lengths = lambda sentences: [[len(sentence), 10.0] for sentence in sentences]
        >>> report = evaluate_sts(lengths, "Synthetic", resamples=50)
        >>> comparison({"lengths": report})
                          Synthetic
        lengths  19.8  [15.3, 25.8]
    """
    table = {}
    for name, report in reports.items():
        cells = {
            task: f"{s.spearman:.1f}  [{s.low:.1f}, {s.high:.1f}]"
            for task, s in report.tasks.items()
        }
        average = {"average": f"{report.average:.1f}"} if len(report.tasks) > 1 else {}
        table[name] = cells | average
    return pandas.DataFrame.from_dict(table, orient="index")


def geometry(data: RunData, encoder: Encoder) -> tuple[float, float]:
    """(uniformity, alignment) on the dev split.

    Alignment over pairs of the same meaning (`StsData.same_meaning`), NaN where there is none;
    uniformity over all sentences, of at most MOST_PAIRS pairs.
    """
    pairs = data.dev_pairs.subsample(MOST_PAIRS)
    a, b = encoder.encode(pairs.sentences1), encoder.encode(pairs.sentences2)
    close = torch.as_tensor(pairs.same_meaning)
    aligned = alignment(a[close], b[close]).item() if close.any() else math.nan
    return uniformity(torch.cat([a, b])).item(), aligned


def energy(data: RunData, encoder: Encoder) -> float | None:
    """Energy of [CLS], a mean over layers, towers and the text's first hundred sentences; None
    without BERT-like towers.

    JTCSE Eq. 6, https://arxiv.org/abs/2505.02366; see `cselab.analysis.cls_energy`.
    """
    text = data.sentences(100)
    values = [cls_energy(*tower, text).mean().item() for tower in _towers(encoder)]
    return sum(values) / len(values) if values else None


def _towers(encoder: Encoder) -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerBase]]:
    """BERT-like towers with their tokenizers; the members of an ensemble have their own."""
    encoder = getattr(encoder, "encoder", encoder)  # of `Trained`
    if isinstance(encoder, Ensemble):
        for member in encoder.members:
            yield from _towers(member)
    elif (tokenizer := getattr(encoder, "tokenizer", None)) is not None:
        for model in getattr(encoder, "backbones", ()):
            if is_bert_like(model.config):
                yield model, tokenizer


class Row(NamedTuple):
    """One number.

    Attributes:
        measure: "test", "no captions", "dev", "change", "alignment", "uniformity", "energy",
            "transfer", "senteval-transfer" or "csts"; CURVE, whose tasks are steps; those of
            RESAMPLED, whose tasks are numbers.
        task: Name of the data.
        value: Correlations, shares and accuracies are x100.
        n: Pairs or sentences, 0 where it is not counted.
    """

    measure: str
    task: str
    value: float
    n: int


def _sts(data: RunData, encoder: Encoder, resamples: int = 0) -> Iterable[Row]:
    """Spearman of each test task and their mean, the same without captions, and of the dev split,
    which alone may choose anything; the two means also on bootstrap resamples of the pairs."""
    report = score_data(encoder.encode, data.test_data, resamples=0)
    yield from _scores("test", report)
    yield from _resampled("test", report, resamples)
    has_captions = any(score.data.captions.any() for score in report.tasks.values())
    if has_captions and (rest := report.without_captions()).tasks:
        yield from _scores("no captions", rest)
        yield from _resampled("no captions", rest, resamples)
    yield from _dev(data, encoder)


def _scores(measure: str, report: StsReport) -> Iterable[Row]:
    """Rows of each task, and of their mean."""
    pairs = {task: len(score.data) for task, score in report.tasks.items()}
    for task, value in report.scores.items():
        yield Row(measure, task, value, pairs[task])
    yield Row(measure, "average", report.average, sum(pairs.values()))


def _resampled(measure: str, report: StsReport, resamples: int) -> Iterable[Row]:
    """The mean over tasks on resamples of the pairs of each task, by number; they are the same for
    every encoder, as `cselab.evaluation.compare_crossed` needs them."""
    random, tasks = np.random.default_rng(0), report.tasks.values()
    scores = [
        resampled((task.similarities,), task.data.scores, resamples, random)[:, 0] for task in tasks
    ]
    pairs = sum(len(task.data) for task in tasks)
    for i, value in enumerate(np.mean(scores, axis=0)):
        yield Row(RESAMPLED[measure], str(i), float(value), pairs)


def _dev(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """The dev split alone, for sweeps that are to choose settings: they need no test score."""
    score, pairs = dev_score(data, encoder), data.dev_pairs
    yield Row("dev", pairs.task, score, len(pairs))


def _changes(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """Share of synthetic couples whose paraphrase is nearer than the changed copy, by change."""
    for name, ranked in rank_couples(encoder.encode).items():
        yield Row("change", name, ranked.share, len(ranked.right))


def _geometry(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """On the dev split, at most MOST_PAIRS pairs; without alignment where no pair is similar."""
    uniformity, alignment = geometry(data, encoder)
    task, n = data.dev_pairs.task, min(len(data.dev_pairs), MOST_PAIRS)
    yield Row("uniformity", task, uniformity, n)
    if not math.isnan(alignment):
        yield Row("alignment", task, alignment, n)


def _energy(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """On the text's first hundred sentences; of BERT-like towers only."""
    if (value := energy(data, encoder)) is not None:
        yield Row("energy", "[CLS]", value, len(data.sentences(100)))


def _csts(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """On the validation split, which picks nothing."""
    pairs = load_csts("dev", folder=data.config.data_dir)
    score = evaluate_csts(with_condition(encoder).encode, pairs, resamples=0)
    yield Row("csts", pairs.task, score.spearman, len(pairs))


def _transfer(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """Accuracy of a logistic regression on standardised features; SST2 on 10,000 of its phrases.
    Minutes, and a data folder or the hub."""
    return _transfer_rows("transfer", data, encoder, limit=10_000)


def _senteval_transfer(data: RunData, encoder: Encoder) -> Iterable[Row]:
    """Accuracy as the papers' tables have it: raw features, all of SST2, SentEval's classifier.

    The papers call it a logistic regression; SimCSE's evaluation.py
    (https://github.com/princeton-nlp/SimCSE) sets `usepytorch`, so it is a linear layer trained by
    Adam until its held-out score stops improving (`cselab.evaluation.senteval`), not SentEval's
    scikit-learn form. An hour or more, and a data folder or the hub.
    """
    return _transfer_rows("senteval-transfer", data, encoder, protocol="senteval")


def _transfer_rows(measure: str, data: RunData, encoder: Encoder, **options: Any) -> Iterable[Row]:
    """Rows of the tasks and of their mean."""
    from cselab.evaluation.transfer import evaluate_transfer  # with sklearn, tenths of a second

    options |= {"folder": data.config.data_dir, "hub": data.config.hub}
    scores = evaluate_transfer(encoder.encode, **options)
    yield from (Row(measure, task, value, 0) for task, value in scores.items())
    yield Row(measure, "average", sum(scores.values()) / len(scores), 0)


MEASURES: dict[str, Callable[[RunData, Encoder], Iterable[Row]]] = {
    "sts": _sts,
    "dev": _dev,
    "resamples": partial(_sts, resamples=RESAMPLES),
    "changes": _changes,
    "geometry": _geometry,
    "energy": _energy,
    "transfer": _transfer,
    "senteval-transfer": _senteval_transfer,
    "csts": _csts,
}
MAIN = ("sts", "resamples", "dev")
"""Scores; a run that lacks one of them has failed."""
DEFAULT = ("sts", "changes", "geometry", "energy")
"""Default measures: scores, and what costs little."""


def measure(data: RunData, encoder: Encoder, names: Sequence[str]) -> list[Row]:
    """Measure an encoder.

    A measure besides the scores that fails is mentioned and left out, unless it is the only one.
    """
    rows: list[Row] = []
    failed = None
    for name in names:
        try:
            rows += MEASURES[name](data, encoder)
        except Exception as error:  # also a full memory
            if name in MAIN:
                raise
            failed = error
            if not rank_and_world()[0]:
                reason = " ".join(str(error).split())[:200]
                print(f"{name} is left out ({type(error).__name__}: {reason})")
    if failed and not rows:
        raise failed
    return list({(row.measure, row.task): row for row in rows}.values())  # "sts" has dev too
