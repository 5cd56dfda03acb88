"""A teacher's vectors beside the sentences they are of, computed once and memory-mapped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa

from cselab.data.corpus import Corpus, write_arrow
from cselab.errors import DataError


def with_targets(
    rows: datasets.Dataset, corpus: Corpus, encode: Callable[[list[str]], Any], path: str | Path
) -> datasets.Dataset:
    """`rows`, the tokens of `corpus`, with a column `target`: the (d,) float32 vector that `encode` gives for each sentence.

    path: the Arrow file of the vectors, written if it is not there; 4 d bytes a sentence. In chunks, so that memory does
    not depend on the number of sentences.

    Raises DataError where rows and sentences, or a file that is there and the rows, differ in number.
    """
    if len(rows) != len(corpus):
        raise DataError(f"{len(rows)} rows are not the tokens of {len(corpus)} sentences; tokenize the same corpus")
    path = Path(path)
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        schema = pa.schema([("target", pa.list_(pa.float32()))])
        write_arrow(path, schema, corpus, lambda chunk: [list(np.asarray(encode(chunk), dtype=np.float32))])
    targets = datasets.Dataset.from_file(str(path))
    if len(targets) != len(rows):
        raise DataError(f"{path} has {len(targets)} vectors for {len(rows)} sentences; remove it to compute them anew")
    return datasets.concatenate_datasets([rows, targets], axis=1)
