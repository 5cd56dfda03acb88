"""Shared by the benchmarks: timing in turn with a peer, text, towers and rows."""

import functools
import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode, sdpa_flop_count
from transformers import AutoModel, PreTrainedModel

from cselab.data.batching import ViewCollator
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.sources import data_folder, embedded_dir
from cselab.data.synthetic import sentences as synthetic_sentences
from cselab.experiments import configure
from cselab.methods import Method, Schedule, create, registered
from cselab.models import load_tokenizer
from cselab.training import fit

TINY = embedded_dir() / "backbones" / "tiny-bert"
PRODUCTS = (
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
)
"""torch's operators on a processor whose FLOPs are counted; attention is two products and a
softmax in one."""
CPU_ATTENTION = {  # torch's counter has no formula for this attention kernel
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: lambda q, k, v, *_, **__: (
        sdpa_flop_count(q, k, v)
    )
}
BENCHMARKS: dict[str, Callable] = {}


def benchmark(key: str) -> Callable:
    """Register a benchmark: a function of a device that returns {name: {figures}}."""

    def add(function: Callable) -> Callable:
        BENCHMARKS[key] = function
        return function

    return add


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Time of one call, synchronised with the device before and after."""
    gc.collect()
    synchronize(device)
    started = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    """Wait until a GPU has finished its queue."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def ratio(
    ours: Callable, peer: Callable, device: torch.device, repeats: int, *, warm_up: bool = True
) -> dict:
    """Time both alternately, after one call of each."""
    if warm_up:
        ours(), peer()
    return summary([(seconds(ours, device), seconds(peer, device)) for _ in range(repeats)])


def summary(turns: list[tuple[float, float]]) -> dict:
    """Figures of the times (cselab, peer) of each turn, in seconds."""
    ours, peer = (min(column) for column in zip(*turns, strict=True))
    ratios = [b / a for a, b in turns]
    return {
        "times": round(peer / ours, 2),
        "least": round(min(ratios), 2),
        "median": round(statistics.median(ratios), 2),
        "most": round(max(ratios), 2),
        "ours_s": round(ours, 6),
        "peer_s": round(peer, 6),
    }


def text(count: int) -> list[str]:
    """Sentences of the data folder, or synthetic ones without a folder."""
    if data_folder(None):
        return list(load_corpus(folder=None, limit=count))
    return list(synthetic_sentences(count, 5))


def stock_tower(device: torch.device, attention: str = "sdpa") -> PreTrainedModel:
    """The shipped backbone as scripts load it, with torch's attention and dropout."""
    model = AutoModel.from_pretrained(TINY, attn_implementation=attention, dtype=torch.float32)
    return model.to(device)


def new_method(name: str, **changes) -> Method:
    """An untrained method of the tiny profile on the shipped backbone."""
    folders = [str(TINY)] * len(registered(name).tower_names)
    return create(configure(name, "tiny", changes=changes).method, folders=folders)


def plan(steps: int, max_length: int, batch_size: int = 64, **switches: bool) -> Schedule:
    """A schedule that evaluates only at the end."""
    sizes = {"batch_size": batch_size, "max_length": max_length}
    return Schedule(steps=steps, eval_every=steps, learning_rate=1e-5, **sizes, **switches)


def rows_of(sentences: list[str], folder: Path, max_length: int):
    """Tokenised sentences."""
    path = folder / "text.txt"
    path.write_text("\n".join(sentences), encoding="utf-8")
    options = {"max_length": max_length, "cache_dir": folder / "cache"}
    return tokenize_corpus(load_corpus([str(path)]), load_tokenizer(TINY), **options)


def step_seconds(method: Method, rows, schedule: Schedule, device: torch.device) -> float:
    """Mean time of a training step, by `fit`."""
    result = fit(method, rows, schedule, dev=lambda m: 0.0, seed=1, device=device)
    return schedule.batch_size / result.sentences_per_second


def where_time_goes(work: Callable[[], object], kinds: dict[str, tuple[str, ...]]) -> dict:
    """Percent of a processor's time in kinds of torch's operators, by torch's profiler."""
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        work()
    times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    whole = sum(times.values())
    return {
        f"{kind}_percent": round(100 * sum(times.get(name, 0) for name in names) / whole, 1)
        for kind, names in kinds.items()
    }


def flops(work: Callable[[], object]) -> int:
    """Floating-point operations of one call, by torch's counter."""
    with FlopCounterMode(display=False, custom_mapping=CPU_ATTENTION) as counter:
        work()
    return counter.get_total_flops()


def step_flops(method: Method, rows, device: torch.device) -> float:
    """FLOPs per sentence of a training step, with all views: three forward passes."""
    some = list(rows.select(range(0, len(rows), max(1, len(rows) // 64))[:16]))
    batch = ViewCollator(method.encoder.tokenizer, views=method.views)(some)
    batch = {name: x.to(device) for name, x in batch.items() if name != "text_hash"}
    with torch.no_grad(), torch.random.fork_rng():
        return 3 * flops(lambda: method(batch)) / len(some)


@functools.cache
def matmul_peak(device: str, dtype: torch.dtype, *, most_seconds: float = 0.3) -> float:
    """Peak FLOP/s of this machine ("cpu", "cuda" or "mps"), in products of growing matrices.

    A size is tried only if it will end within `most_seconds` of the start: in bfloat16 on a
    processor without it, a product of 2048 x 2048 takes a minute.
    """
    began, peak, size, last = time.perf_counter(), 0.0, 256, 0.0
    while 4 * 8 * last < most_seconds - (time.perf_counter() - began):
        a = torch.randn(size, size, device=device).to(dtype)
        (a @ a)[0, 0].item()  # the first one of a size allocates
        times = []
        for _ in range(3):
            started = time.perf_counter()
            (a @ a)[0, 0].item()
            times.append(time.perf_counter() - started)
        last = min(times)
        peak = max(peak, 2 * size**3 / last)
        size = min(2 * size, 8192)
    return peak


def against_peak(count: int, shortest: float, device: torch.device) -> dict:
    """The rate of so many operations beside the fastest square product of this machine, in
    float32."""
    rate = count / shortest
    peak = matmul_peak(device.type, torch.float32)
    return {
        "gflops_per_s": round(rate / 1e9, 1),
        "peak_gflops_per_s": round(peak / 1e9, 1),
        "percent_of_peak": round(100 * rate / peak, 1),
    }
