"""Data of mteb's tasks that needs no hub: files of a data folder, and synthetic text."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cselab.data.captions import load_captions
from cselab.data.nli import load_nli_triplets
from cselab.data.sts import STEMS, STS7, STS17_PAIRS, STSB_LANGUAGES, load_sts
from cselab.data.synthetic import captions, describe, sentences, triplets
from cselab.data.synthetic.frames import draw_event
from cselab.data.synthetic.sets import Triplet
from cselab.data.transfer import LabelledText, load_transfer
from cselab.data.translation.parallel import load_parallel
from cselab.data.translation.pivot import LexicalPivot
from cselab.evaluation.mteb_tasks import PIVOTS

Splits = dict[str, dict[str, Any]]
"""Columns of each split; of a retrieval task: queries, corpus and relevant_docs by id, top_ranked.
"""

SST2_ROWS = 5000
"""Training phrases of SST2, of 67,349, that mteb draws from."""

ACTIONS = (
    "arrest",
    "buy",
    "chase",
    "cook",
    "eat",
    "find",
    "help",
    "repair",
    "throw",
    "watch",
)
"""Classes of SyntheticClassification: actions that have two words each."""


class Feed(NamedTuple):
    """Where the data of a task is.

    Attributes:
        files: What each subset reads of a data folder; none for embedded text.
        read: (subset, data folder) -> Splits.
    """

    files: Mapping[str, tuple[str, ...]]
    read: Callable[[str, Path | None], Splits]


def _sts(task: str, split: str, subset: str, where: Path | None) -> Splits:
    data = load_sts(task.format(subset=subset), split, folder=where)
    return {
        "test": {
            "sentence1": data.sentences1,
            "sentence2": data.sentences2,
            "score": data.scores.tolist(),
        }
    }


def _multilingual(subset: str, where: Path | None) -> Splits:
    return _sts("STSBenchmark" if subset == "en" else f"STSBenchmark-{subset}", "test", "", where)


def _labelled(task: str, subset: str, where: Path | None) -> Splits:
    """Rows of a transfer task with numbers as labels; one without parts is all "train"."""
    parts = load_transfer(task, where)
    if task == "SST2":  # mteb draws 160 rows, and reads the label of every row for each ten
        train = parts["train"]
        kept = tuple(texts[:SST2_ROWS] for texts in train.texts)
        parts["train"] = LabelledText(kept, train.labels[:SST2_ROWS])
    names = sorted({str(label) for part in parts.values() for label in part.labels})
    columns = ("text",) if task != "MRPC" else ("sentence1", "sentence2")
    label = "labels" if task == "MRPC" else "label"
    return {
        name or "train": {
            **dict(zip(columns, part.texts, strict=True)),
            label: [names.index(str(one)) for one in part.labels],
        }
        for name, part in parts.items()
    }


def _multi30k(subset: str, where: Path | None) -> Splits:
    pairs = load_parallel(f"multi30k-{subset}-test2016", folder=where).pairs
    one, two = map(list, zip(*pairs, strict=True))
    return {"test": {"sentence1": one, "sentence2": two}}


def _search(
    queries: Iterable[str],
    corpus: Iterable[str],
    relevant: Iterable[Iterable[str]],
    candidates: Iterable[Iterable[str]] | None = None,
) -> Splits:
    """A retrieval task from texts; equal texts of the corpus are one document."""
    number = {text: str(i) for i, text in enumerate(dict.fromkeys(corpus))}
    asked = {f"q{i}": text for i, text in enumerate(queries)}
    ranked = [[number[text] for text in dict.fromkeys(c)] for c in candidates or ()]
    return {
        "test": {
            "queries": asked,
            "corpus": {name: text for text, name in number.items()},
            "relevant_docs": {
                query: {number[text]: 1 for text in texts}
                for query, texts in zip(asked, relevant, strict=True)
            },
            "top_ranked": dict(zip(asked, ranked, strict=True)) if candidates else None,
        }
    }


def _first_captions(scenes: Sequence[Sequence[str]]) -> Splits:
    """The first caption of each scene searches for the others."""
    others = [scene[1:] for scene in scenes]
    return _search([scene[0] for scene in scenes], (c for o in others for c in o), others)


def _reranking(rows: Sequence[Triplet]) -> Splits:
    """Entailed among ten: the contradicted one, and the entailed ones of the next eight rows."""
    entailed = [row.entailed for row in rows]
    around = [
        [row.entailed, row.contradicted, *(entailed[(i + k) % len(rows)] for k in range(1, 9))]
        for i, row in enumerate(rows)
    ]
    texts = (text for group in around for text in group)
    return _search([row.anchor for row in rows], texts, ([text] for text in entailed), around)


def _snli_retrieval(subset: str, where: Path | None) -> Splits:
    rows = load_nli_triplets(["snli-test"], folder=where)
    anchors = [row.anchor for row in rows]
    return _search([row.entailed for row in rows], anchors, ([text] for text in anchors))


def _snli_reranking(subset: str, where: Path | None) -> Splits:
    return _reranking(load_nli_triplets(["snli-test"], folder=where))


def _captions(subset: str, where: Path | None) -> Splits:
    assert where is not None  # `feed` reads it only where its files are
    return _first_captions(load_captions(where / "captions"))


def _synthetic_captions(subset: str, where: Path | None) -> Splits:
    return _first_captions(list(captions(300)))


def _synthetic_reranking(subset: str, where: Path | None) -> Splits:
    return _reranking(list(triplets(500)))


def _synthetic_pairs(subset: str, where: Path | None) -> Splits:
    rows = list(triplets(500))
    two = [text for row in rows for text in (row.entailed, row.contradicted)]
    one = [row.anchor for row in rows for _ in range(2)]
    return {"test": {"sentence1": one, "sentence2": two, "labels": [1, 0] * len(rows)}}


def _synthetic_bitext(subset: str, where: Path | None) -> Splits:
    one = list(sentences(500))
    return {"test": {"sentence1": one, "sentence2": LexicalPivot(subset[-2:])(one)}}


def _synthetic_actions(subset: str, where: Path | None) -> Splits:
    random = Random("mteb")
    drawn = (draw_event(random) for _ in range(4000))
    events = [event for event in drawn if event.verb in ACTIONS]
    rows = [(describe(event, random), ACTIONS.index(event.verb)) for event in events]
    parts = {"train": rows[::2], "test": rows[1::2]}
    return {
        name: {"text": [text for text, _ in part], "label": [label for _, label in part]}
        for name, part in parts.items()
    }


_ALL = {"SICK-R": ("train", "dev", "test")}


def _file(folder: str, stem: str, *parts: str) -> dict[str, tuple[str, ...]]:
    names = [f"{stem}-{part}" for part in parts] or [stem]
    return {"default": tuple(f"{folder}/{name}.tsv.gz" for name in names)}


FEEDS = {
    **{
        task: Feed(
            _file("sts", STEMS[task], *_ALL.get(task, ("test",))),
            partial(_sts, task, "all" if task in _ALL else "test"),
        )
        for task in STS7
    },
    "STS17": Feed(
        {
            pair: (f"sts-multilingual/sts17-{pair}-test.tsv.gz",)
            for pair in STS17_PAIRS
            if pair != "es-en-wmt"  # track 4b, which mteb leaves out
        },
        partial(_sts, "STS17-{subset}", "test"),
    ),
    "STSBenchmarkMultilingualSTS": Feed(
        {"en": ("sts/stsb-test.tsv.gz",)}
        | {
            code: (f"sts-multilingual/stsb-{code}-test.tsv.gz",)
            for code in STSB_LANGUAGES
            if code != "ja"  # which mteb does not have
        },
        _multilingual,
    ),
    **{
        f"{task}Classification": Feed(_file("transfer", task.lower()), partial(_labelled, task))
        for task in ("MR", "CR", "SUBJ", "MPQA")
    },
    "SST2Classification": Feed(
        _file("transfer", "sst2", "train", "dev", "test"), partial(_labelled, "SST2")
    ),
    "TRECClassification": Feed(
        _file("transfer", "trec", "train", "test"), partial(_labelled, "TREC")
    ),
    "MRPCPairClassification": Feed(
        _file("transfer", "mrpc", "train", "test"), partial(_labelled, "MRPC")
    ),
    "Multi30kBitextMining": Feed(
        {
            pair: (f"parallel/multi30k-{pair}-test2016.tsv.gz",)
            for pair in ("en-fr", "en-de", "en-cs")
        },
        _multi30k,
    ),
    "SNLICaptionRetrieval": Feed(_file("nli", "snli-test"), _snli_retrieval),
    "SNLIReranking": Feed(_file("nli", "snli-test"), _snli_reranking),
    "CaptionRetrieval": Feed({"default": ("captions/",)}, _captions),
    "SyntheticSTS": Feed({"default": ()}, partial(_sts, "Synthetic", "test")),
    "SyntheticClassification": Feed({"default": ()}, _synthetic_actions),
    "SyntheticPairClassification": Feed({"default": ()}, _synthetic_pairs),
    "SyntheticReranking": Feed({"default": ()}, _synthetic_reranking),
    "SyntheticCaptionRetrieval": Feed({"default": ()}, _synthetic_captions),
    "SyntheticBitextMining": Feed(dict.fromkeys(PIVOTS, ()), _synthetic_bitext),
}
"""Tasks that have local data, in the order of the benchmark "offline"."""
