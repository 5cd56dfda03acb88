"""Transfer: a logistic regression on frozen embeddings, SentEval's protocol with scikit-learn (Conneau and Kiela 2018).

MR, CR, SUBJ, MPQA: 10-fold cross-validation, the strength of the penalty chosen anew in each fold by 5-fold
cross-validation inside its training part. SST2: chosen on dev. TREC, MRPC: chosen by 5-fold cross-validation on train.
Folds are stratified, shuffled and seeded. Features are standardised on the training part. MRPC's are |u - v| and u * v.

SentEval itself trains with torch and SGD by default; scores differ from its by some tenths.
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
from cselab.evaluation.sts import finite_rows

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Inverse penalties C that are tried."""


def evaluate_transfer(
    encode: Callable[[list[str]], Any],
    tasks: Sequence[str] = TRANSFER7,
    *,
    folder: str | Path | None = None,
    limit: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Accuracy x100 by task. encode: list of n strings -> (n, d); each distinct sentence is encoded once a task.

    limit: training rows of SST2, whose 67,349 phrases take most of the time; None for all of them, as in the papers.

    Raises DataError as `load_transfer` does, and for bad vectors as `evaluate_sts`.
    """
    return {task: _score(encode, task, load_transfer(task, folder), limit, seed) for task in tasks}


def _score(encode: Callable, task: str, parts: dict[str, LabelledText], limit: int | None, seed: int) -> float:
    if limit is not None and task == "SST2":
        parts["train"] = _some(parts["train"], limit, seed)
    return _accuracy(features(encode, parts), {name: part.labels for name, part in parts.items()}, seed)


# Fits this small lose up to a hundredfold to threads that wait for each other on busy cores.
@threadpool_limits.wrap(limits=1)
def _accuracy(x: dict[str, np.ndarray], y: dict[str, np.ndarray], seed: int) -> float:
    if "" in x:
        return _cross_validated(x[""], y[""], seed)
    if "dev" in x:
        both = np.concatenate([x["train"], x["dev"]]), np.concatenate([y["train"], y["dev"]])
        inner = PredefinedSplit(np.repeat([-1, 0], [len(y["train"]), len(y["dev"])]))
        strength = _search(inner).fit(*both).best_params_
        model = _classifier().set_params(**strength).fit(x["train"], y["train"])
    else:
        model = _search(_folds(5, seed)).fit(x["train"], y["train"])
    return 100 * float(model.score(x["test"], y["test"]))


def features(encode: Callable[[list[str]], Any], parts: dict[str, LabelledText]) -> dict[str, np.ndarray]:
    """(n, d) a part: the embeddings; of pairs (n, 2d), |u - v| beside u * v."""
    sentences = list(dict.fromkeys(s for part in parts.values() for texts in part.texts for s in texts))
    vectors = finite_rows(encode(sentences), len(sentences)).astype(np.float32)
    row = {sentence: i for i, sentence in enumerate(sentences)}
    found = {}
    for name, part in parts.items():
        sides = [vectors[[row[s] for s in texts]] for texts in part.texts]
        found[name] = sides[0] if len(sides) == 1 else np.hstack([abs(sides[0] - sides[1]), sides[0] * sides[1]])
    return found


def _cross_validated(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    right = 0
    for train, test in _folds(10, seed).split(x, y):
        model = _search(_folds(5, seed)).fit(x[train], y[train])
        right += int((model.predict(x[test]) == y[test]).sum())
    return 100 * right / len(y)


def _classifier():
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=200, tol=1e-3))


def _search(folds) -> GridSearchCV:
    return GridSearchCV(_classifier(), {"logisticregression__C": STRENGTHS}, cv=folds)


def _folds(count: int, seed: int) -> StratifiedKFold:
    return StratifiedKFold(count, shuffle=True, random_state=seed)


def _some(part: LabelledText, limit: int, seed: int) -> LabelledText:
    chosen = np.random.default_rng(seed).permutation(len(part.labels))[:limit]
    return LabelledText(tuple([texts[i] for i in chosen] for texts in part.texts), part.labels[chosen])
