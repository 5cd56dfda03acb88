"""Settings of data: its folders, the training text, the tests and the round trips."""

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from cselab.config import Config, shared
from cselab.data.sources import parse_names
from cselab.paths import absolute, located

DataName = Annotated[str, AfterValidator(located)]
"""A name of data, or the path of a file."""
Mode = Literal["append", "replace", "pair", "none", "twice"]


class DataConfig(Config):
    """Training text, tests and triplets of a run.

    Keys contain their content, not their location.
    """

    data_dir: Annotated[Path, AfterValidator(absolute)] | None = None
    """A folder with the layout of data/README.md; default: the variable CSELAB_DATA."""
    hub: bool = False
    """Fetch what the data folder lacks from the Hugging Face hub, or offline from its cache."""
    corpus: tuple[DataName, ...] = ()
    """Training text: names in data_dir/corpus, or paths of text files; with hub, "wiki1m" and
    "sickr"; "nli" alone: premises and hypotheses without their labels; empty: see `load_corpus`."""
    sentences: int | None = Field(None, ge=2)
    """At most so many, a random sample; None: all (of synthetic text, 100,000)."""
    tasks: tuple[DataName, ...] = ()
    """Tests: names, or paths of .tsv or .csv files of pairs; empty: the seven STS tasks if the data
    folder or the hub has them, else the synthetic STS."""
    sts_text: Literal["raw", "senteval"] = "raw"
    """Text of STS12 to STS16. "senteval": tokenised and lower-cased, as the papers score it."""
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
        return parse_names(value)


class RoundTrips(Config):
    """Round trips through one pivot language, and how they extend the training text."""

    pivot: str = "fr"
    """TNCSE's table of hyperparameters: en-fr-en for BERT I, en-ru-en for BERT II."""
    mode: Mode = shared("append")
    """How round trips are used; the papers' wording is ambiguous. "append": they are
    further sentences. "replace": they replace the sentences. "pair": a sentence's round trip is its
    second view. "none" and "twice" are controls: the text alone, and the text twice, with as many
    rows as "append"."""
    translator: Annotated[str, AfterValidator(partial(located, folders=True))] = shared("lexical")
    """"bergamot" (pivot "pt"), "lexical", "opus-mt", "multilingual", a folder, or a .tsv file of
    prepared round trips; the papers used Google Translate."""
    beams: int = shared(1, ge=1)
    """Width of the translator's beam search; 1 is greedy."""
    sampling_temperature: float = shared(0.0, ge=0)
    """Above 0, the translator samples its words at this temperature."""
