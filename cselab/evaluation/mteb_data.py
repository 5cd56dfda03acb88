"""One table of mteb's tasks that need no hub: files of a data folder, or synthetic text."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from cselab.data.captions import load_captions
from cselab.data.corpus import load_corpus
from cselab.data.nli import load_nli_triplets
from cselab.data.sources import shipped_english
from cselab.data.sts import STEMS, STS7, STS17_PAIRS, STSB_LANGUAGES, load_sts
from cselab.data.synthetic import captions, describe, sentences, triplets
from cselab.data.synthetic.frames import draw_event
from cselab.data.synthetic.sets import Triplet
from cselab.data.transfer import COUNTS, load_transfer
from cselab.data.translation.parallel import load_parallel
from cselab.data.translation.pivot import LexicalPivot

Splits = dict[str, dict[str, Any]]
"""Columns of each split; of a retrieval task: queries, corpus and relevant_docs by id, top_ranked.
"""
SST2_ROWS = 5000
"""Training phrases of SST2, of 67,349: mteb draws 160, but reads every label for each ten."""
EVENTS = 4000
ACTIONS = ("arrest", "buy", "chase", "cook", "eat", "find", "help", "repair", "throw", "watch")
"""Events drawn for SyntheticClassification, and its classes: actions that have two words each."""
TRIPLETS = 300
"""Triplets of the shipped English text (premises of SNLI with revised hypotheses), in its order."""
MISSING_WORDS = ("album", "film", "football", "river", "station", "university")
OF_EACH = 60
"""Classes of EnglishClassification, and sentences of each in either part."""
ENGLISH = "eng-Latn"


class LocalTask(NamedTuple):
    """Local data of a task, and the metadata of a task that mteb lacks.

    Attributes:
        read: (subset, data folder or None) -> Splits.
        files: Files of a data folder, by subset; none for synthetic text.
        kind: mteb's type; "" for a task of mteb's own.
        languages: mteb's codes, by subset of a task with several.
    """

    read: Callable[[str, Any], Splits]
    files: Mapping[str, Sequence[str]]
    kind: str = ""
    description: str = ""
    languages: Mapping[str, list[str]] | None = None


def _pairs(one: Sequence[str], two: Sequence[str], **labels: Sequence) -> Splits:
    return {"test": {"sentence1": one, "sentence2": two, **labels}}


def _sts(task: str, split: str, subset: str, folder: Path | None) -> Splits:
    name = "STSBenchmark" if subset == "en" else task.format(subset=subset)
    data = load_sts(name, split, folder=folder)
    return _pairs(data.sentences1, data.sentences2, score=data.scores.tolist())


def _labelled(task: str, _: str, folder: Path | None) -> Splits:
    """Rows of a transfer task with numbers as labels; one without parts is all "train"."""
    parts = load_transfer(task, folder)
    names = sorted({str(label) for part in parts.values() for label in part.labels})
    *columns, label = ("sentence1", "sentence2", "labels") if task == "MRPC" else ("text", "label")
    splits: Splits = {}
    for name, part in parts.items():
        rows = SST2_ROWS if (task, name) == ("SST2", "train") else None
        texts = (column[:rows] for column in part.texts)
        codes = [names.index(str(one)) for one in part.labels[:rows]]
        splits[name or "train"] = {**dict(zip(columns, texts, strict=True)), label: codes}
    return splits


def _multi30k(subset: str, folder: Path | None) -> Splits:
    pairs = load_parallel(f"multi30k-{subset}-test2016", folder=folder).pairs
    one, two = map(list, zip(*pairs, strict=True))
    return _pairs(one, two)


def _search(
    queries: Iterable[str],
    corpus: Iterable[str],
    relevant: Iterable[Iterable[str]],
    candidates: Iterable[Iterable[str]] | None = None,
) -> Splits:
    """A retrieval task from texts; equal texts of the corpus are one document."""
    number = {text: str(i) for i, text in enumerate(dict.fromkeys(corpus))}
    by_id = {f"q{i}": text for i, text in enumerate(queries)}
    answers = [{number[text]: 1 for text in texts} for texts in relevant]
    ranked = [[number[text] for text in dict.fromkeys(texts)] for texts in candidates or ()]
    split = {
        "queries": by_id,
        "corpus": {name: text for text, name in number.items()},
        "relevant_docs": dict(zip(by_id, answers, strict=True)),
        "top_ranked": dict(zip(by_id, ranked, strict=True)) if candidates else None,
    }
    return {"test": split}


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


def _find_premises(rows: Sequence[Triplet]) -> Splits:
    anchors = [row.anchor for row in rows]
    return _search([row.entailed for row in rows], anchors, ([text] for text in anchors))


def _entailed_or_contradicted(rows: Sequence[Triplet]) -> Splits:
    two = [text for row in rows for text in (row.entailed, row.contradicted)]
    return _pairs([row.anchor for row in rows for _ in range(2)], two, labels=[1, 0] * len(rows))


def _english_triplets() -> list[Triplet]:
    return load_nli_triplets(["cad-nli-train"], folder=shipped_english())[:TRIPLETS]


def _missing_words(*_: Any) -> Splits:
    """Sentences of Wikipedia that have one of the words, without it: which one is missing?"""
    text: dict[str, list[str]] = {word: [] for word in MISSING_WORDS}
    for sentence in load_corpus(shipped_english() / "corpus" / "wikipedia-20k.parquet"):
        found = set(re.findall(r"[a-z]+", sentence.lower())) & set(MISSING_WORDS)
        if len(found) == 1:
            (word,) = found
            without = re.sub(rf"\b{word}\b", " ", sentence, flags=re.IGNORECASE)
            text[word].append(" ".join(without.split()))
    parts = {"train": slice(0, OF_EACH), "test": slice(OF_EACH, 2 * OF_EACH)}
    return {
        name: {
            "text": [sentence for rows in text.values() for sentence in rows[part]],
            "label": [label for label, rows in enumerate(text.values()) for _ in rows[part]],
        }
        for name, part in parts.items()
    }


def _synthetic_bitext(subset: str, _: Path | None) -> Splits:
    one = list(sentences(500))
    return _pairs(one, LexicalPivot(subset[-2:])(one))


def _synthetic_actions(*_: Any) -> Splits:
    random = Random("mteb")
    drawn = [draw_event(random) for _ in range(EVENTS)]
    events = [event for event in drawn if event.verb in ACTIONS]
    texts = [describe(event, random) for event in events]
    labels = [ACTIONS.index(event.verb) for event in events]
    parts = {"train": slice(0, None, 2), "test": slice(1, None, 2)}
    return {name: {"text": texts[part], "label": labels[part]} for name, part in parts.items()}


def _files(stem: str, *parts: str) -> dict[str, list[str]]:
    return {"default": [f"{stem}-{part}.tsv.gz" for part in parts] or [f"{stem}.tsv.gz"]}


def _kind(task: str) -> str:
    return "PairClassification" if task == "MRPC" else "Classification"


_LACKING = ("es-en-wmt", "ja")
"""STS17's track 4b and a language of STS-B, which mteb leaves out."""
_MULTILINGUAL = "sts-multilingual/{}-{}-test.tsv.gz"
_STS17 = {x: [_MULTILINGUAL.format("sts17", x)] for x in STS17_PAIRS if x not in _LACKING}
_STSB = {x: [_MULTILINGUAL.format("stsb", x)] for x in STSB_LANGUAGES if x not in _LACKING}
_CODES = {"en-fr": "fra-Latn", "en-de": "deu-Latn", "en-cs": "ces-Latn"}
_MULTI30K = {x: [f"parallel/multi30k-{x}-test2016.tsv.gz"] for x in _CODES}
_PIVOTS = [f"through-{language}" for language in ("fr", "ru", "nl", "zh", "de", "es")]
_FOLDS = "{}, of SentEval; five folds of all rows, each with eight training rows a label"
_TRANSFER = {
    **{task: _FOLDS.format(task) for task in ("MR", "CR", "SUBJ", "MPQA")},
    "SST2": "Stanford Sentiment Treebank, two classes",
    "TREC": "Kinds of questions, six classes",
    "MRPC": "Microsoft's paraphrases, test part",
}
_SNLI, _NONE = _files("nli/snli-test"), {"default": ()}

LOCAL_TASKS = {
    **{
        task: LocalTask(partial(_sts, task, "test"), _files(f"sts/{STEMS[task]}", "test"))
        for task in STS7
    },
    "SICK-R": LocalTask(
        partial(_sts, "SICK-R", "all"), _files("sts/sickr", "train", "dev", "test")
    ),
    "STS17": LocalTask(partial(_sts, "STS17-{subset}", "test"), _STS17),
    "STSBenchmarkMultilingualSTS": LocalTask(
        partial(_sts, "STSBenchmark-{subset}", "test"), {"en": ["sts/stsb-test.tsv.gz"], **_STSB}
    ),
    **{
        f"{task}{_kind(task)}": LocalTask(
            partial(_labelled, task),
            _files(f"transfer/{task.lower()}", *filter(None, COUNTS[task])),
            _kind(task),
            description,
        )
        for task, description in _TRANSFER.items()
    },
    "Multi30kBitextMining": LocalTask(
        _multi30k,
        _MULTI30K,
        "BitextMining",
        "Captions and their translations, test 2016",
        {pair: [ENGLISH, code] for pair, code in _CODES.items()},
    ),
    "SNLICaptionRetrieval": LocalTask(
        lambda _, folder: _find_premises(load_nli_triplets(["snli-test"], folder=folder)),
        _SNLI,
        "Retrieval",
        "Find the caption that entails a sentence",
    ),
    "SNLIReranking": LocalTask(
        lambda _, folder: _reranking(load_nli_triplets(["snli-test"], folder=folder)),
        _SNLI,
        "Reranking",
        "Rank what a caption entails before nine others",
    ),
    "CaptionRetrieval": LocalTask(
        lambda _, folder: _first_captions(load_captions(folder / "captions")),
        {"default": ["captions/"]},
        "Retrieval",
        "Find the captions of a picture by its first one",
    ),
    "EnglishCaptionRetrieval": LocalTask(
        lambda *_: _find_premises(_english_triplets()),
        _NONE,
        "Retrieval",
        "Find the caption that entails a sentence",
    ),
    "EnglishReranking": LocalTask(
        lambda *_: _reranking(_english_triplets()),
        _NONE,
        "Reranking",
        "Rank what a caption entails before nine others",
    ),
    "EnglishPairClassification": LocalTask(
        lambda *_: _entailed_or_contradicted(_english_triplets()),
        _NONE,
        "PairClassification",
        "Entailed, or contradicted by a few other words",
    ),
    "EnglishClassification": LocalTask(
        _missing_words, _NONE, "Classification", "Which word a sentence of Wikipedia lacks"
    ),
    "SyntheticSTS": LocalTask(
        partial(_sts, "Synthetic", "test"), _NONE, "STS", "Rated pairs of synthetic sentences"
    ),
    "SyntheticClassification": LocalTask(
        _synthetic_actions, _NONE, "Classification", "What is done, in other words"
    ),
    "SyntheticPairClassification": LocalTask(
        lambda *_: _entailed_or_contradicted(list(triplets(500))),
        _NONE,
        "PairClassification",
        "Entailed, or contradicted",
    ),
    "SyntheticReranking": LocalTask(
        lambda *_: _reranking(list(triplets(500))),
        _NONE,
        "Reranking",
        "Rank what a sentence entails before nine others",
    ),
    "SyntheticCaptionRetrieval": LocalTask(
        lambda *_: _first_captions(list(captions(300))),
        _NONE,
        "Retrieval",
        "Find sentences on a scene by one of them",
    ),
    "SyntheticBitextMining": LocalTask(
        _synthetic_bitext,
        dict.fromkeys(_PIVOTS, ()),
        "BitextMining",
        "Synthetic sentences and their round trips through lexical pivots",
        {pivot: [ENGLISH] for pivot in _PIVOTS},
    ),
}
"""The tasks, in the order of the benchmark "offline"."""
