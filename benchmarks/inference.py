"""Benchmarks of evaluation and encoding."""

import tempfile

import torch
from peers import senteval
from scipy.stats import spearmanr
from timing import (
    PRODUCTS,
    TINY,
    against_peak,
    benchmark,
    flops,
    ratio,
    seconds,
    stock_tower,
    summary,
    text,
    where_time_goes,
)

from cselab.data.sources import data_folder
from cselab.data.sts import STS7, load_sts
from cselab.evaluation import evaluate_sts
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer


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
        pairs = {task: senteval(stock, encoder.tokenizer, load_sts(task), device) for task in tasks}
        scores["peer"] = {task: 100 * spearmanr(*pair).statistic for task, pair in pairs.items()}

    name = "STS-7 evaluation" if len(tasks) > 1 else "synthetic STS"
    figures = ratio(ours, peer, device, 3, warm_up=device.type != "cpu")
    return {name: {**figures, "largest_score_difference": largest_difference(**scores)}}


@benchmark("d")
def encode_sentences(device: torch.device) -> dict:
    """(d) Encode 10,000 sentences; the peer is `SentenceTransformer.encode` with its defaults."""
    sentences = text(10_000)
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    peer = sentence_transformer(device)
    theirs = peer.encode(sentences[:200], convert_to_tensor=True).cpu()
    torch.testing.assert_close(encoder.encode(sentences[:200]), theirs, rtol=1e-3, atol=1e-3)
    figures = ratio(lambda: encoder.encode(sentences), lambda: peer.encode(sentences), device, 5)
    count = flops(lambda: encoder.encode(sentences))
    shares = where_time_goes(lambda: encoder.encode(sentences), {"products": PRODUCTS})
    return {
        "encode 10,000 sentences": figures,
        "encode, profile": {**shares, **against_peak(count, figures["ours_s"], device)},
    }


@benchmark("j")
def mteb_evaluation(device: torch.device) -> dict:
    """(j) The seven STS tests (needs the data folder).

    The peer is mteb with sentence-transformers at its defaults, on the same pairs.
    """
    if not data_folder(None):
        return {}
    import mteb  # these take seconds
    from mteb.cache import ResultCache

    from cselab.evaluation.mteb_feed import feed
    from cselab.evaluation.mteb_tasks import find_tasks

    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    peer_model, options = sentence_transformer(device), {"SICK-R": "all"}
    scores: dict[str, dict] = {}

    def ours() -> None:
        scores["ours"] = evaluate_sts(encoder.encode, STS7, split=options, resamples=0).scores

    def peer(tasks) -> None:
        with tempfile.TemporaryDirectory() as folder:
            cache = ResultCache(folder)
            off = {"co2_tracker": False, "show_progress_bar": False}
            result = mteb.evaluate(peer_model, tasks, cache=cache, **off)
        scores["peer"] = {one.task_name: 100 * one.get_score() for one in result.task_results}

    turns = []
    for _ in range(3):
        tasks, _ = feed(find_tasks(STS7))  # mteb reads its pairs before it is timed
        turns.append((seconds(ours, device), seconds(lambda tasks=tasks: peer(tasks), device)))
    largest = largest_difference(**scores)
    return {"STS-7 against mteb": {**summary(turns), "largest_score_difference": largest}}


def largest_difference(ours: dict[str, float], peer: dict[str, float]) -> float:
    """Largest difference of the scores x100 of a task."""
    return round(float(max(abs(score - peer[task]) for task, score in ours.items())), 4)


def sentence_transformer(device: torch.device):
    """The shipped backbone in sentence-transformers, [CLS], in float32."""
    import logging

    from sentence_transformers import SentenceTransformer, models

    logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
    transformer = models.Transformer(str(TINY), max_seq_length=128)
    pooling = models.Pooling(transformer.get_embedding_dimension(), "cls")
    model = SentenceTransformer(modules=[transformer, pooling], device=str(device))
    return model.float()  # the file is float16, and the peer keeps its precision
