"""Benchmarks of training."""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from peers import LoopTwin, ReleasedTwin, ictm_loop, train_steps
from timing import (
    PRODUCTS,
    TINY,
    against_peak,
    benchmark,
    flops,
    new_method,
    plan,
    rows_of,
    seconds,
    step_seconds,
    stock_tower,
    summary,
    text,
    where_time_goes,
)
from transformers import BertConfig, BertModel

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.data.nli import Triplet, tokenize_triplets
from cselab.data.targets import with_targets
from cselab.experiments import configure
from cselab.losses import ictm
from cselab.methods import Method, StepContext, method_names, registered
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.training.precision import has_bfloat16
from cselab.training.watch import Probe, matmul_peak

PAPER = {"temperature": 0.05}
"""The papers' temperature, the peers'."""
RELEASED = {
    **PAPER,
    "terms.nce.layout": "all",
    "terms.icnce.variant": "released",
    "terms.ictm.variant": "released",
}
"""The released code's losses; both sides of a comparison compute them."""


@benchmark("a")
def twin_step(device: torch.device) -> dict:
    """(a) TNCSE's training step on the shipped backbone, batch 64, sentences up to 64 tokens.

    The peer has the released code's arithmetic; a second one, of the paper's losses, loops over
    rows in every loss. Neither tokenises within the time, and one turn of all comes before.
    """
    sentences, batch, steps = text(6400), 64, 6 if device.type == "cpu" else 60
    tokenizer = load_tokenizer(TINY)
    twins = {
        "released": (ReleasedTwin(*(stock_tower(device) for _ in range(2)), tokenizer), RELEASED),
        "loops": (LoopTwin(*(stock_tower(device, "eager") for _ in range(2)), tokenizer), PAPER),
    }
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)
        for switches, (name, (peer, losses)) in itertools.product(
            switches_of(device), twins.items()
        ):
            starts = range(0, steps * batch, batch)
            batches = [peer.batch(sentences[i : i + batch], device) for i in starts]

            def work(peer=peer, batches=batches) -> None:
                train_steps(peer, batches, 1e-5)

            turns = []
            for _ in range(6):
                method = new_method("tncse", **losses)
                ours = step_seconds(method, rows, plan(steps, 64, **switches), device)
                turns.append((ours, seconds(work, device) / steps))
            of = "".join(f", {switch}" for switch in switches)
            figures[f"TNCSE step against {name}{of}"] = summary(turns[1:])
    return figures


def switches_of(device: torch.device) -> list[dict[str, bool]]:
    """Plain float32, and what makes training faster on a device; compiling takes minutes on a
    processor."""
    fast = [{"bf16": True}] if has_bfloat16(device.type) else []
    compiled = [{"bf16": True, "compile": True}] if device.type == "cuda" else []
    return [{}, *fast, *compiled]


@benchmark("h")
def jtcse_step(device: torch.device) -> dict:
    """(h) JTCSE's training step in those of TNCSE, beside what its FLOPs say."""
    sentences, steps = text(6400), 8 if device.type == "cpu" else 60
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)

        def timed(name: str) -> float:
            return step_seconds(new_method(name), rows, plan(steps, 64), device)

        turns = [(timed("jtcse"), timed("tncse")) for _ in range(5)]
        work = {}
        for name in ("jtcse", "tncse"):
            method = new_method(name).to(device)
            work[name] = Probe(method, rows, device).flops_per_sentence(method)
    expected = round(work["tncse"] / work["jtcse"], 3)
    return {"JTCSE's rate over TNCSE's": {**summary(turns), "by_flops": expected}}


@benchmark("b")
def modulus_term(device: torch.device) -> dict:
    """(b) ICTM, forward and backward; the peer loops over rows."""
    figures = {}
    for n in (64, 256):
        inputs = [torch.randn(2, n, 768, device=device, requires_grad=True) for _ in range(4)]
        torch.testing.assert_close(ictm(*inputs), ictm_loop(*inputs), rtol=1e-4, atol=1e-4)
        turns = []

        def ten(inputs=inputs) -> None:
            for _ in range(10):
                ictm(*inputs).backward()

        def loop(inputs=inputs) -> None:
            ictm_loop(*inputs).backward()

        for _ in range(20):
            turns.append((seconds(ten, device) / 10, seconds(loop, device)))
        figures[f"ICTM, N = {n}"] = summary(turns)
    return figures


@benchmark("e")
def peak_share(device: torch.device) -> dict:
    """(e) A SimCSE step of BERT-base's shape, as a share of the peak of matrix products.

    Random weights, batch 64 x 2 views of 32 tokens.
    """
    steps, figures = (1 if device.type == "cpu" else 30), {}
    sentences = [" ".join(["word"] * 40)] * 640
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 32)
        for switches in switches_of(device):
            model = BertModel._from_config(BertConfig(vocab_size=30522), attn_implementation="sdpa")
            encoder = SentenceEncoder(model, load_tokenizer(TINY))
            method = registered("simcse")(encoder, configure("simcse", "tiny").method)
            method.to(device).train()
            probe = Probe(method, rows, device)
            batch = {name: rows_[:128] for name, rows_ in probe.batch.items()}
            optimizer = torch.optim.AdamW(method.parameters(), lr=1e-5, fused=True)
            forward = torch.compile(method, dynamic=True) if "compile" in switches else method

            def step(
                forward=forward, batch=batch, optimizer=optimizer, switches=switches, method=method
            ):
                with torch.autocast(device.type, torch.bfloat16, enabled="bf16" in switches):
                    vectors = forward(batch)
                loss = sum(method.compare(vectors, StepContext.at(0, 0)).values())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            for _ in range(2):
                step()

            def repeat(step=step) -> None:
                for _ in range(steps):
                    step()

            shortest = min(seconds(repeat, device) / steps for _ in range(4))
            peak = matmul_peak(device.type, torch.bfloat16 if "bf16" in switches else torch.float32)
            share = probe.flops_per_sentence(method) * 64 / shortest / peak
            name = "BERT-base step, share of matmul peak" + "".join(f", {s}" for s in switches)
            figures[name] = {
                "percent": round(100 * share, 1),
                "step_s": round(shortest, 4),
                "peak_tflops": round(peak / 1e12, 2),
            }
    return figures


@benchmark("f")
def memory(device: torch.device) -> dict:
    """(f) Memory of training from a million sentences, beyond that of the loaded model."""
    program = [sys.executable, Path(__file__).with_name("million.py")]
    result = subprocess.run(program, capture_output=True, text=True, check=True)
    return {"RSS over the model, 1 M sentences": json.loads(result.stdout.splitlines()[-1])}


@benchmark("i")
def step_profile(device: torch.device) -> dict:
    """(i) Where the time of a TNCSE step goes, and how far it is from the peak of the machine.

    FLOPs are those of the step's own tokens, forward and backward.
    """
    sentences = text(6400)
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)
        method = new_method("tncse").to(device).train()
        sampler = BucketedBatchSampler(rows["length"], 64, seed=1)
        collate = ViewCollator(method.encoder.tokenizer)
        chosen = itertools.islice(sampler, 8)
        batches = [collate([rows[i] for i in batch]) for batch in chosen]
    batches = [{name: x.to(device) for name, x in batch.items()} for batch in batches]
    optimizer = torch.optim.AdamW(method.parameters(), lr=1e-5, fused=True)

    def steps() -> None:
        for number, batch in enumerate(batches):
            losses = method.losses(batch, StepContext.at(0, number))
            optimizer.zero_grad()
            sum(losses.values()).backward()
            optimizer.step()

    steps()
    count = flops(steps)
    shortest = min(seconds(steps, device) for _ in range(3))
    figures = where_time_goes(steps, {"products": PRODUCTS, "copies": ("aten::copy_",)})
    return {"TNCSE step, profile": {**figures, **against_peak(count, shortest, device)}}


@benchmark("g")
def methods_against_simcse(device: torch.device) -> dict:
    """(g) Training step of each single-tower method; the peer is SimCSE.

    Batch 64, sentences up to 32 tokens. Methods on triplets have three sentences per row; the
    vectors of RankCSE's teacher are computed before.
    """
    sentences, steps = text(6400), 8 if device.type == "cpu" else 60
    with tempfile.TemporaryDirectory() as folder:
        rows, tokenizer = rows_of(sentences, Path(folder), 32), load_tokenizer(TINY)
        threes = [Triplet(*(sentences[i - k] for k in range(3))) for i in range(len(sentences))]
        arrow = Path(folder) / "triplets.arrow"
        triplets = tokenize_triplets(threes, tokenizer, arrow, max_length=32)
        teacher = SentenceEncoder(load_backbone(TINY), tokenizer).eval()
        taught = with_targets(rows, sentences, teacher.encode, Path(folder) / "targets.arrow")
        rows_by = {"rankcse": taught, "simcse_supervised": triplets, "angle": triplets}

        def timed(name: str) -> float:
            return step_seconds(new_method(name), rows_by.get(name, rows), plan(steps, 32), device)

        figures = {}
        for name in single_tower_methods():
            turns = [(timed(name), timed("simcse")) for _ in range(3)]
            figures[f"{name} step"] = summary(turns)
        return figures


def single_tower_methods() -> list[str]:
    """Trained methods with one encoder, except SimCSE and students."""
    roles = ("single", "triplets")
    kinds = {name: registered(name) for name in method_names() if name != "simcse"}
    trained = {name: kind for name, kind in kinds.items() if issubclass(kind, Method)}
    return [name for name, kind in trained.items() if kind.Config.role in roles]
