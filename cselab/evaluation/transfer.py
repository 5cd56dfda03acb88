"""Transfer tasks: a logistic regression on frozen embeddings.

The tasks are those of SentEval, Conneau and Kiela 2018, https://arxiv.org/abs/1803.05449. The
protocol "standardised" is ours; `cselab.evaluation.senteval` has the papers'.

- MR, CR, SUBJ, MPQA: 10-fold cross-validation; the penalty is selected in each fold by 5-fold
  cross-validation inside its training part.
- SST2: the penalty is selected on dev.
- TREC, MRPC: the penalty is selected by 5-fold cross-validation on train.

Folds are stratified, shuffled and seeded. Features are standardised on the training part; those of
MRPC are |u - v| and u * v, in both protocols.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, PredefinedSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from cselab.data.transfer import TRANSFER7, LabelledText, load_transfer
from cselab.errors import SettingsError, suggest
from cselab.evaluation import senteval
from cselab.evaluation.sts import finite_rows

PROTOCOLS = ("standardised", *senteval.SETTINGS)

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse penalties C to select from."""


def evaluate_transfer(
    encode: Callable[[list[str]], Any],
    tasks: str | Sequence[str] = TRANSFER7,
    *,
    folder: str | Path | None = None,
    hub: bool = False,
    limit: int | None = None,
    protocol: str = "standardised",
    seed: int | None = None,
) -> dict[str, float]:
    """Accuracy x100 of each transfer task.

    Needs a data folder with the tasks' official files:
    `evaluate_transfer(cselab.load("tiny-bert").encode, ["TREC"], folder="data")["TREC"]`.

    Args:
        encode: List of n strings -> (n, d); called once per task, with its distinct sentences.
        folder: As in `load_transfer`, as is `hub`.
        limit: Training rows of SST2, whose 67,349 phrases take most of the time; None for all, as
            in the papers.
        protocol: "standardised": scikit-learn on standardised features. "senteval": the papers'
            classifier, on features as they are; published scores are of this protocol.
            "senteval-fast": the same with fewer folds and epochs.
        seed: Seed of folds and classifiers; None is 0, and SentEval's 1111 for its protocol.

    Raises:
        SettingsError: For an unknown protocol.
        DataError: As `load_transfer`, and for bad vectors.
    """
    if protocol not in PROTOCOLS:
        raise SettingsError(f"unknown protocol {protocol!r}; {suggest(protocol, PROTOCOLS)}")
    if seed is None:
        seed = 0 if protocol == "standardised" else senteval.SEED
    scores = {}
    for task in (tasks,) if isinstance(tasks, str) else tasks:
        parts = load_transfer(task, folder, hub=hub)
        if limit is not None and task == "SST2":
            rows = np.random.default_rng(seed).permutation(len(parts["train"].labels))[:limit]
            parts["train"] = senteval.chosen(parts["train"], rows)
        if protocol != "standardised":
            parts = senteval.sorted_rows(parts)
        labels = {name: part.labels for name, part in parts.items()}
        scores[task] = _accuracy(features(encode, parts), labels, protocol, seed)
    return scores


# One thread: on busy cores, several threads make fits of this size up to a hundred times slower.
@threadpool_limits.wrap(limits=1)
def _accuracy(
    x: dict[str, np.ndarray], y: dict[str, np.ndarray], protocol: str, seed: int
) -> float:
    if protocol != "standardised":
        return senteval.senteval_accuracy(x, y, senteval.SETTINGS[protocol], seed=seed)
    if "" in x:
        correct, (x_all, y_all) = 0, (x[""], y[""])
        for train, test in _folds(10, seed).split(x_all, y_all):
            model = _search(_folds(5, seed)).fit(x_all[train], y_all[train])
            correct += int((model.predict(x_all[test]) == y_all[test]).sum())
        return 100 * correct / len(y_all)
    if "dev" in x:
        both = np.concatenate([x["train"], x["dev"]]), np.concatenate([y["train"], y["dev"]])
        inner = PredefinedSplit(np.repeat([-1, 0], [len(y["train"]), len(y["dev"])]))
        strength = _search(inner).fit(*both).best_params_
        model = _classifier().set_params(**strength).fit(x["train"], y["train"])
    else:
        model = _search(_folds(5, seed)).fit(x["train"], y["train"])
    return 100 * float(model.score(x["test"], y["test"]))


def features(
    encode: Callable[[list[str]], Any], parts: dict[str, LabelledText]
) -> dict[str, np.ndarray]:
    """Features of each part: embeddings, (n, d), or for pairs |u - v| and u * v, (n, 2d)."""
    sentences = list(
        dict.fromkeys(s for part in parts.values() for texts in part.texts for s in texts)
    )
    vectors: np.ndarray = finite_rows(encode(sentences), len(sentences)).astype(np.float32)
    row = {sentence: i for i, sentence in enumerate(sentences)}
    by_part = {}
    for name, part in parts.items():
        u, *others = (vectors[[row[s] for s in texts]] for texts in part.texts)
        by_part[name] = np.hstack([abs(u - others[0]), u * others[0]]) if others else u
    return by_part


def _classifier():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=1e-3))


def _search(folds) -> GridSearchCV:
    return GridSearchCV(_classifier(), {"logisticregression__C": STRENGTHS}, cv=folds)


def _folds(count: int, seed: int) -> StratifiedKFold:
    return StratifiedKFold(count, shuffle=True, random_state=seed)
