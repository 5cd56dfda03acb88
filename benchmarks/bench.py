"""Benchmarks of cselab and its peers: `make bench`.

Or run `python benchmarks/bench.py [--device cuda] [--only a,b]`. cselab and the peer are timed
alternately in one run. `times` is the ratio of their shortest times, because other programs only
lengthen a time; `least`, `median` and `most` are of the single ratios. Results are written to
outputs/reference/benchmarks.json, one entry per device, with the machine of each benchmark.
"""

import argparse
import gc
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from peers import LoopTwin, ReleasedTwin, ictm_loop, senteval, train_steps
from scipy.stats import spearmanr
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModel, BertConfig, BertModel, PreTrainedModel

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.nli import Triplet, tokenize_triplets
from cselab.data.sources import data_folder, embedded_dir
from cselab.data.sts import STS7, load_sts
from cselab.data.synthetic import sentences as synthetic_sentences
from cselab.data.targets import with_targets
from cselab.evaluation import evaluate_sts
from cselab.experiments import configure
from cselab.experiments.environment import environment_stamp
from cselab.losses import ictm
from cselab.methods import Method, Schedule, StepContext, create, method_names, registered
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.training import fit
from cselab.training.precision import has_bfloat16
from cselab.training.watch import Probe, matmul_peak

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "outputs" / "reference" / "benchmarks.json"
TINY = embedded_dir() / "backbones" / "tiny-bert"
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


def new_method(name: str) -> Method:
    """An untrained method of the tiny profile on the shipped backbone."""
    folders = [str(TINY)] * len(registered(name).tower_names)
    return create(configure(name, "tiny").method, folders=folders)


def plan(steps: int, max_length: int, **switches: bool) -> Schedule:
    """A schedule of batches of 64 that evaluates only at the end."""
    sizes = {"steps": steps, "batch_size": 64, "max_length": max_length, "eval_every": steps}
    return Schedule(**sizes, learning_rate=1e-5, **switches)


def rows_of(sentences: list[str], folder: Path, max_length: int):
    """Tokenised sentences."""
    path = folder / "text.txt"
    path.write_text("\n".join(sentences), encoding="utf-8")
    options = {"max_length": max_length, "cache_dir": folder / "cache"}
    return tokenize_corpus(load_corpus([str(path)]), load_tokenizer(TINY), **options)


# training


@benchmark("a")
def twin_step(device: torch.device) -> dict:
    """(a) TNCSE's training step on the shipped backbone, batch 64, sentences up to 64 tokens.

    The peer has the released code's arithmetic; a second one loops over rows in every loss.
    """
    sentences, batch, steps = text(6400), 64, 4 if device.type == "cpu" else 40
    tokenizer = load_tokenizer(TINY)
    batches = [sentences[i * batch : (i + 1) * batch] for i in range(steps)]
    peers = {
        "released": ReleasedTwin(stock_tower(device), stock_tower(device), tokenizer),
        "loops": LoopTwin(*(stock_tower(device, "eager") for _ in range(2)), tokenizer),
    }
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)
        fast = [{"bf16": True}] if has_bfloat16(device.type) else []
        # compiling takes minutes on a CPU
        compiled = [{"bf16": True, "compile": True}] if device.type == "cuda" else []
        for switches in ({}, *fast, *compiled):
            schedule = plan(4 * steps, 64, **switches)
            turns: dict[str, list] = {name: [] for name in peers}
            for _ in range(5):
                options = {"dev": lambda m: 0.0, "seed": 1, "device": device}
                ours = (
                    batch / fit(new_method("tncse"), rows, schedule, **options).sentences_per_second
                )
                for name, peer in peers.items():

                    def work(peer=peer) -> None:
                        train_steps(peer, batches, 1e-5, device)

                    turns[name].append((ours, seconds(work, device) / steps))
            of = "".join(f", {switch}" for switch in switches)
            for name, some in turns.items():
                figures[f"TNCSE step against {name}{of}"] = summary(some)
    return figures


@benchmark("h")
def jtcse_step(device: torch.device) -> dict:
    """(h) JTCSE's training step in those of TNCSE, beside what its FLOPs say."""
    sentences, steps = text(6400), 8 if device.type == "cpu" else 60
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)

        def step_seconds(name: str) -> float:
            options = {"dev": lambda m: 0.0, "seed": 1, "device": device}
            return 64 / fit(new_method(name), rows, plan(steps, 64), **options).sentences_per_second

        turns = [(step_seconds("jtcse"), step_seconds("tncse")) for _ in range(5)]
        flops = {}
        for name in ("jtcse", "tncse"):
            method = new_method(name).to(device)
            flops[name] = Probe(method, rows, device).flops_per_sentence(method)
    expected = round(flops["tncse"] / flops["jtcse"], 3)
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
        for switches in ({}, {"bf16": True}, {"bf16": True, "compile": True}):
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
    result = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT)
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
    with FlopCounterMode(display=False) as counter:
        steps()
    shortest = min(seconds(steps, device) for _ in range(3))
    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        steps()
    times = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    peak = matmul_peak(device.type, torch.float32)
    whole = sum(times.values())
    shares = {
        "matrix_products": ("aten::mm", "aten::addmm", "aten::bmm"),
        "copies": ("aten::copy_",),
    }
    percents = {
        f"{name}_percent": round(100 * sum(times.get(key, 0) for key in keys) / whole, 1)
        for name, keys in shares.items()
    }
    rate = counter.get_total_flops() / shortest
    figures = {
        **percents,
        "gflops_per_s": round(rate / 1e9, 1),
        "peak_gflops_per_s": round(peak / 1e9, 1),
        "percent_of_peak": round(100 * rate / peak, 1),
    }
    return {"TNCSE step, profile": figures}


# inference


@benchmark("c")
def sts_evaluation(device: torch.device) -> dict:
    """(c) The seven STS tests (synthetic STS without a data folder).

    The peer is SentEval's loop, as SimCSE's script runs it.
    """
    tasks = STS7 if data_folder(None) else ("Synthetic",)
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    stock = stock_tower(device).eval()
    scores: dict[str, dict] = {}

    def ours() -> None:
        scores["ours"] = evaluate_sts(encoder.encode, tasks, resamples=0).scores

    def peer() -> None:
        found = {task: senteval(stock, encoder.tokenizer, load_sts(task), device) for task in tasks}
        scores["peer"] = {task: 100 * spearmanr(*pair).statistic for task, pair in found.items()}

    name = "STS-7 evaluation" if len(tasks) > 1 else "synthetic STS"
    figures = ratio(ours, peer, device, 3, warm_up=device.type != "cpu")
    differences = [abs(scores["ours"][task] - scores["peer"][task]) for task in tasks]
    return {name: {**figures, "largest_score_difference": round(float(max(differences)), 4)}}


@benchmark("d")
def encode_sentences(device: torch.device) -> dict:
    """(d) Encode 10,000 sentences; the peer is `SentenceTransformer.encode` with its defaults."""
    import logging

    from sentence_transformers import SentenceTransformer, models

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    sentences = text(10_000)
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    transformer = models.Transformer(str(TINY), max_seq_length=128)
    peer = SentenceTransformer(
        modules=[transformer, models.Pooling(transformer.get_embedding_dimension(), "cls")],
        device=str(device),
    )
    peer.float()  # the file is float16, and the peer keeps its precision
    theirs = peer.encode(sentences[:200], convert_to_tensor=True).cpu()
    torch.testing.assert_close(encoder.encode(sentences[:200]), theirs, rtol=1e-3, atol=1e-3)
    figures = ratio(lambda: encoder.encode(sentences), lambda: peer.encode(sentences), device, 5)
    return {"encode 10,000 sentences": figures}


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

        def step_seconds(name: str) -> float:
            options = {"dev": lambda m: 0.0, "seed": 1, "device": device}
            result = fit(new_method(name), rows_by.get(name, rows), plan(steps, 32), **options)
            return 64 / result.sentences_per_second

        figures = {}
        for name in single_tower_methods():
            turns = [(step_seconds(name), step_seconds("simcse")) for _ in range(3)]
            figures[f"{name} step"] = summary(turns)
        return figures


def single_tower_methods() -> list[str]:
    """Trained methods with one encoder, except SimCSE and students."""
    roles = ("single", "triplets")
    kinds = {name: registered(name) for name in method_names() if name != "simcse"}
    trained = {name: kind for name, kind in kinds.items() if issubclass(kind, Method)}
    return [name for name, kind in trained.items() if kind.Config.role in roles]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--only", default=",".join(sorted(BENCHMARKS)), help="letters of benchmarks, e.g. a,c"
    )
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    device, path = torch.device(arguments.device), arguments.results
    results = json.loads(path.read_text()) if path.is_file() else {}
    entry = results.setdefault(device.type, {"figures": {}, "machines": {}})
    machine = {**environment_stamp(device), "threads": torch.get_num_threads()}
    for key in arguments.only.split(","):
        print(f"{key}: {BENCHMARKS[key].__doc__.splitlines()[0]}", flush=True)
        entry["machines"][key] = machine
        for name, figures in BENCHMARKS[key](device).items():
            entry["figures"][name] = {"benchmark": key, **figures}
            print(f"   {name}: {figures}", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
