"""What a run of a sweep is measured by, each as rows of the store."""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from cselab.evaluation import StsReport, evaluate_transfer, score_data
from cselab.experiments.scores import MOST_PAIRS, energy, geometry
from cselab.experiments.session import Session
from cselab.experiments.train import dev_score
from cselab.models.encode import Encoder


class Row(NamedTuple):
    """One number.

    Attributes:
        measure: "test", "no captions", "dev", "phenomenon", "alignment", "uniformity", "energy" or
            "transfer".
        task: Name of the data.
        value: Correlations and accuracies are x100.
        n: Pairs or sentences, 0 where it is not counted.
    """

    measure: str
    task: str
    value: float
    n: int


def _sts(session: Session, encoder: Encoder) -> Iterable[Row]:
    """Spearman of each test task and their mean, the same without captions, and of the dev split,
    which alone may choose anything."""
    report = score_data(encoder.encode, session.test_data, resamples=0)
    yield from _scores("test", report)
    some = any(score.data.captions.any() for score in report.tasks.values())
    if some and (rest := report.without_captions()).tasks:
        yield from _scores("no captions", rest)
    yield from _dev(session, encoder)


def _scores(measure: str, report: StsReport) -> Iterable[Row]:
    pairs = {task: len(score.data) for task, score in report.tasks.items()}
    for task, value in report.scores.items():
        yield Row(measure, task, value, pairs[task])
    yield Row(measure, "average", report.average, sum(pairs.values()))


def _dev(session: Session, encoder: Encoder) -> Iterable[Row]:
    """The dev split alone, for sweeps that are to choose settings: they need no test score."""
    score, pairs = dev_score(session, encoder), session.dev_pairs
    yield Row("dev", pairs.task, score, len(pairs))


def _phenomena(session: Session, encoder: Encoder) -> Iterable[Row]:
    """Spearman within each phenomenon of the synthetic STS, whatever the model was trained on."""
    pairs = [session.synthetic_pairs]
    found = score_data(encoder.encode, pairs, resamples=0).tasks["Synthetic"]
    subsets = found.data.subsets or []
    for name, value in found.by_subset.items():
        yield Row("phenomenon", name, value, subsets.count(name))


def _geometry(session: Session, encoder: Encoder) -> Iterable[Row]:
    """On the dev split, as notebook 07 has it; without alignment where no pair is similar."""
    uniformity, alignment = geometry(session, encoder)
    task, n = session.dev_pairs.task, min(len(session.dev_pairs), MOST_PAIRS)
    yield Row("uniformity", task, uniformity, n)
    if not math.isnan(alignment):
        yield Row("alignment", task, alignment, n)


def _energy(session: Session, encoder: Encoder) -> Iterable[Row]:
    """On the text's first hundred sentences; of BERT-like towers only."""
    if (value := energy(session, encoder)) is not None:
        yield Row("energy", "[CLS]", value, len(session.first_sentences(100)))


def _transfer(session: Session, encoder: Encoder) -> Iterable[Row]:
    """Accuracy of a logistic regression; SST2 on 10,000 of its phrases. Minutes, and a data
    folder."""
    scores = evaluate_transfer(encoder.encode, folder=session.data.data_dir, limit=10_000)
    yield from (Row("transfer", task, value, 0) for task, value in scores.items())
    yield Row("transfer", "average", sum(scores.values()) / len(scores), 0)


MEASURES: dict[str, Callable[[Session, Encoder], Iterable[Row]]] = {
    "sts": _sts,
    "dev": _dev,
    "phenomena": _phenomena,
    "geometry": _geometry,
    "energy": _energy,
    "transfer": _transfer,
}
MAIN = ("sts", "dev")
"""Scores; a run that lacks one of them has failed."""
DEFAULT = ("sts", "phenomena", "geometry", "energy")
"""What a run is measured by where nothing is said: scores, and what costs little."""
