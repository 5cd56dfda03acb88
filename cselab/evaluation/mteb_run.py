"""Run mteb task by task, with its own result files; what is finished is not computed again."""

import contextlib
import io
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import mteb
import numpy as np
from mteb.abstasks import AbsTask
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction
from mteb.results import TaskResult

from cselab.evaluation.sts import finite_rows
from cselab.models.encode import Encoder
from cselab.seals import clear_access

KEPT_TEXTS = 200_000
"""Vectors of a task that are kept; 0.6 GB for 768 dimensions."""


class MtebEncoder(AbsEncoder):
    """mteb's view of an encoder, by cosine; each distinct text of a task is encoded once.

    mteb asks for one column of a task after the other, and for both sides of every pair of
    languages. Here a text that a task has shown is looked up, and the new ones go to the encoder
    in one call, which sorts them by length. mteb's instructions of a task are not put before its
    texts: the papers' encoders have none.
    """

    def __init__(self, encoder: Encoder, name: str, revision: str):
        self.encoder = encoder
        meta = {"name": name, "revision": revision, "modalities": ["text"]}
        meta["similarity_fn_name"] = ScoringFunction.COSINE
        self.mteb_model_meta = ModelMeta.create_empty(overwrites=meta)
        self._task = ""
        self._vectors: dict[str, np.ndarray] = {}

    def encode(self, inputs: Any, *, task_metadata: Any, **_: Any) -> np.ndarray:
        """Embeddings of the n texts of mteb's loader, (n, d) float32, kept until the next task."""
        texts = list(inputs.dataset["text"])
        distinct = dict.fromkeys(texts)
        new = [text for text in distinct if text not in self._vectors]
        if task_metadata.name != self._task or len(self._vectors) + len(new) > KEPT_TEXTS:
            self._task, self._vectors, new = task_metadata.name, {}, list(distinct)
        if new:
            rows: np.ndarray = finite_rows(self.encoder.encode(new), len(new)).astype(np.float32)
            self._vectors.update(zip(new, rows, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def run_mteb(
    encoder: Encoder,
    tasks: Sequence[AbsTask],
    results: str | Path,
    *,
    name: str,
    revision: str,
    say: Callable[[str], None] = print,
) -> list[TaskResult]:
    """Evaluate an encoder on tasks of mteb; those without data load theirs from the hub.

    A task, or a subset of one, that has a result of the same data in `results` is not computed
    again, unless its file is damaged. A task that the hub cannot give is left out. A line says why.

    Args:
        tasks: From `find_tasks` or `feed`.
        results: Folder of mteb's `ResultCache`: results/<owner>__<name>/<revision>/<task>.json.
        revision: Another encoder of the same name needs another one, such as the fingerprint of
            its folder, or it gets the results of the first.
        say: Called with one line per task.

    Raises:
        DataError: For vectors that are not finite, a full disk, and results that this user cannot
            read or write.

    Examples:
        >>> import cselab
        >>> from cselab.evaluation.mteb_feed import feed
        >>> from cselab.evaluation.mteb_run import run_mteb
        >>> from cselab.evaluation.mteb_tasks import find_tasks
        >>> tasks, _ = feed(find_tasks(["SyntheticCaptionRetrieval"]))
        >>> options = {"name": "plain", "revision": "1", "say": lambda line: None}
        >>> [result] = run_mteb(cselab.load("plain-bert"), tasks, "results", **options)
        >>> bool(0 < result.get_score() < 1)
        True
    """
    model, done = MtebEncoder(encoder, f"cselab/{name}", revision), []
    with clear_access(Path(results)):
        Path(results).mkdir(parents=True, exist_ok=True)
        cache = ResultCache(results)
        finished = [_finished(cache, task, model) for task in tasks]
        for task, result in zip(tasks, finished, strict=True):
            if result is not None and not result.get_missing_evaluations(task):
                done.append(result)
                say(f"{_line(task, result)} (finished before)")
                continue
            was_loaded = task.data_loaded
            if not was_loaded and (problem := _load(task)):
                say(f"{task.metadata.name}: left out: {problem}")
                continue
            # mteb itself does not compare the revision of the data
            options: dict[str, Any] = {"co2_tracker": False, "show_progress_bar": False}
            options["overwrite_strategy"] = "only-missing" if result else "always"
            with _quiet():
                done += mteb.evaluate(model, task, cache=cache, **options).task_results
            if not was_loaded:
                task.unload_data()
            say(_line(task, done[-1]))
    return done


def kept_results(results: str | Path, *, name: str, revision: str) -> list[TaskResult]:
    """All results of an encoder, of this run and of earlier ones; a line names damaged files."""
    folder = ResultCache(results).get_task_result_path("task", f"cselab/{name}", revision).parent
    read = [_read(path) for path in sorted(folder.glob("*.json")) if path.stem != "model_meta"]
    return [result for result in read if result is not None]


def _read(path: Path) -> TaskResult | None:
    """The result in a file; of a damaged one None, with a line."""
    try:
        return TaskResult.from_disk(path)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:80]
        print(f"{path} is damaged ({reason}), so it is not used", file=sys.stderr)
        return None


def _finished(cache: ResultCache, task: AbsTask, model: MtebEncoder) -> TaskResult | None:
    """The result file of a task, if it is of the same data."""
    path = cache.get_task_result_path(task.metadata.name, model.mteb_model_meta)
    result = _read(path) if path.is_file() else None
    return result if result and result.dataset_revision == task.metadata.revision else None


def _load(task: AbsTask) -> str:
    """Load a task from the hub; the error in one line, or ""."""
    try:
        task.load_data()
    except Exception as error:  # each data set has its own ways to fail
        reason = " ".join(str(error).split())[:160]
        return f"{task.metadata.dataset['path']} does not load ({type(error).__name__}: {reason})"
    return ""


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No warnings, and none of the progress bars that some tasks show all the same."""
    shown = not datasets.are_progress_bars_disabled()
    datasets.disable_progress_bars()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        if shown:
            datasets.enable_progress_bars()


def _line(task: AbsTask, result: TaskResult) -> str:
    rows = [row for split in result.scores.values() for row in split]
    scores = [row["main_score"] for row in rows if row["hf_subset"] in task.hf_subsets]
    parts = f", mean of {len(scores)}" if len(scores) > 1 else ""
    mean = 100 * sum(scores) / len(scores)
    return f"{task.metadata.name}: {task.metadata.main_score} {mean:.2f}{parts}"
