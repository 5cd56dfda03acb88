"""Ours against the usual: `make bench`, or `python tests/benchmarks/bench.py [--device cuda] [--only a,b]`.

Ours and the peer's are taken in turn in one run; `times` is the ratio of their best times, as other programs on the machine
only ever add to one, `least` and `most` are of the single turns. Written to outputs/reference/benchmarks.json, one entry a
device, with hardware and versions.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from scipy.stats import spearmanr
from transformers import AutoModel, BertConfig, BertModel, PreTrainedModel
from usual_loop import UsualTwin, encode_in_order, ictm_loop

from cselab.data.corpus import load_corpus, tokenize_corpus
from cselab.data.nli import Triplet, tokenize_triplets
from cselab.data.sources import data_folder, embedded_dir
from cselab.data.sts import STS7, load_sts
from cselab.data.targets import with_targets
from cselab.data.world import sentences as world_sentences
from cselab.environment import environment_stamp
from cselab.evaluation import evaluate_sts
from cselab.losses import ictm
from cselab.methods import SimCSE, create
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
from cselab.settings import Schedule, Settings
from cselab.systems import SINGLE
from cselab.training import fit
from cselab.training.watch import Probe, matmul_peak

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "outputs" / "reference" / "benchmarks.json"
TINY = embedded_dir() / "backbones" / "tiny-bert"
BENCHMARKS: dict[str, Callable] = {}


def benchmark(key: str) -> Callable:
    """Registers a function of a device that returns {name: {figures}}."""

    def add(function: Callable) -> Callable:
        BENCHMARKS[key] = function
        return function

    return add


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Of one call, the device's queue emptied before and after."""
    gc.collect()
    synchronize(device)
    started = time.perf_counter()
    work()
    synchronize(device)
    return time.perf_counter() - started


def synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def ratio(ours: Callable, peer: Callable, device: torch.device, repeats: int, *, warm_up: bool = True) -> dict:
    """Both once to warm up, then in turn."""
    if warm_up:
        ours(), peer()
    return compared([(seconds(ours, device), seconds(peer, device)) for _ in range(repeats)])


def compared(turns: list[tuple[float, float]]) -> dict:
    """turns: seconds of ours and of the peer's."""
    ours, peer = (min(column) for column in zip(*turns, strict=True))
    ratios = [b / a for a, b in turns]
    return {
        "times": round(peer / ours, 2), "least": round(min(ratios), 2), "most": round(max(ratios), 2),
        "ours_s": round(ours, 6), "peer_s": round(peer, 6),
    }  # fmt: skip


def text(count: int) -> list[str]:
    """Real sentences where there are some, the world's otherwise."""
    if data_folder(None):
        return list(load_corpus(folder=None, limit=count))
    return list(world_sentences(count, 5))


def usual_tower(device: torch.device) -> PreTrainedModel:
    """As scripts load it, with torch's own attention and dropout."""
    return AutoModel.from_pretrained(TINY, attn_implementation="eager", dtype=torch.float32).to(device)


def rows_of(sentences: list[str], folder: Path, max_length: int):
    path = folder / "text.txt"
    path.write_text("\n".join(sentences), encoding="utf-8")
    return tokenize_corpus(
        load_corpus([str(path)]), load_tokenizer(TINY), max_length=max_length, cache_dir=folder / "cache"
    )


# ------------------------------------------------------------------------------------------------ training


@benchmark("a")
def twin_step(device: torch.device) -> dict:
    """(a) TNCSE's training step on the shipped backbone, batch 64, sentences up to 64 tokens."""
    sentences, batch, steps = text(6400), 64, 4 if device.type == "cpu" else 40
    tokenizer = load_tokenizer(TINY)
    usual = UsualTwin(usual_tower(device), usual_tower(device), tokenizer)
    batches = [sentences[i * batch : (i + 1) * batch] for i in range(steps)]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 64)
        compiled = [{"bf16": True, "compile": True}] if device.type == "cuda" else []  # minutes of compiling on a CPU
        for switches in ({}, {"bf16": True}, *compiled):
            many = 4 * steps
            plan = Schedule(many, batch, 1e-5, 64, eval_every=many, **switches)
            turns = []
            for _ in range(5):
                method = create("tncse", Settings.of("tiny"), [str(TINY)] * 2)
                done = fit(method, rows, plan, dev=lambda m: 0.0, seed=1, device=device)
                slow = seconds(lambda: usual.train_steps(batches, 1e-5, device), device) / steps
                turns.append((batch / done.sentences_per_second, slow))
            found["twin training step" + "".join(f", {s}" for s in switches)] = compared(turns)
    return found


@benchmark("b")
def modulus_term(device: torch.device) -> dict:
    """(b) ICTM alone, forward and backward, against the loop over rows."""
    found = {}
    for n in (64, 256):
        inputs = [torch.randn(2, n, 768, device=device, requires_grad=True) for _ in range(4)]
        torch.testing.assert_close(ictm(*inputs), ictm_loop(*inputs), rtol=1e-4, atol=1e-4)
        turns = []
        for _ in range(20):
            ours = seconds(lambda inputs=inputs: [ictm(*inputs).backward() for _ in range(10)], device) / 10
            turns.append((ours, seconds(lambda inputs=inputs: ictm_loop(*inputs).backward(), device)))
        found[f"ICTM, N = {n}"] = compared(turns)
    return found


@benchmark("e")
def peak_share(device: torch.device) -> dict:
    """(e) A SimCSE step on BERT-base shapes with random weights, batch 64 x 2 views of 32 tokens, by switch."""
    steps, found = (1 if device.type == "cpu" else 30), {}
    sentences = [" ".join(["word"] * 40)] * 640
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(sentences, Path(folder), 32)
        for switches in ({}, {"bf16": True}, {"bf16": True, "compile": True}):
            model = BertModel._from_config(BertConfig(vocab_size=30522), attn_implementation="sdpa")
            method = SimCSE(SentenceEncoder(model, load_tokenizer(TINY)), Settings.of("tiny")).to(device).train()
            probe = Probe(method, rows, device)
            batch = {name: rows_[:128] for name, rows_ in probe.batch.items()}
            optimizer = torch.optim.AdamW(method.parameters(), lr=1e-5, fused=True)
            forward = torch.compile(method, dynamic=True) if "compile" in switches else method

            def step(forward=forward, batch=batch, optimizer=optimizer, switches=switches, method=method):
                with torch.autocast(device.type, torch.bfloat16, enabled="bf16" in switches):
                    vectors = forward(batch)
                loss = sum(method.compare(vectors, None).values())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

            for _ in range(2):
                step()
            taken = [seconds(lambda step=step: [step() for _ in range(steps)], device) / steps for _ in range(4)]
            peak = matmul_peak(device.type, torch.bfloat16 if "bf16" in switches else torch.float32)
            share = probe.flops_per_sentence(method) * 64 / min(taken) / peak
            name = "BERT-base step, share of matmul peak" + "".join(f", {s}" for s in switches)
            found[name] = {
                "percent": round(100 * share, 1),
                "step_s": round(min(taken), 4),
                "peak_tflops": round(peak / 1e12, 2),
            }
    return found


@benchmark("f")
def memory(device: torch.device) -> dict:
    """(f) Resident memory of a process that trains from a corpus of a million sentences, over that of the loaded model."""
    program = Path(__file__).with_name("million.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True, cwd=ROOT)
    return {"RSS over the model, 1 M sentences": json.loads(done.stdout.splitlines()[-1])}


# ----------------------------------------------------------------------------------------------- inference


@benchmark("c")
def sts_evaluation(device: torch.device) -> dict:
    """(c) The seven STS tests (the world's where there is no data) against encoding every pair in order."""
    tasks = STS7 if data_folder(None) else ("World",)
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    eager = usual_tower(device).eval()
    scores: dict[str, dict] = {}

    def ours() -> None:
        scores["ours"] = evaluate_sts(encoder.encode, tasks, resamples=0).scores

    def peer() -> None:
        scores["peer"] = {}
        for task in tasks:
            pairs = load_sts(task)
            a, b = (
                encode_in_order(eager, encoder.tokenizer, list(s), device) for s in (pairs.sentences1, pairs.sentences2)
            )
            scores["peer"][task] = 100 * spearmanr(torch.cosine_similarity(a, b), pairs.scores).statistic

    name = "STS-7 evaluation" if len(tasks) > 1 else "world evaluation"
    found = {name: ratio(ours, peer, device, 1 if device.type == "cpu" else 3, warm_up=device.type != "cpu")}
    found[name]["largest_score_difference"] = round(max(abs(scores["ours"][t] - scores["peer"][t]) for t in tasks), 4)
    return found


@benchmark("d")
def encode_sentences(device: torch.device) -> dict:
    """(d) 10,000 sentences against `SentenceTransformer.encode` of the same weights, at its defaults."""
    import logging

    from sentence_transformers import SentenceTransformer, models

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    sentences = text(10_000)
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    transformer = models.Transformer(str(TINY), max_seq_length=128)
    peer = SentenceTransformer(
        modules=[transformer, models.Pooling(transformer.get_embedding_dimension(), "cls")], device=str(device)
    )
    peer.float()  # the file is float16, which it would keep
    theirs = peer.encode(sentences[:200], convert_to_tensor=True).cpu()
    torch.testing.assert_close(encoder.encode(sentences[:200]), theirs, rtol=1e-3, atol=1e-3)
    return {
        "encode 10,000 sentences": ratio(lambda: encoder.encode(sentences), lambda: peer.encode(sentences), device, 5)
    }


@benchmark("g")
def methods_against_simcse(device: torch.device) -> dict:
    """(g) Training by each single-tower method, batch 64, sentences up to 32 tokens; the peer is SimCSE, taken in turn. Methods of
    triplets have three such sentences a row; RankCSE's teacher has given its vectors before."""
    sentences, steps = text(6400), 8 if device.type == "cpu" else 60
    with tempfile.TemporaryDirectory() as folder:
        rows, tokenizer = rows_of(sentences, Path(folder), 32), load_tokenizer(TINY)
        threes = [Triplet(*(sentences[i - k] for k in range(3))) for i in range(len(sentences))]
        triplets = tokenize_triplets(threes, tokenizer, Path(folder) / "triplets.arrow", max_length=32)
        teacher = SentenceEncoder(load_backbone(TINY), tokenizer).eval()
        taught = with_targets(rows, sentences, teacher.encode, Path(folder) / "targets.arrow")
        rows_by = {"rankcse": taught, "simcse_supervised": triplets, "angle": triplets}

        def step_seconds(name: str) -> float:
            plan = Schedule(steps, 64, 1e-5, 32, eval_every=steps)
            method = create(name, Settings.of("tiny"), [str(TINY)])
            found = fit(method, rows_by.get(name, rows), plan, dev=lambda m: 0.0, seed=1, device=device)
            return 64 / found.sentences_per_second

        others = [name for name in (*SINGLE, *rows_by) if name != "simcse"]
        return {
            f"{name} step": compared([(step_seconds(name), step_seconds("simcse")) for _ in range(3)])
            for name in others
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default=",".join(sorted(BENCHMARKS)), help="letters, e.g. a,c")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    device = torch.device(given.device)
    results = json.loads(given.results.read_text()) if given.results.is_file() else {}
    entry = results.setdefault(device.type, {"figures": {}})
    entry |= {"environment": environment_stamp(device), "threads": torch.get_num_threads()}
    for key in given.only.split(","):
        print(f"{key}: {BENCHMARKS[key].__doc__.splitlines()[0]}", flush=True)
        for name, figures in BENCHMARKS[key](device).items():
            entry["figures"][name] = {"benchmark": key, **figures}
            print(f"   {name}: {figures}", flush=True)
        given.results.parent.mkdir(parents=True, exist_ok=True)
        given.results.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
