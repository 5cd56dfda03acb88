"""mteb runs on any encoder of ours, its tasks fed from a local folder, no hub asked; result files in its official form.

mteb is imported here and nowhere else in the library: it takes seconds.
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
    """Anything with `encode(list of strings) -> (n, d)` as an mteb encoder; similarity is the cosine.

    name: how its results are filed; a slash parts owner and name, as on the hub.
    """

    def __init__(self, encoder: Any, name: str, *, revision: str = "local"):
        self.encoder = encoder
        self.mteb_model_meta = ModelMeta.create_empty(overwrites={"name": name, "revision": revision})

    def encode(self, inputs, *, task_metadata, hf_split, hf_subset, prompt_type=None, **kwargs) -> np.ndarray:
        """inputs: mteb's loader of batches; batches by length are the encoder's own, so all sentences go in at once."""
        vectors = self.encoder.encode([text for batch in inputs for text in batch["text"]])
        return np.asarray(vectors, dtype=np.float32)


def feed(task: AbsTask, splits: dict[str, Dataset]) -> AbsTask:
    """`task` with these rows in the place of the hub's."""
    task.dataset = DatasetDict(splits)
    task.data_loaded = True
    return task


def sts_tasks(tasks: Sequence[str] = STS7, *, folder: str | Path | None = None) -> list[AbsTask]:
    """mteb's tasks of these names, with the pairs of `load_sts`. Its SICK-R has all 9,927 pairs, where the papers use 4,927.

    Raises DataError as `load_sts`.
    """
    fed = []
    for name in tasks:
        data = load_sts(name, "all" if name == "SICK-R" else "test", folder=folder)
        columns = {"sentence1": data.sentences1, "sentence2": data.sentences2, "score": data.scores.tolist()}
        fed.append(feed(mteb.get_task(name), {"test": Dataset.from_dict(columns)}))
    return fed


def run_mteb(encoder: Any, name: str, tasks: Sequence[AbsTask], results: str | Path) -> ModelResult:
    """Evaluates and writes mteb's result files below `results`; whatever is there already is computed anew.

    `.get_scores()` of the returned object are mteb's main scores, in 0..1.
    """
    return mteb.evaluate(
        MtebEncoder(encoder, name), list(tasks), cache=ResultCache(results), overwrite_strategy="always",
        co2_tracker=False, show_progress_bar=False,
    )  # fmt: skip
