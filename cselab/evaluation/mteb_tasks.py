"""mteb's tasks by name, and those of this project that mteb lacks."""

import warnings
from collections.abc import Sequence

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
from cselab.evaluation.mteb_data import ENGLISH, LOCAL_TASKS

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
OWN_TASKS = [name for name, row in LOCAL_TASKS.items() if row.kind]
"""Tasks that mteb does not have."""


def _own_task(name: str) -> AbsTask:
    """A task that mteb lacks, by its row of LOCAL_TASKS."""
    row = LOCAL_TASKS[name]
    parent, score = KINDS[row.kind]
    folds = row.kind == "Classification" and len(row.files["default"]) == 1  # a task without parts
    metadata = TaskMetadata(
        name=name,
        description=row.description,
        dataset={"path": f"cselab/{name}", "revision": "local"},
        type=row.kind,
        category="t2c" if row.kind == "Classification" else "t2t",
        modalities=["text"],
        eval_splits=["train" if folds else "test"],
        eval_langs=row.languages or [ENGLISH],
        main_score=score,
    )
    attributes = {"is_cross_validation": True} if folds else {}
    return type(name, (parent,), {"metadata": metadata, **attributes})()


def find_tasks(names: Sequence[str], languages: Sequence[str] = ()) -> list[AbsTask]:
    """Tasks of mteb and of ours by name, without their data.

    A task that mteb evaluates on several splits, "test" among them, is evaluated on that alone, as
    the papers report one score. An aggregate (CQADupstackRetrieval) stands for its parts.

    Args:
        names: "STS17/en-en" is one subset of STS17.
        languages: ISO 639-3 codes as mteb's ("deu"), or two letters (LANGUAGES). Subsets without
            any of them are left out, and tasks without such a subset; "de-en" has both, so "en"
            takes it as well as "en-en". None: all.

    Raises:
        SettingsError: For an unknown name, subset or language, and a task that reads more than
            text.

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
        if (modalities := task.metadata.modalities) != ["text"]:
            raise SettingsError(
                f"{task.metadata.name} reads {', '.join(modalities)}, not text alone"
            )
        if "test" in task.metadata.eval_splits:
            task.filter_eval_splits(["test"])
    return in_languages(tasks, languages) if languages else tasks


def in_languages(tasks: Sequence[AbsTask], languages: Sequence[str]) -> list[AbsTask]:
    """Limit tasks, in place, to the subsets in some of the languages; see `find_tasks`."""
    codes = [LANGUAGES.get(name, name).split("-")[0] for name in languages]
    known = {code for task in tasks for code in task.metadata.languages}
    for name, code in zip(languages, codes, strict=True):
        if code not in known:
            names, valid = ", ".join(t.metadata.name for t in tasks), ", ".join(sorted(known))
            raise SettingsError(f"no task of {names} has the language {name!r}; they have {valid}")
    having = [task for task in tasks if set(task.metadata.languages) & set(codes)]
    return [task.filter_languages(codes) for task in having]


def _open(name: str, subsets: Sequence[str]) -> list[AbsTask]:
    """A task, or the parts of an aggregate, with some subsets; "" is all of them."""
    tasks = _by_name(name)
    if not all(subsets):
        return tasks
    for task in tasks:
        for subset in subsets:
            if subset not in task.hf_subsets:
                raise SettingsError(f"{name} has no {subset!r}; {suggest(subset, task.hf_subsets)}")
        task.hf_subsets = list(dict.fromkeys(subsets))
    return tasks


def _by_name(name: str) -> list[AbsTask]:
    if name in OWN_TASKS:
        return [_own_task(name)]
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
