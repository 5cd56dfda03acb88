"""An encoder as mteb calls it: each distinct text of a task is encoded once."""

from typing import Any

import numpy as np
from mteb.models import ModelMeta
from mteb.models.abs_encoder import AbsEncoder
from mteb.models.model_meta import ScoringFunction

from cselab.evaluation.sts import finite_rows
from cselab.models.encode import Encoder

KEPT_TEXTS = 200_000
"""Vectors of a task that are kept; 0.6 GB for 768 dimensions."""


class MtebEncoder(AbsEncoder):
    """mteb's view of an encoder, `encode(list of n strings) -> (n, d)`; similarity is the cosine.

    mteb asks for one column of a task after the other, and for both sides of every pair of
    languages. Here a text that a task has shown is looked up, and the new ones go to the encoder
    in one call, which sorts them by length. mteb's instructions of a task are not put before its
    texts: the papers' encoders have none.

    Args:
        encoder: The encoder.
        name: Name of the model in the result files, "owner/name" as on the hub.
        revision: Names its folder of results.

    Examples:
        >>> from cselab import load
        >>> from cselab.evaluation.mteb_encoder import MtebEncoder
        >>> encoder = MtebEncoder(load("tiny-bert"), "cselab/tiny", revision="1")
        >>> encoder.mteb_model_meta.name
        'cselab/tiny'
    """

    def __init__(self, encoder: Encoder, name: str, *, revision: str):
        self.encoder = encoder
        self.mteb_model_meta = ModelMeta.create_empty(
            overwrites={
                "name": name,
                "revision": revision,
                "similarity_fn_name": ScoringFunction.COSINE,
                "modalities": ["text"],
            }
        )
        self._task = ""
        self._vectors: dict[str, np.ndarray] = {}

    def encode(self, inputs: Any, *, task_metadata: Any, **_: Any) -> np.ndarray:
        """Embeddings of the n texts of mteb's loader, (n, d) float32, kept until the next task.

        Raises:
            DataError: For vectors that are not finite or not (n, d).
        """
        texts = list(inputs.dataset["text"])
        distinct = dict.fromkeys(texts)
        new = [text for text in distinct if text not in self._vectors]
        if task_metadata.name != self._task or len(self._vectors) + len(new) > KEPT_TEXTS:
            self._task, self._vectors, new = task_metadata.name, {}, list(distinct)
        if new:
            rows: np.ndarray = finite_rows(self.encoder.encode(new), len(new)).astype(np.float32)
            self._vectors.update(zip(new, rows, strict=True))
        return np.stack([self._vectors[text] for text in texts])
