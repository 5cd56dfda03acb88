"""Run mteb on an encoder, with tasks from a local folder instead of the hub.

Result files have mteb's official form. Only this module imports mteb, which takes seconds.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTask
from mteb.cache import ResultCache
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.results import ModelResult

from cselab.data.sts import STS7, load_sts


class MtebEncoder(AbsEncoder):
    """mteb encoder of an object with `encode(list of strings) -> (n, d)`; similarity is the cosine.

    name: of the model in the result files, "owner/name" as on the hub.
    """

    def __init__(self, encoder: Any, name: str, *, revision: str = "local"):
        self.encoder = encoder
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={"name": name, "revision": revision}
        )

    def encode(
        self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **kwargs
    ) -> np.ndarray:
        """Embeddings of all sentences of mteb's loader at once; the encoder makes its batches."""
        vectors = self.encoder.encode([text for batch in inputs for text in batch["text"]])
        return np.asarray(vectors, dtype=np.float32)


def feed(task: AbsTask, splits: dict[str, Dataset]) -> AbsTask:
    """Give `task` these rows instead of the hub's."""
    task.dataset = DatasetDict(splits)
    task.data_loaded = True
    return task


def sts_tasks(tasks: Sequence[str] = STS7, *, folder: str | Path | None = None) -> list[AbsTask]:
    """mteb's STS tasks with the pairs of `load_sts`.

    mteb's SICK-R has all 9,927 pairs; the papers use 4,927.

    Raises DataError as `load_sts`.
    """
    fed = []
    for name in tasks:
        data = load_sts(name, "all" if name == "SICK-R" else "test", folder=folder)
        columns = {
            "sentence1": data.sentences1,
            "sentence2": data.sentences2,
            "score": data.scores.tolist(),
        }
        fed.append(feed(mteb.get_task(name), {"test": Dataset.from_dict(columns)}))
    return fed


def run_mteb(encoder: Any, name: str, tasks: Sequence[AbsTask], results: str | Path) -> ModelResult:
    """Evaluate an encoder and write mteb's result files below `results`; overwrites older ones.

    `.get_scores()` of the result are mteb's main scores, in 0..1.
    """
    return mteb.evaluate(
        MtebEncoder(encoder, name),
        list(tasks),
        cache=ResultCache(results),
        overwrite_strategy="always",
        co2_tracker=False,
        show_progress_bar=False,
    )
