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
    step_flops,
    step_seconds,
    stock_tower,
    summary,
    text,
    where_time_goes,
)

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.losses import ictm
from cselab.methods import StepContext
from cselab.models import load_tokenizer
from cselab.training.precision import has_bfloat16

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
            work[name] = step_flops(method, rows, device)
    expected = round(work["tncse"] / work["jtcse"], 3)
    return {"JTCSE's rate over TNCSE's": {**summary(turns), "by_flops": expected}}


@benchmark("b")
def modulus_term(device: torch.device) -> dict:
    """(b) ICTM, forward and backward; the peer loops over rows."""
    figures = {}
    for n in (64, 256):
        inputs = [torch.randn(2, n, 768, device=device, requires_grad=True) for _ in range(4)]
        torch.testing.assert_close(ictm(*inputs), ictm_loop(*inputs), rtol=1e-4, atol=1e-4)

        def ten(inputs=inputs) -> None:
            for _ in range(10):
                ictm(*inputs).backward()

        def loop(inputs=inputs) -> None:
            ictm_loop(*inputs).backward()

        turns = [(seconds(ten, device) / 10, seconds(loop, device)) for _ in range(20)]
        figures[f"ICTM, N = {n}"] = summary(turns)
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
