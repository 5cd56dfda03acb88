"""Settings of data: its folders, the training text and the tests."""

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from cselab.config import Config


class DataConfig(Config):
    """Training text, tests and triplets of a run.

    Keys contain their content, not their location.
    """

    data_dir: Path | None = None
    """A folder with the layout of data/README.md; default: the variable CSELAB_DATA."""
    hub: bool = False
    """Fetch what the data folder lacks from the Hugging Face hub, or offline from its cache."""
    corpus: tuple[str, ...] = ()
    """Training text: names in data_dir/corpus, or paths of .txt files; "nli" alone: premises and
    hypotheses without their labels; empty: see `load_corpus`."""
    sentences: int = Field(1_000_000, ge=2)
    """At most so many, a random sample; SimCSE: one million Wikipedia sentences."""
    tasks: tuple[str, ...] = ()
    """Tests: names, or paths of .tsv files of pairs; empty: the seven STS tasks if the data folder
    or the hub has them, else the synthetic STS."""
    dev_task: str = ""
    """Task or .tsv file whose dev split selects checkpoints; empty: STSBenchmark or the synthetic
    STS, as for `tasks`."""
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
        """Split names that are separated by commas, as on the command line."""
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value
