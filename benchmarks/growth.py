"""How cost grows: of a training step with batch, length, width and CAELs, of encoding with the
number of sentences."""

import tempfile
from functools import partial

import datasets
import torch
from timing import TINY, benchmark, flops, new_method, plan, seconds, step_seconds, text
from transformers import BertConfig, BertModel

from cselab.experiments import configure
from cselab.methods import Method, create
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.training.watch import Probe

BATCH, LENGTH, STEPS, REPEATS = 64, 32, 4, 3
BATCHES, LENGTHS = (16, 32, 64, 128, 256), (8, 16, 32, 64, 128)
WIDTHS, CAELS = (96, 192, 384, 768), (1, 2, 3, 6)
SENTENCES = (500, 1000, 2000, 4000, 8000)


@benchmark("k")
def growth(device: torch.device) -> dict:
    """(k) Time of a training step over batch, length, width and number of CAELs, and of encoding.

    Six layers, 64 sentences of 32 tokens in two views, SimCSE on one tower; CAELs: JTCSE on two
    towers, 0 is TNCSE. Beside each time, the FLOPs of the step.
    """
    points = {
        "batch": {n: measured(new_method("simcse"), n, LENGTH, device) for n in BATCHES},
        "length": {n: measured(new_method("simcse"), BATCH, n, device) for n in LENGTHS},
        "width": {n: measured(of_width(n), BATCH, LENGTH, device) for n in WIDTHS},
        "CAELs": {0: measured(new_method("tncse"), BATCH, LENGTH, device)}
        | {n: measured(new_method("jtcse", caels=n), BATCH, LENGTH, device) for n in CAELS},
    }
    figures = {f"step over {axis}": {"points": found} for axis, found in points.items()}
    return {**figures, "encoding over sentences": {"points": encoded(device)}}


def measured(method: Method, batch: int, length: int, device: torch.device) -> dict[str, float]:
    """Best time of a step on sentences of equal length, and its FLOPs."""
    words = method.encoder.tokenizer("the of and in a", add_special_tokens=False)["input_ids"]
    drawn = torch.Generator().manual_seed(0)
    ids = torch.tensor(words)[torch.randint(len(words), (STEPS * batch, length), generator=drawn)]
    rows = datasets.Dataset.from_dict(
        {
            "input_ids": ids.tolist(),
            "length": [length] * len(ids),
            "text_hash": list(range(len(ids))),
        }
    )
    schedule = plan(STEPS, length, batch)
    times = [step_seconds(method, rows, schedule, device) for _ in range(REPEATS)]
    count = batch * Probe(method, rows, device).flops_per_sentence(method)
    return {"seconds": round(min(times), 4), "gflop": round(count / 1e9, 2)}


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


def encoded(device: torch.device) -> dict[int, dict[str, float]]:
    """Best time of encoding so many sentences, and its FLOPs."""
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    points = {}
    for count in SENTENCES:
        work = partial(encoder.encode, text(count))
        operations = flops(work)
        shortest = min(seconds(work, device) for _ in range(REPEATS))
        points[count] = {
            "seconds": round(shortest, 4),
            "gflop": round(operations / 1e9, 2),
        }
    return points
