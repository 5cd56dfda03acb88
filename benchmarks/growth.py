"""How cost grows: of a training step with batch, length, width and CAELs, of encoding with the
number of sentences."""

import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median

import datasets
import torch
from timing import (
    TINY,
    benchmark,
    flops,
    new_method,
    plan,
    seconds,
    step_flops,
    step_seconds,
    text,
)
from transformers import BertConfig, BertModel

from cselab.experiments import configure
from cselab.methods import Method, create
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer

BATCH, LENGTH, STEPS, REPEATS = 64, 32, 4, 3
BATCHES, LENGTHS = (16, 32, 64, 128, 256), (8, 16, 32, 64, 128)
WIDTHS, CAELS = (96, 192, 384, 768), (1, 2, 3, 6)
SENTENCES = (500, 1000, 2000, 4000, 8000)
Work = tuple[Callable[[], float], float]
"""A function that returns the seconds of its work, and the work's FLOPs."""


@benchmark("k")
def growth(device: torch.device) -> dict:
    """(k) Time of a training step over batch, length, width and number of CAELs, and of encoding.

    Six layers, 64 sentences of 32 tokens in two views, SimCSE on one tower; CAELs: JTCSE on two
    towers, 0 is TNCSE. Beside each time, the FLOPs of the step. Each turn times every point once,
    so that a disturbance of the machine does not fall on all times of one point.
    """
    works: dict[str, dict[int, Work]] = {
        "step over batch": {n: step(new_method("simcse"), n, LENGTH, device) for n in BATCHES},
        "step over length": {n: step(new_method("simcse"), BATCH, n, device) for n in LENGTHS},
        "step over width": {n: step(of_width(n), BATCH, LENGTH, device) for n in WIDTHS},
        "step over CAELs": {0: step(new_method("tncse"), BATCH, LENGTH, device)}
        | {n: step(new_method("jtcse", caels=n), BATCH, LENGTH, device) for n in CAELS},
        "encoding over sentences": {n: encoding(n, device) for n in SENTENCES},
    }
    times = {(name, n): [] for name, points in works.items() for n in points}
    for _ in range(REPEATS):
        for name, n in times:
            timed, _ = works[name][n]
            times[name, n].append(timed())
    figures: dict[str, dict] = {name: {"points": {}} for name in works}
    for (name, n), seconds_of in times.items():
        gflop = round(works[name][n][1] / 1e9, 2)
        figures[name]["points"][n] = {"seconds": round(median(seconds_of), 4), "gflop": gflop}
    return figures


def step(method: Method, batch: int, length: int, device: torch.device) -> Work:
    """A training step on sentences of equal length; its time is the mean of a few."""
    words = method.encoder.tokenizer("the of and in a", add_special_tokens=False)["input_ids"]
    drawn = torch.Generator().manual_seed(0)
    ids = torch.tensor(words)[torch.randint(len(words), (STEPS * batch, length), generator=drawn)]
    columns = {"length": [length] * len(ids), "text_hash": list(range(len(ids)))}
    rows = datasets.Dataset.from_dict({"input_ids": ids.tolist(), **columns})
    count = batch * step_flops(method, rows, device)
    return partial(step_seconds, method, rows, plan(STEPS, length, batch), device), count


def encoding(count: int, device: torch.device) -> Work:
    """Encoding so many sentences."""
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    work = partial(encoder.encode, text(count))
    return partial(seconds, work, device), flops(work)


def of_width(width: int) -> Method:
    """SimCSE on six layers of random weights."""
    config = BertConfig(
        vocab_size=len(load_tokenizer(TINY)),
        hidden_size=width,
        intermediate_size=2 * width,
        num_attention_heads=width // 32,
        num_hidden_layers=6,
        pad_token_id=load_tokenizer(TINY).pad_token_id,
    )
    with tempfile.TemporaryDirectory() as folder:
        BertModel(config).save_pretrained(folder)
        load_tokenizer(TINY).save_pretrained(folder)
        return create(configure("simcse", "tiny").method, folders=[folder])
