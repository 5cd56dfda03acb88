"""A process of `test_processes.py`: `python processes.py FOLDER [compile | resume]`.

FOLDER holds tower_i, tower_ii and text.txt; results are written there.
"""

import contextlib
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import datasets
import torch
from transformers import TrainerCallback

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.methods import Method, Schedule, create, registered
from cselab.models import load_tokenizer
from cselab.training.distributed import rank_and_world

fit_module = importlib.import_module("cselab.training.fit")  # the package's `fit` is the function
# two processes get 5 and 4 sentences
PLAN = {"batch_size": 9, "learning_rate": 1e-3, "max_length": 16}
ROWS = {"artificial_rows": 5}


def build(folder: Path, name: str, dropout: float, terms: Sequence[str] = ()) -> Method:
    kind = registered(name)
    changes = {"dropout": dropout}
    if terms:
        changes["terms"] = {term: ROWS if term == "barlow" else {} for term in terms}
    if name == "jtcse":
        changes["caels"] = 1
    if name == "esimcse":
        changes["augment"] = ("same", "same")  # each process would draw other words
    towers = [str(folder / "tower_i"), str(folder / "tower_ii")]
    return create(kind.Config().changed(changes), folders=towers[: len(kind.tower_names)])


def text(folder: Path) -> datasets.Dataset:
    corpus, tokenizer = load_corpus([str(folder / "text.txt")]), load_tokenizer(folder / "tower_i")
    return tokenize_corpus(corpus, tokenizer, max_length=16, cache_dir=folder / "cache")


def gradients_and_losses(folder: Path, name: str, terms: Sequence[str] = (), **switches) -> dict:
    """One step of `fit` without dropout: the gradient the optimizer sees, and the terms."""
    found, method = {}, build(folder, name, 0, terms)
    method.double()  # float32 rounds the column statistics differently in another order of sums

    class Look(TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
            gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            found["gradients"] = {name: grad.clone() for name, grad in gradients.items()}

    class Trainer(fit_module.ContrastiveTrainer):
        def train(self, **kwargs):
            self.add_callback(Look())
            return super().train(**kwargs)

    plan = Schedule(**PLAN, steps=1, eval_every=1, **switches)
    with mock.patch.object(fit_module, "ContrastiveTrainer", Trainer):
        # a dev score of its own a process: the first one's must hold for all
        own = lambda method: float(rank_and_world()[0])  # noqa: E731
        result = fit_module.fit(method, text(folder), plan, dev=own, seed=3)
    return {**found, "history": result.history, "weights": method.state_dict()}


def weights_whole_and_resumed(folder: Path) -> list[dict]:
    """Weights of a run with dropout in one go, and of one interrupted after its third mark."""
    plan = Schedule(**PLAN, steps=12, eval_every=2)

    def train(marks: int, checkpoints: Path | None) -> dict:
        scores, method = iter(range(marks)), build(folder, "jtcse", dropout=0.1)
        options = {"dev": lambda m: next(scores), "seed": 3, "checkpoints": checkpoints}
        fit_module.fit(method, text(folder), plan, **options)
        return method.state_dict()

    whole = train(7, None)
    with contextlib.suppress(StopIteration):  # the dev score stands for a kill
        train(3, folder / "run")
    assert (folder / "run").exists()
    return [whole, train(7, folder / "run")]


# negatives from a pass without dropout, and losses over the columns of the whole batch
COLUMNS = ("off_info", "dcl", "barlow")
CASES = [
    ("simcse", (), 0),
    ("jtcse", (), 0),
    ("simcse", COLUMNS, 0),
    ("jtcse", ("nce", "icnce", "ictm", *COLUMNS), 2),
    ("esimcse", (), 0),
    ("esimcse", (), 2),
]
COMPILED = [CASES[1]]
"""Two towers: minutes of compiling."""

if __name__ == "__main__":
    folder, compiled = Path(sys.argv[1]), sys.argv[2:] == ["compile"]
    if sys.argv[2:] == ["resume"]:
        torch.save(weights_whole_and_resumed(folder), folder / f"resumed-{rank_and_world()[0]}.pt")
        sys.exit()
    found = [
        gradients_and_losses(folder, name, terms, chunk=chunk, compile=compiled)
        for name, terms, chunk in (COMPILED if compiled else CASES)
    ]
    graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"] if compiled else 0
    name = "compiled" if compiled else rank_and_world()[0]
    torch.save([graphs, *found], folder / f"found-{name}.pt")
