"""SentEval's own classifier and cross-validation, by which the papers score transfer tasks.

SentEval, Conneau and Kiela 2018, https://arxiv.org/abs/1803.05449, in the settings of SimCSE's
evaluation.py, https://github.com/princeton-nlp/SimCSE.

- Features are not standardised. Rows are sorted by their number of words, then by label.
- The classifier is one linear layer, trained in mini-batches by Adam (or RMSprop) with a penalty on
  weights and biases. After every few epochs it is scored on held-out rows; the best one is kept,
  and training stops when it has failed to improve a few times, not necessarily in a row.
- Tasks without parts: nested cross-validation; its folds do not depend on the seed. TREC, MRPC: the
  penalty is selected by cross-validation on train. SST2: on dev. Except for SST2's, the final
  classifier holds out 5 % of its training rows to stop.
- Each accuracy is rounded to two decimals before it is averaged or compared.

The loss is the mean over a mini-batch: the toolkit asks for the sum by an attribute
(`size_average`) that PyTorch has not read since version 1.0. Classifiers that see equally many rows
draw the same random numbers, so they are trained side by side in one batched product; sums in
another order can differ in the last bit, as they do between a processor and a GPU.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn

from cselab.data.transfer import LabelledText

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
SEED = 1111
"""SentEval's, of the classifiers and of the folds."""
MOST_EPOCHS = 200
HELD_OUT = 0.05


@dataclass(frozen=True)
class Settings:
    """Settings of the classifier and of the cross-validation."""

    folds: int
    optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
    batch_size: int
    patience: int  # failures to improve after which training stops at the next one
    epochs: int  # passes over the training rows between two scores


SETTINGS = {
    "senteval": Settings(10, torch.optim.Adam, batch_size=64, patience=5, epochs=4),
    "senteval-fast": Settings(5, torch.optim.RMSprop, batch_size=128, patience=3, epochs=2),
}
"""SimCSE's modes "test" (the papers' tables) and "fasttest", with PyTorch's learning rates."""


class Fitted(NamedTuple):
    """The best state of k classifiers of c classes, and its accuracy on dev."""

    weight: Tensor  # (k, c, d)
    bias: Tensor  # (k, c)
    accuracy: np.ndarray  # (k,)


def senteval_accuracy(
    x: Mapping[str, np.ndarray],
    y: Mapping[str, np.ndarray],
    settings: Settings,
    *,
    seed: int = SEED,
) -> float:
    """Accuracy x100 of a task, rounded to two decimals.

    Args:
        x: Features of each part, (n, d), in SentEval's order (`sorted_rows`).
        seed: Of the classifiers and, for tasks with parts, of the folds.
    """
    rows, start = {}, 0
    for part, labels in y.items():
        rows[part] = np.arange(start, start + len(labels))
        start += len(labels)
    classes, codes = np.unique(np.concatenate(list(y.values())), return_inverse=True)
    task = _Task(
        torch.as_tensor(np.concatenate(list(x.values())), dtype=torch.float32),
        torch.as_tensor(codes),
        len(classes),
        settings,
        seed,
    )
    if "" in rows:
        folds = task.folds(rows[""], SEED)
        scores = [task.cross_validated(train, test, SEED) for train, test in folds]
        return round(float(np.mean(scores)), 2)
    if "dev" not in rows:
        return task.cross_validated(rows["train"], rows["test"], seed)
    train, dev = rows["train"], rows["dev"]
    best = task.best_penalty([(train, dev)])
    return task.score(task.fit(train[None], dev[None], best), rows["test"])


def sorted_rows(parts: Mapping[str, LabelledText]) -> dict[str, LabelledText]:
    """Rows of each part by number of words (of both texts of a pair), then by label."""
    by_part = {}
    for name, part in parts.items():
        lengths = zip(*([len(text.split()) for text in texts] for texts in part.texts), strict=True)
        keys = list(zip(lengths, part.labels, strict=True))
        by_part[name] = chosen(part, sorted(range(len(keys)), key=keys.__getitem__))
    return by_part


def chosen(part: LabelledText, rows: Sequence[int] | np.ndarray) -> LabelledText:
    """Some rows of a part, in their order."""
    return LabelledText(tuple([texts[i] for i in rows] for texts in part.texts), part.labels[rows])


@dataclass(frozen=True)
class _Task:
    """All rows of a task. x: (n, d); y: (n,), codes from 0."""

    x: Tensor
    y: Tensor
    classes: int
    settings: Settings
    seed: int

    def cross_validated(self, train: np.ndarray, test: np.ndarray, fold_seed: int) -> float:
        """Test accuracy with the penalty that scores best over folds of `train`."""
        best = self.best_penalty(list(self.folds(train, fold_seed)))
        return self.score(self.fit(train[None], None, best), test)

    def best_penalty(self, folds: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """(1,): the first of the best by mean accuracy, after SentEval's rounding."""
        accuracy, times = np.empty((len(PENALTIES), len(folds))), len(PENALTIES)
        for size in {len(part) for part, _ in folds}:
            some = [i for i, (part, _) in enumerate(folds) if len(part) == size]
            train, dev = (
                np.tile(np.stack([folds[i][k] for i in some]), (times, 1)) for k in (0, 1)
            )
            fitted = self.fit(train, dev, np.repeat(PENALTIES, len(some)))
            accuracy[:, some] = fitted.accuracy.reshape(times, len(some))
        rounded = [round(100 * float(value), 2) for value in accuracy.mean(axis=1)]
        return np.array([PENALTIES[int(np.argmax(rounded))]])

    def folds(self, rows: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Pairs of (training rows, held-out rows)."""
        splitter = StratifiedKFold(self.settings.folds, shuffle=True, random_state=seed)
        for train, held_out in splitter.split(rows, self.y[rows]):
            yield rows[train], rows[held_out]

    def score(self, fitted: Fitted, rows: np.ndarray) -> float:
        """Rounded accuracy x100 of a single classifier."""
        right = _right(self.x[rows][None], self.y[rows][None], fitted.weight, fitted.bias)
        return round(100 * right.item() / len(rows), 2)

    def fit(self, train: np.ndarray, dev: np.ndarray | None, penalty: np.ndarray) -> Fitted:
        """Train k classifiers side by side; each stops by itself.

        Args:
            train: Rows to learn from, (k, n).
            dev: Rows to stop by, (k, m); None for a random `HELD_OUT` part of `train`.
            penalty: On the squared weights, (k,).
        """
        random = np.random.RandomState(self.seed)
        if dev is None:
            order = random.permutation(train.shape[1])
            first = int(HELD_OUT * len(order))
            train, dev = train[:, order[first:]], train[:, order[:first]]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            layer = nn.Linear(self.x.shape[1], self.classes)
        count = len(penalty)
        weight = nn.Parameter(layer.weight.detach().expand(count, -1, -1).clone())
        bias = nn.Parameter(layer.bias.detach().expand(count, -1).clone())
        best = Fitted(weight.detach().clone(), bias.detach().clone(), np.full(count, -1.0))
        optimizer = self.settings.optimizer([weight, bias])
        running, epoch = np.arange(count), 0
        failures: np.ndarray = np.zeros(count, int)
        dev_x, dev_y = self.x[dev], self.y[dev]
        while len(running) and epoch <= MOST_EPOCHS:
            for _ in range(self.settings.epochs):
                order = random.permutation(train.shape[1])
                self._epoch(optimizer, train[running][:, order], penalty[running])
            epoch += self.settings.epochs
            right = _right(dev_x[running], dev_y[running], weight.detach(), bias.detach())
            accuracy = right.numpy() / dev.shape[1]
            better = accuracy > best.accuracy[running]
            improved = running[better]
            best.weight[improved], best.bias[improved] = weight.data[better], bias.data[better]
            best.accuracy[improved] = accuracy[better]
            goes_on = better | (failures[running] < self.settings.patience)
            failures[running[~better]] += 1
            if not goes_on.all():
                _keep(optimizer, torch.from_numpy(goes_on))
                running = running[goes_on]
        return best

    def _epoch(
        self, optimizer: torch.optim.Optimizer, rows: np.ndarray, penalty: np.ndarray
    ) -> None:
        """One pass over rows, (k, n), in their order."""
        weight, bias = optimizer.param_groups[0]["params"]
        penalty = torch.as_tensor(penalty, dtype=torch.float32)
        for chunk in torch.from_numpy(rows).split(self.settings.batch_size, dim=1):
            logits = torch.baddbmm(bias[:, None], self.x[chunk], weight.mT)
            loss = F.cross_entropy(logits.flatten(0, 1), self.y[chunk].flatten(), reduction="sum")
            optimizer.zero_grad()
            (loss / chunk.shape[1]).backward()
            for parameter in (weight, bias):  # the optimizer's own weight decay is one for all
                shape = (-1, *[1] * (parameter.ndim - 1))
                parameter.grad.add_(penalty.view(shape) * parameter.detach())
            optimizer.step()


def _right(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Number of rows of x, (k, n, d), that each classifier gets right, (k,)."""
    logits = torch.baddbmm(bias[:, None], x, weight.mT)
    return (logits.argmax(dim=-1) == y).sum(dim=1)


def _keep(optimizer: torch.optim.Optimizer, which: Tensor) -> None:
    """Drop the parameters and moments of classifiers that have stopped."""
    for parameter in optimizer.param_groups[0]["params"]:
        parameter.grad = None
        parameter.data = parameter.data[which]
        state = optimizer.state[parameter]
        for name, value in state.items():
            if value.ndim:  # the number of steps is one for all
                state[name] = value[which]
