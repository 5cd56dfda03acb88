"""mteb's tasks by name, and tasks of this project for data that mteb does not have."""

import warnings
from collections.abc import Sequence
from typing import Any

import mteb
from mteb.abstasks import (
    AbsTask,
    AbsTaskBitextMining,
    AbsTaskClassification,
    AbsTaskPairClassification,
    AbsTaskRetrieval,
    AbsTaskSTS,
)
from mteb.abstasks.aggregated_task import AbsTaskAggregate
from mteb.abstasks.task_metadata import TaskMetadata

from cselab.errors import SettingsError, nearest, suggest

LANGUAGES = {
    "ar": "ara-Arab",
    "cs": "ces-Latn",
    "de": "deu-Latn",
    "en": "eng-Latn",
    "es": "spa-Latn",
    "fr": "fra-Latn",
    "it": "ita-Latn",
    "ko": "kor-Hang",
    "nl": "nld-Latn",
    "pl": "pol-Latn",
    "pt": "por-Latn",
    "ru": "rus-Cyrl",
    "tr": "tur-Latn",
    "zh": "cmn-Hans",
}
"""Languages of the papers' tables, with mteb's codes."""
KINDS = {
    "STS": (AbsTaskSTS, "cosine_spearman"),
    "Classification": (AbsTaskClassification, "accuracy"),
    "PairClassification": (AbsTaskPairClassification, "max_ap"),
    "BitextMining": (AbsTaskBitextMining, "f1"),
    "Retrieval": (AbsTaskRetrieval, "ndcg_at_10"),
    "Reranking": (AbsTaskRetrieval, "map_at_1000"),
}
"""mteb's classes and main scores of the kinds of tasks."""


def _task(
    name: str,
    kind: str,
    description: str,
    subsets: dict[str, list[str]] | None = None,
    **attributes: Any,
) -> type[AbsTask]:
    """A task of our own; subsets: their languages by name; attributes: of mteb's class."""
    parent, score = KINDS[kind]
    crossed = attributes.get("is_cross_validation", False)
    metadata = TaskMetadata(
        name=name,
        description=description,
        dataset={"path": f"cselab/{name}", "revision": "local"},
        type=kind,
        category="t2c" if kind == "Classification" else "t2t",
        modalities=["text"],
        eval_splits=["train" if crossed else "test"],
        eval_langs=subsets or ["eng-Latn"],
        main_score=score,
    )
    return type(name, (parent,), {"metadata": metadata, "__module__": __name__, **attributes})


_SENTEVAL = "{}, of SentEval; five folds of all rows, each with eight training rows a label"
_PAIRS = {f"en-{code}": [LANGUAGES["en"], LANGUAGES[code]] for code in ("fr", "de", "cs")}
PIVOTS = {f"through-{name}": [LANGUAGES["en"]] for name in ("fr", "ru", "nl", "zh", "de", "es")}
"""Subsets of SyntheticBitextMining: English and English, through a lexical pivot."""
_DEFINED = [
    *(
        _task(
            f"{name}Classification",
            "Classification",
            _SENTEVAL.format(name),
            is_cross_validation=True,
        )
        for name in ("MR", "CR", "SUBJ", "MPQA")
    ),
    _task("SST2Classification", "Classification", "Stanford Sentiment Treebank, two classes"),
    _task("TRECClassification", "Classification", "Kinds of questions, six classes"),
    _task("MRPCPairClassification", "PairClassification", "Microsoft's paraphrases, test part"),
    _task(
        "Multi30kBitextMining",
        "BitextMining",
        "Captions and their translations, test 2016",
        _PAIRS,
    ),
    _task("SNLICaptionRetrieval", "Retrieval", "Find the caption that entails a sentence"),
    _task("SNLIReranking", "Reranking", "Rank what a caption entails before nine others"),
    _task("CaptionRetrieval", "Retrieval", "Find the captions of a picture by its first one"),
    _task("SyntheticSTS", "STS", "Rated pairs of synthetic sentences"),
    _task("SyntheticClassification", "Classification", "What is done, in other words"),
    _task("SyntheticPairClassification", "PairClassification", "Entailed, or contradicted"),
    _task("SyntheticReranking", "Reranking", "Rank what a sentence entails before nine others"),
    _task("SyntheticCaptionRetrieval", "Retrieval", "Find sentences on a scene by one of them"),
    _task(
        "SyntheticBitextMining",
        "BitextMining",
        "Synthetic sentences and their round trips through lexical pivots",
        PIVOTS,
    ),
]
OWN_TASKS = {kind.metadata.name: kind for kind in _DEFINED}
"""Tasks that mteb does not have, by name."""


def find_tasks(names: Sequence[str], languages: Sequence[str] = ()) -> list[AbsTask]:
    """Tasks of mteb and of ours by name, without their data.

    A task that mteb evaluates on several splits, "test" among them, is evaluated on that alone, as
    the papers report one score. An aggregate (CQADupstackRetrieval) stands for its parts.

    Args:
        names: Names of tasks; "STS17/en-en" is one subset of STS17.
        languages: ISO 639-3 codes as mteb's ("deu"), or two letters (LANGUAGES). Subsets without
            any of them are left out, and tasks without such a subset; "de-en" has both, so "en"
            takes it as well as "en-en". None: all.

    Raises:
        SettingsError: With the nearest name, for an unknown task or subset; for a task that does
            not read text, and for a language that no task has.

    Examples:
        >>> from cselab.evaluation.mteb_tasks import find_tasks
        >>> [task.metadata.name for task in find_tasks(["STS12", "MRClassification"])]
        ['STS12', 'MRClassification']
        >>> find_tasks(["STS17"], ["fr"])[0].hf_subsets
        ['fr-en']
    """
    subsets: dict[str, list[str]] = {}
    for name in names:
        task, _, subset = name.partition("/")
        subsets.setdefault(task, []).append(subset)
    tasks = [task for name, chosen in subsets.items() for task in _open(name, chosen)]
    for task in tasks:
        if task.metadata.modalities != ["text"]:
            reads = ", ".join(task.metadata.modalities)
            raise SettingsError(f"{task.metadata.name} reads {reads}; expected a task of text")
        if "test" in task.metadata.eval_splits:
            task.filter_eval_splits(["test"])
    return in_languages(tasks, languages) if languages else tasks


def in_languages(tasks: Sequence[AbsTask], languages: Sequence[str]) -> list[AbsTask]:
    """The tasks that have some of the languages, with those of their subsets alone.

    Args:
        tasks: Tasks of `find_tasks`, whose subsets are changed in place.
        languages: As in `find_tasks`.

    Raises:
        SettingsError: For a language that no task has.
    """
    codes = [LANGUAGES.get(name, name).split("-")[0] for name in languages]
    known = {code for task in tasks for code in task.metadata.languages}
    for name, code in zip(languages, codes, strict=True):
        if code not in known:
            names = ", ".join(task.metadata.name for task in tasks)
            raise SettingsError(
                f"no task of {names} has the language {name!r}; they have "
                f"{', '.join(sorted(known))}"
            )
    having = [task for task in tasks if set(task.metadata.languages) & set(codes)]
    return [task.filter_languages(codes) for task in having]


def _open(name: str, subsets: Sequence[str]) -> list[AbsTask]:
    """A task, or the parts of an aggregate, with some subsets; "" is all of them."""
    tasks = _by_name(name)
    for task in tasks if all(subsets) else []:
        for subset in subsets:
            if subset not in task.hf_subsets:
                raise SettingsError(f"{name} has no {subset!r}; {suggest(subset, task.hf_subsets)}")
        task.hf_subsets = list(dict.fromkeys(subsets))
    return tasks


def _by_name(name: str) -> list[AbsTask]:
    if name in OWN_TASKS:
        return [OWN_TASKS[name]()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a newer version of the task exists
        try:
            task = mteb.get_task(name)
        except KeyError:
            known = [one.metadata.name for one in mteb.get_tasks(exclude_superseded=False)]
            raise SettingsError(
                f"unknown mteb task {name!r}; {nearest(name, [*known, *OWN_TASKS])} "
                "docs/how-to/mteb.md lists those with local data, mteb.get_tasks() all of mteb's"
            ) from None
    return list(task.tasks) if isinstance(task, AbsTaskAggregate) else [task]
