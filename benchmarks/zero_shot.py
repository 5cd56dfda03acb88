"""Benchmark of mteb's tasks on encoders of ours."""

import tempfile

import torch
from inference import largest_difference, sentence_transformer
from timing import TINY, benchmark, seconds, summary

from cselab.data.sources import data_folder
from cselab.models import SentenceEncoder, load_backbone, load_tokenizer

REAL = (
    "STS16",
    "STS17",
    "TRECClassification",
    "MRPCPairClassification",
    "Multi30kBitextMining",
    "SNLICaptionRetrieval",
    "SNLIReranking",
)
SYNTHETIC = (
    "SyntheticSTS",
    "SyntheticClassification",
    "SyntheticPairClassification",
    "SyntheticBitextMining",
    "SyntheticCaptionRetrieval",
    "SyntheticReranking",
)


@benchmark("l")
def mteb_tasks(device: torch.device) -> dict:
    """(l) Tasks of six kinds in mteb (synthetic ones without a data folder).

    The peer is mteb with sentence-transformers at its defaults, on the same data. Both write
    mteb's result files.
    """
    import mteb  # these take seconds
    from mteb.cache import ResultCache

    from cselab.evaluation.mteb_feed import feed
    from cselab.evaluation.mteb_run import run_mteb
    from cselab.evaluation.mteb_tasks import find_tasks

    names = REAL if data_folder(None) else SYNTHETIC
    encoder = SentenceEncoder(load_backbone(TINY), load_tokenizer(TINY)).to(device)
    peer_model, scores = sentence_transformer(device), {}

    def fed() -> list:
        return feed(find_tasks(names))[0]

    def ours(tasks: list) -> None:
        with tempfile.TemporaryDirectory() as folder:
            found = run_mteb(
                encoder, tasks, folder, name="ours", revision="1", say=lambda line: None
            )
        scores["ours"] = {one.task_name: one.get_score() for one in found}

    def peer(tasks: list) -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = {"cache": ResultCache(folder), "co2_tracker": False}
            found = mteb.evaluate(peer_model, tasks, show_progress_bar=False, **options)
        scores["peer"] = {one.task_name: one.get_score() for one in found.task_results}

    turns = []
    for _ in range(3):
        one, two = fed(), fed()  # data is read before the time is taken
        here = seconds(lambda tasks=one: ours(tasks), device)
        turns.append((here, seconds(lambda tasks=two: peer(tasks), device)))
    largest = largest_difference(**scores)
    return {"mteb tasks against mteb": {**summary(turns), "largest_score_difference": largest}}
