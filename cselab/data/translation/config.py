"""Settings of round trips."""

from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator

from cselab.config import Config, shared
from cselab.paths import located

Mode = Literal["append", "replace", "pair", "none", "twice"]


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
    """"lexical", "opus-mt", "multilingual", a folder, or a .tsv file of prepared round trips; the
    papers used Google Translate."""
    beams: int = shared(1, ge=1)
    """Width of the translator's beam search; 1 is greedy."""
    sampling_temperature: float = shared(0.0, ge=0)
    """Above 0, the translator samples its words at this temperature."""
