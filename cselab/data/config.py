"""Settings of data: its folders, the training text and the tests."""

import os
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, Field, field_validator

from cselab.config import Config
from cselab.data.sources import names_of
from cselab.paths import absolute, located

DataName = Annotated[str, AfterValidator(located)]
"""A name of data, or the path of a file."""


class DataConfig(Config):
    """Training text, tests and triplets of a run.

    Keys contain their content, not their location.
    """

    data_dir: Annotated[Path, AfterValidator(absolute)] | None = None
    """A folder with the layout of data/README.md; default: the variable CSELAB_DATA."""
    hub: bool = False
    """Fetch what the data folder lacks from the Hugging Face hub, or offline from its cache."""
    corpus: tuple[DataName, ...] = ()
    """Training text: names in data_dir/corpus, or paths of text files; "nli" alone: premises and
    hypotheses without their labels; empty: see `load_corpus`."""
    sentences: int = Field(1_000_000, ge=2)
    """At most so many, a random sample; SimCSE: one million Wikipedia sentences."""
    tasks: tuple[DataName, ...] = ()
    """Tests: names, or paths of .tsv or .csv files of pairs; empty: the seven STS tasks if the data
    folder or the hub has them, else the synthetic STS."""
    dev_task: DataName = ""
    """Task or file of pairs whose dev split selects checkpoints; empty: STSBenchmark or the
    synthetic STS, as for `tasks`."""
    dev_pairs: int | None = Field(None, ge=10)
    """At most so many dev pairs, evenly spread; None: all."""
    synthetic_pairs: int | None = Field(None, ge=10)
    """At most so many synthetic test pairs; other test sets are never subsampled."""
    nli: tuple[str, ...] = ()
    """Files of NLI triplets in data_dir/nli; empty: the default of the source."""
    triplets: int = Field(20_000, ge=2)
    """At most so many triplets."""

    @field_validator("corpus", "tasks", "nli", mode="before")
    @classmethod
    def _split_names(cls, value: Any) -> Any:
        """Split names that are separated by commas, as on the command line; a file may have one."""
        if isinstance(value, str) and not os.path.isfile(os.path.expanduser(value)):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return names_of(value)
