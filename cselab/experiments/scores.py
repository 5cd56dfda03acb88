"""Scores: an encoder on a session's tests, phenomenon by phenomenon; its geometry and energy."""

import math
from collections.abc import Iterator, Mapping

import pandas
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.analysis import cls_energy
from cselab.evaluation import StsReport, alignment, score_data, uniformity
from cselab.experiments.config import RunConfig
from cselab.experiments.session import Session
from cselab.experiments.train import train
from cselab.experiments.workspace import Workspace
from cselab.models import Ensemble
from cselab.models.encode import Encoder

MOST_PAIRS = 5000
"""Uniformity compares all sentences with all others, in memory."""


def evaluate(run: RunConfig, session: Session | None = None) -> StsReport:
    """Scores of a run on its tests; the run is trained first, or found trained.

    Args:
        run: The run, from `configure`.
        session: Whose data has been read already; None: a new one.

    Raises:
        CselabError: As `train`.

    Examples:
        >>> from cselab.experiments import configure, evaluate
        >>> run = configure("untrained", changes={"synthetic_pairs": 20})
        >>> list(evaluate(run).scores)
        ['Synthetic']
    """
    if session is None:
        session = Session(Workspace(run.machine), run.data)
    return score(session, train(run, session))


def score(session: Session, encoder: Encoder) -> StsReport:
    """Scores of an encoder on the session's tests."""
    return score_data(encoder.encode, session.test_data)


def comparison(reports: Mapping[str, StsReport]) -> pandas.DataFrame:
    """Methods by tasks: score and 95 % bootstrap interval over pairs, as text.

    Args:
        reports: Reports by name of the method, all of the same tasks.

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


def phenomena(
    session: Session, encoder: Encoder, report: StsReport | None = None
) -> Mapping[str, float]:
    """Spearman x100 within each phenomenon of the synthetic test pairs.

    Args:
        session: Whose pairs are read.
        encoder: The encoder.
        report: Scores of the encoder, which are read if they have the synthetic pairs.
    """
    if report is None or "Synthetic" not in report.tasks:
        report = score_data(encoder.encode, [session.synthetic_pairs])
    return report.tasks["Synthetic"].by_subset


def pair_cosines(session: Session, encoder: Encoder) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and gold ratings of the dev pairs."""
    pairs = session.dev_pairs
    a, b = encoder.encode(pairs.sentences1), encoder.encode(pairs.sentences2)
    return torch.cosine_similarity(a, b), torch.as_tensor(pairs.scores)


def geometry(session: Session, encoder: Encoder) -> tuple[float, float]:
    """(uniformity, alignment) on the dev split.

    Alignment over pairs of the same meaning (`StsData.same_meaning`), NaN where there is none;
    uniformity over all sentences, of at most MOST_PAIRS pairs.

    Args:
        session: Whose dev pairs are read.
        encoder: The encoder.
    """
    pairs = session.dev_pairs.subsample(MOST_PAIRS)
    a, b = encoder.encode(pairs.sentences1), encoder.encode(pairs.sentences2)
    close = torch.as_tensor(pairs.same_meaning)
    aligned = alignment(a[close], b[close]).item() if close.any() else math.nan
    return uniformity(torch.cat([a, b])).item(), aligned


def energy(session: Session, encoder: Encoder) -> float | None:
    """Energy of [CLS], a mean over layers, towers and the text's first hundred sentences.

    JTCSE Eq. 6, https://arxiv.org/abs/2505.02366; see `cselab.analysis.cls_energy`.

    Args:
        session: Whose text is read.
        encoder: The encoder.

    Returns:
        The energy; None of an encoder without BERT-like towers.
    """
    text = session.first_sentences(100)
    values = [cls_energy(*tower, text).mean().item() for tower in _towers(encoder)]
    return sum(values) / len(values) if values else None


def _towers(encoder: Encoder) -> Iterator[tuple[PreTrainedModel, PreTrainedTokenizerBase]]:
    """BERT-like towers with their tokenizers; the members of an ensemble have their own."""
    if isinstance(encoder, Ensemble):
        for member in encoder.members:
            yield from _towers(member)
    elif (tokenizer := getattr(encoder, "tokenizer", None)) is not None:
        for model in getattr(encoder, "backbones", ()):
            if hasattr(model, "encoder"):
                yield model, tokenizer
