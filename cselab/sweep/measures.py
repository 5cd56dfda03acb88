"""What a run of a sweep is measured by, each as rows of the store."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple

from cselab import stages
from cselab.analysis import cls_energy
from cselab.evaluation import StsReport, evaluate_transfer, score_data
from cselab.lab import Lab
from cselab.systems import Encoder


class Row(NamedTuple):
    """One number. measure: "test", "no captions", "dev", "phenomenon", "alignment", "uniformity", "energy" or "transfer"; task: of which
    data; n: pairs or sentences, 0 where it is not counted. Correlations and accuracies are x100."""

    measure: str
    task: str
    value: float
    n: int


def _sts(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """Spearman of each test task and their mean, the same without captions, and of the dev split, which alone may choose anything."""
    report = score_data(encoder.encode, stages.test_data(lab), resamples=0)
    yield from _scores("test", report)
    some = any(score.data.captions.any() for score in report.tasks.values())
    if some and (rest := report.without_captions()).tasks:
        yield from _scores("no captions", rest)
    yield from _dev(lab, encoder)


def _scores(measure: str, report: StsReport) -> Iterable[Row]:
    pairs = {task: len(score.data) for task, score in report.tasks.items()}
    yield from (Row(measure, task, value, pairs[task]) for task, value in report.scores.items())
    yield Row(measure, "average", report.average, sum(pairs.values()))


def _dev(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """The dev split alone, for sweeps that are to choose settings: they need not know a test score."""
    yield Row("dev", stages.dev_task(lab), stages.dev_score(lab, encoder.encode), len(stages.dev_pairs(lab)))


def _phenomena(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """Spearman within each phenomenon of the generated world, whatever the model was trained on."""
    world = score_data(encoder.encode, [stages.world_pairs(lab)], resamples=0).tasks["World"]
    for name, value in world.by_subset.items():
        yield Row("phenomenon", name, value, world.data.subsets.count(name))


def _geometry(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """On the dev split, as notebook 07 has it."""
    uniformity, alignment = stages.geometry(lab, encoder.encode)
    task, n = stages.dev_task(lab), len(stages.dev_pairs(lab))
    yield from (Row("uniformity", task, uniformity, n), Row("alignment", task, alignment, n))


def _energy(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """JTCSE Eq. 6, a mean over layers, towers and the text's first hundred sentences; of BERT-like towers only."""
    towers = [model for model in getattr(encoder, "backbones", ()) if hasattr(model, "encoder")]
    if towers and hasattr(encoder, "tokenizer"):
        text = list(islice(stages.sentences(lab), 100))
        values = [cls_energy(tower, encoder.tokenizer, text).mean().item() for tower in towers]
        yield Row("energy", "[CLS]", sum(values) / len(values), len(text))


def _transfer(lab: Lab, encoder: Encoder) -> Iterable[Row]:
    """Accuracy of a logistic regression; SST2 on 10,000 of its phrases. Minutes, and a data folder."""
    scores = evaluate_transfer(encoder.encode, folder=lab.settings.data_dir, limit=10_000)
    yield from (Row("transfer", task, value, 0) for task, value in scores.items())
    yield Row("transfer", "average", sum(scores.values()) / len(scores), 0)


MEASURES: dict[str, Callable[[Lab, Encoder], Iterable[Row]]] = {
    "sts": _sts, "dev": _dev, "phenomena": _phenomena, "geometry": _geometry, "energy": _energy, "transfer": _transfer,
}  # fmt: skip
DEFAULT = ("sts", "phenomena", "geometry", "energy")
"""What a run is measured by where nothing is said: scores, and what costs little."""
