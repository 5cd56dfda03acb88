"""SentEval's protocol against the toolkit's procedure, one classifier after another."""

import copy
import dataclasses
import gzip
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from sklearn.model_selection import StratifiedKFold
from torch import nn

from cselab.data import transfer as data
from cselab.data.settings import DataConfig
from cselab.data.transfer import LabelledText
from cselab.evaluation import transfer
from cselab.evaluation.senteval import SETTINGS, senteval_accuracy, sorted_rows
from cselab.experiments.measures import measure
from cselab.experiments.run_data import RunData

REGULARISATION = [10**power for power in range(-5, -1)]


class OneClassifier:
    """The toolkit's classifier, written from its description: own seed, own optimizer, one fit."""

    def __init__(self, settings, width, classes, penalty, seed):
        self.settings, self.random = settings, np.random.RandomState(seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.model = nn.Sequential(nn.Linear(width, classes))
        self.optimizer = settings.optimizer(self.model.parameters())
        self.optimizer.param_groups[0]["weight_decay"] = penalty

    def fit(self, x, y, dev=None):
        if dev is None:
            order = self.random.permutation(len(x))
            count = int(0.05 * len(x))
            dev = x[order[:count]], y[order[:count]]
            x, y = x[order[count:]], y[order[count:]]
        x, y = torch.FloatTensor(x), torch.LongTensor(y)
        best, count, epoch, stop = -1, 0, 0, False
        while not stop and epoch <= 200:
            for _ in range(self.settings.epochs):
                order = self.random.permutation(len(x))
                for i in range(0, len(x), self.settings.batch_size):
                    rows = torch.LongTensor(order[i : i + self.settings.batch_size])
                    loss = nn.CrossEntropyLoss()(self.model(x[rows]), y[rows])
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
            epoch += self.settings.epochs
            accuracy = self.score(*dev)
            if accuracy > best:
                best, best_model = accuracy, copy.deepcopy(self.model)
            else:
                stop = count >= self.settings.patience
                count += 1
        self.model = best_model

    def score(self, x, y):
        found = self.model(torch.FloatTensor(x)).argmax(1).numpy()
        return (found == y).sum() / len(y)


def selected(x, y, folds, classifier):
    scores = []
    for penalty in REGULARISATION:
        found = []
        for train, dev in folds:
            one = classifier(penalty)
            one.fit(x[train], y[train], (x[dev], y[dev]))
            found.append(one.score(x[dev], y[dev]))
        scores.append(round(100 * np.mean(found), 2))
    return REGULARISATION[int(np.argmax(scores))]


def toolkit(x, y, settings, seed=1111):
    """Accuracy by the toolkit's three procedures."""
    width, classes = next(iter(x.values())).shape[1], len(set(next(iter(y.values()))))

    def classifier(penalty):
        return OneClassifier(settings, width, classes, penalty, seed)

    def with_folds(x, y, test_x, test_y, fold_seed):
        splitter = StratifiedKFold(settings.folds, shuffle=True, random_state=fold_seed)
        one = classifier(selected(x, y, list(splitter.split(x, y)), classifier))
        one.fit(x, y)
        return round(100 * one.score(test_x, test_y), 2)

    if "" in x:
        x, y = x[""], y[""]
        outer = StratifiedKFold(settings.folds, shuffle=True, random_state=1111).split(x, y)
        found = [with_folds(x[a], y[a], x[b], y[b], 1111) for a, b in outer]
        return round(np.mean(found), 2)
    if "dev" not in x:
        return with_folds(x["train"], y["train"], x["test"], y["test"], seed)
    scores = []
    for penalty in REGULARISATION:
        one = classifier(penalty)
        one.fit(x["train"], y["train"], (x["dev"], y["dev"]))
        scores.append(round(100 * one.score(x["dev"], y["dev"]), 2))
    one = classifier(REGULARISATION[int(np.argmax(scores))])
    one.fit(x["train"], y["train"], (x["dev"], y["dev"]))
    return round(100 * one.score(x["test"], y["test"]), 2)


def task(sizes, classes=2, width=5, offset=0.0, scale=1.0, seed=0):
    """Noisy features of each part, which a linear layer cannot separate."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(classes, width))
    x, y = {}, {}
    for part, size in sizes.items():
        y[part] = random.integers(classes, size=size)
        noise = random.normal(size=(size, width))
        x[part] = (offset + scale * (centres[y[part]] + 1.5 * noise)).astype(np.float32)
    return x, y


@pytest.mark.parametrize("protocol", SETTINGS)
@pytest.mark.parametrize(
    ("sizes", "classes"),
    [({"": 143}, 2), ({"train": 171, "test": 90}, 6), ({"train": 203, "dev": 61, "test": 90}, 2)],
)
def test_classifiers_side_by_side_are_the_toolkits_one_by_one(protocol, sizes, classes):
    """Prevents another stop, order, penalty or seed of folds, and a stopped classifier's moments;
    folds of these sizes differ by a row."""
    quick = dataclasses.replace(SETTINGS[protocol], folds=3)
    x, y = task(sizes, classes, seed=7)
    labels = {part: codes.astype(str) for part, codes in y.items()}
    assert senteval_accuracy(x, labels, quick, seed=7) == toolkit(x, y, quick, 7)


def test_the_measure_of_a_sweep_is_the_toolkits(tmp_path, monkeypatch):
    """Prevents standardised features, and a part of SST2's rows, in a row beside the papers'."""
    sizes = {"train": 11_000, "dev": 301, "test": 3_000}
    x, y = task(sizes, seed=7)
    (tmp_path / "transfer").mkdir()
    vectors: dict[str, np.ndarray] = {}
    for part, size in sizes.items():
        words = np.sort(np.random.default_rng(1).integers(1, 9, size))  # the toolkit's order
        order = np.lexsort((y[part], words))
        x[part], y[part] = x[part][order], y[part][order]
        texts = [f"{part}{i}" + " word" * n for i, n in enumerate(words)]
        vectors |= zip(texts, x[part], strict=True)
        rows = (f"{text}\t{label}\n" for text, label in zip(texts, y[part], strict=True))
        with gzip.open(tmp_path / "transfer" / f"sst2-{part}.tsv.gz", "wt") as file:
            file.writelines(["text\tlabel\n", *rows])
    monkeypatch.setattr(data, "COUNTS", {"SST2": sizes})
    monkeypatch.setattr(transfer.evaluate_transfer, "__defaults__", (("SST2",),))
    quick = dataclasses.replace(SETTINGS["senteval"], batch_size=1000, patience=1, epochs=1)
    monkeypatch.setitem(SETTINGS, "senteval", quick)
    encoder = Mock(encode=lambda texts: np.stack([vectors[text] for text in texts]))
    found = measure(RunData(DataConfig(data_dir=tmp_path)), encoder, ["senteval-transfer"])
    expected = toolkit(x, y, quick)
    assert [(*row,) for row in found] == [
        ("senteval-transfer", name, expected, 0) for name in ("SST2", "average")
    ]


def test_no_random_state_is_left_changed():
    """Prevents a training that goes another way because a score was taken."""
    x, y = task({"train": 60, "dev": 20, "test": 20})
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    senteval_accuracy(x, y, SETTINGS["senteval-fast"])
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


def test_rows_are_sorted_as_the_toolkit_sorts_them():
    """Prevents folds of other rows: by words, then by label, and otherwise as in the file."""
    texts = ["c c", "b", "", "d d", "a"]
    part = LabelledText((texts,), np.array(["1", "1", "0", "0", "0"]))
    found = sorted_rows({"": part})[""]
    assert found.texts == (["", "a", "b", "d d", "c c"],)
    assert found.labels.tolist() == ["0", "0", "1", "0", "1"]
    pairs = LabelledText((["x", "x", "x x"], ["y y", "y", ""]), np.array(["0", "1", "0"]))
    assert sorted_rows({"": pairs})[""].texts == (["x", "x", "x x"], ["y", "y y", ""])
