"""Two processes, cached gradients, precision and compilation change no result."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from build_method import build
from processes import CASES, COMPILED, gradients_and_losses
from training_helpers import same, schedule, train
from transformers import TrainingArguments

from cselab.data.batching import ViewCollator
from cselab.data.corpus import load_corpus
from cselab.data.translation.pivot import LexicalPivot
from cselab.data.translation.round_trip import RoundTrip
from cselab.experiments.store import Store
from cselab.methods import StepContext
from cselab.training.large_batch import _chunks, cached_backward

TWO = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")


def run(*launcher: str, folder: Path, arguments: Sequence[str] = ()) -> None:
    """Run processes.py as a program, without the tests' type checks, which cannot be compiled."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    program = Path(__file__).with_name("processes.py")
    command = [sys.executable, *launcher, program, folder, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]


def close(one: dict, two: dict) -> None:
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(
            one[name], two[name], atol=1e-6, rtol=1e-6, msg=lambda m, name=name: f"{name}: {m}"
        )


@pytest.mark.slow
def test_two_processes_take_the_step_of_one(folder):
    """Prevents negatives or statistics of half a batch, DDP's mean of gradients, and processes
    that disagree about the dev score."""
    run(*TWO, folder=folder)
    ranks = [torch.load(folder / f"found-{rank}.pt")[1:] for rank in range(2)]
    for (name, terms, chunk), first, second in zip(CASES, *ranks, strict=True):
        alone = gradients_and_losses(folder, name, terms, chunk=chunk)
        for found in (first, second):
            close(found["gradients"], alone["gradients"])
            assert found["history"] == first["history"]
            assert found["weights"].keys() == alone["weights"].keys()
            assert same(found["weights"], first["weights"])
        for key, value in alone["history"][1].items():
            assert first["history"][1][key] == pytest.approx(value, rel=1e-5, abs=1e-6), (name, key)


@pytest.mark.slow
def test_two_processes_resume_exactly(folder):
    """Prevents a second process that goes on with the first one's dropout, or elsewhere."""
    run(*TWO, folder=folder, arguments=["resume"])
    for rank in range(2):
        whole, resumed = torch.load(folder / f"resumed-{rank}.pt")
        assert same(whole, resumed)


@pytest.mark.slow
def test_two_processes_train_from_the_command_line(tmp_path, small_backbone):
    """Prevents processes that wait for one another's lock, or write the same folder, and a text
    that one translates while the other waits."""
    settings = f"backbone={small_backbone} corpus=synthetic sentences=1500 dev_pairs=12 "
    settings += "synthetic_pairs=20 caels=2 steps=2 batch_size=8 towers.steps=2 towers.batch_size=8"
    store = tmp_path / "s.sqlite"
    launch = [*TWO, "-m", "cselab", "train", "jtcse"]  # `accelerate launch --cpu` starts one
    options = [f"-p{one}" for one in settings.split()]
    command = [sys.executable, *launch, *options, "--outputs", tmp_path, "--store", store]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("jtcse: computed") == 1
    assert done.stdout.count("test        average") == 1
    folders = (path for path in (tmp_path / "steps").iterdir() if path.is_dir())
    steps = sorted(path.name.rpartition("-")[0] for path in folders)
    assert steps == ["jtcse", "round-trips-fr", "round-trips-ru", "simcse-fr", "simcse-ru"]
    assert len(Store(store).runs()) == 1
    for pivot in ("fr", "ru"):
        (trips,) = tmp_path.glob(f"steps/round-trips-{pivot}-*/round-trips.txt")
        alone = RoundTrip(pivot)(load_corpus("synthetic", limit=1500))
        assert trips.read_text().splitlines() == list(alone)
        parts = tmp_path / "cache" / "round-trips" / LexicalPivot(pivot).fingerprint
        assert len(list(parts.glob("*.parquet"))) == 2  # a file of each process


@pytest.mark.parametrize("name", ["simcse", "jtcse", "imsimcse"])
def test_cached_gradients_are_those_of_the_same_chunks_with_the_whole_graph(
    towers, corpus, name, word_tokenizer
):
    """Prevents a second pass with other dropout, or with the wrong part of the gradient."""
    torch.manual_seed(0)
    method = build(name, towers, dropout=0.3).double().train()
    batch = ViewCollator(word_tokenizer)(list(corpus.select(range(7))))
    batch.pop("text_hash")
    context = StepContext.at(0, 0)

    def loss_of(outputs):
        return sum(method.compare(outputs, context).values())

    torch.manual_seed(5)
    parts = [method(part) for part in _chunks(batch, 3, 2)]
    rows = [part.tensors() for part in parts]
    joined = {name: torch.cat([part[name] for part in rows], dim=1) for name in rows[0]}
    whole = loss_of(replace(parts[0], **joined))
    whole.backward()
    expected = {n: p.grad.clone() for n, p in method.named_parameters() if p.grad is not None}
    drawn = torch.rand(1)
    method.zero_grad()
    torch.manual_seed(5)
    loss = cached_backward(method, loss_of, batch, chunk=3)
    assert torch.equal(torch.rand(1), drawn)  # and leaves the random state where one pass would
    torch.testing.assert_close(loss, whole.detach())
    close({n: p.grad for n, p in method.named_parameters() if p.grad is not None}, expected)


@pytest.mark.parametrize("change", [{"bf16": True}, {"chunk": 3}])
def test_a_run_with_a_switch_learns_the_same(towers, corpus, change):
    """Prevents a switch that breaks training, or that is read by nobody."""
    plain, weights = train(build("jtcse", towers, dropout=0), corpus, schedule())
    switched, other = train(build("jtcse", towers, dropout=0), corpus, schedule(**change))
    exact = "chunk" in change
    for one, two in zip(plain.history[1:], switched.history[1:], strict=True):
        assert two["nce"] == pytest.approx(one["nce"], rel=1e-4 if exact else 0.1)
    assert not all(torch.equal(weights[key], other[key]) for key in weights)


def test_bf16_is_used_in_the_encoder_and_not_in_the_loss(towers, corpus, monkeypatch):
    """Prevents bf16=True from doing nothing, and cosines from being rounded to 8 bits."""
    seen, method = [], build("simcse", towers)
    layer = method.encoder.backbone.encoder.layer[0].output.dense
    layer.register_forward_hook(lambda module, _, out: seen.append((module.training, out.dtype)))
    result, _ = train(method, corpus, schedule(steps=1, eval_every=1, bf16=True))
    assert (True, torch.bfloat16) in seen
    assert (False, torch.bfloat16) not in seen  # nor while it is evaluated
    assert result.history[1]["nce"] > 0


def test_one_process_never_uses_dataparallel(towers, corpus, monkeypatch):
    """Prevents a machine with two GPUs from silently computing the loss of half batches."""
    two = property(lambda self: self.__dict__.get("_n_gpu") or 2)
    monkeypatch.setattr(TrainingArguments, "n_gpu", two)
    wrapped = []
    monkeypatch.setattr(torch.nn.DataParallel, "__init__", lambda self, *_: wrapped.append(self))
    train(build("simcse", towers), corpus, schedule(steps=1, eval_every=1))
    assert wrapped == []


@pytest.mark.slow
def test_a_compiled_step_is_the_same_step(folder):
    """Prevents torch.compile from changing a gradient, or from compiling for ever."""
    run(folder=folder, arguments=["compile"])
    graphs, *compiled = torch.load(folder / "found-compiled.pt")
    for (name, terms, chunk), found in zip(COMPILED, compiled, strict=True):
        alone = gradients_and_losses(folder, name, terms, chunk=chunk)
        plain = {key.removeprefix("_orig_mod."): x for key, x in found["gradients"].items()}
        close(plain, alone["gradients"])
    assert graphs <= 4 * len(COMPILED)
