"""Round-trip translators: models of the hub, models trained here, and prepared round trips."""

import copy
import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeAlias

import torch
from safetensors import SafetensorError

from cselab.data.hub import hub_model
from cselab.data.sources import TABLES, file_suffix, parse_name, read_table
from cselab.data.translation.bergamot import Bergamot
from cselab.data.translation.pivot import LexicalPivot
from cselab.errors import DataError, SettingsError, suggest
from cselab.fingerprints import folder_hash
from cselab.paths import TRANSLATORS, check_readable, expanded

Translator = Callable[[list[str]], list[str]]
"""A function from sentences to as many translations, in their order."""

MULTILINGUAL = "facebook/m2m100_418M"
GIVE_FOLDER = "give a folder that `cselab train-translator` made"
TOKENS = {"zh": "cmn_Hans"}
"""Target tokens of opus-mt models that write several variants of a language."""
LONGEST = 128
"""Tokens of a source sentence; longer ones are truncated."""


class Seq2Seq:
    """A transformers sequence-to-sequence model in one direction: `Seq2Seq(folder)(sentences)`.

    Args:
        model: The model's folder (see `cselab.data.hub.hub_model` for a model of the hub). The
            weights are loaded at the first call, in half precision on a GPU.
        source: Language, for a model that has several: M2M100 and its relatives.
        target: Language, for these and for a Marian model with tokens such as `>>fr<<`.
        beams: Width of the beam search; 1 is greedy.
        temperature: Above 0, words are sampled instead. The random numbers depend on `seed` and on
            the sentences of the call, so equal calls give equal results.

    Raises:
        DataError: For a model that does not load or does not have the target language.
        SettingsError: For bad `beams` or `temperature`.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        source: str | None = None,
        target: str | None = None,
        beams: int = 1,
        temperature: float = 0.0,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ):
        from transformers import AutoConfig, AutoTokenizer

        if beams < 1 or temperature < 0 or (temperature and beams > 1):
            raise SettingsError(
                f"beams={beams}, temperature={temperature}: expected 1 or more beams, or a "
                "temperature above 0"
            )
        check_readable(model)
        try:
            kind = AutoConfig.from_pretrained(model, trust_remote_code=False)
            # Marian's tokenizer recommends sacremoses
            with warnings.catch_warnings(action="ignore", category=UserWarning):
                self.tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise DataError(
                f"no translator at {str(model)!r}: {_first_line(error)}; {GIVE_FOLDER}"
            ) from None
        if not kind.is_encoder_decoder:
            raise DataError(
                f"{model} is a {kind.model_type!r} model, which does not translate; {GIVE_FOLDER}"
            )
        self.name, self.folder, self.seed = str(model), Path(model), seed
        self.device = torch.device(device)
        self.dtype = _precision(self.device)
        self._shared: list = []  # the loaded weights, shared by all directions
        self.search: dict[str, Any] = {"num_beams": beams, "do_sample": temperature > 0}
        if temperature:
            self.search |= {"temperature": temperature, "top_k": 0}
        self._set_languages(source, target)

    @property
    def model(self):
        """The model, loaded at the first use."""
        if not self._shared:
            from transformers import AutoModelForSeq2SeqLM

            try:
                with torch.random.fork_rng(devices=[]):
                    model = AutoModelForSeq2SeqLM.from_pretrained(self.folder, dtype=self.dtype)
            except (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError) as error:
                raise DataError(
                    f"translator {self.name!r} does not load: {_first_line(error)}; get it again"
                ) from None
            self._shared.append(model.to(self.device).eval())
        return self._shared[0]

    def with_languages(self, source: str, target: str) -> "Seq2Seq":
        """Another direction of the same weights, which are not loaded again."""
        other = copy.copy(self)
        other.search = dict(self.search)
        other._set_languages(source, target)
        return other

    def _set_languages(self, source: str | None, target: str | None) -> None:
        self.source, self.prefix = source, ""
        vocabulary = self.tokenizer.get_vocab()
        reason = ""
        if hasattr(self.tokenizer, "get_lang_id"):
            for language in (source, target):
                if language not in self.tokenizer.lang_code_to_id:
                    raise DataError(f"the translator at {self.name!r} does not know {language!r}")
            self.search["forced_bos_token_id"] = self.tokenizer.get_lang_id(target)
        elif target and f">>{target}<<" in vocabulary:
            self.prefix = f">>{target}<< "
        elif target and any(token.startswith(">>") for token in vocabulary):
            reason = f"no token >>{target}<<, so it does not know {target!r}"
        elif source:
            reason = "no tokens of languages, so it knows one direction alone"
        if reason:
            raise DataError(
                f"the translator at {self.name!r} has {reason}; {GIVE_FOLDER}, or use opus-mt with "
                "hub=True"
            )

    def __call__(self, sentences: list[str]) -> list[str]:
        if "forced_bos_token_id" in self.search:
            self.tokenizer.src_lang = self.source
        texts = [self.prefix + sentence for sentence in sentences]
        options = dict(truncation=True, max_length=LONGEST, return_token_type_ids=False)
        batch = self.tokenizer(texts, padding=True, return_tensors="pt", **options).to(self.device)
        longest = 2 * batch["input_ids"].shape[1] + 10
        text = hashlib.sha256("\n".join([str(self.seed), *sentences]).encode()).digest()
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(text[:7], "big"))
            search = self.search | {"max_length": None, "max_new_tokens": longest}
            out = self.model.generate(**batch, **search)
        return self.tokenizer.batch_decode(
            out, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of the model's files, the search and the precision; loads nothing."""
        how = f"{self.source} {self.prefix} {sorted(self.search.items())} {self.seed} {self.dtype}"
        text = f"{how} {folder_hash(self.folder)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _precision(device: torch.device) -> torch.dtype:
    """Half precision on a GPU (half the memory, twice the speed), float32 on a CPU."""
    if device.type != "cuda":
        return torch.float32
    if torch.cuda.is_bf16_supported(including_emulation=False):
        return torch.bfloat16
    return torch.float16


class RoundTripTranslator:
    """Round trips by two translators, to the pivot and back to English."""

    def __init__(self, to_pivot: Seq2Seq, to_english: Seq2Seq):
        self.to_pivot, self.to_english = to_pivot, to_english
        self.batch_size = 512 if to_pivot.device.type == "cuda" else 64

    def __call__(self, sentences: list[str]) -> list[str]:
        return self.to_english(self.to_pivot(sentences))

    @property
    def fingerprint(self) -> str:
        """The fingerprints of both translators."""
        return self.to_pivot.fingerprint + self.to_english.fingerprint


class PreparedTrips:
    """Prepared round trips from a .tsv or .csv file with the columns sentence and round_trip.

    Raises:
        DataError: For a malformed file, and when called with a sentence that is not in it.
    """

    def __init__(self, path: str | Path):
        self.path = expanded(path)
        rows = read_table(self.path, ("sentence", "round_trip"))
        self.trips = {row["sentence"].strip(): row["round_trip"] for _, row in rows}

    def check(self, sentences: list[str]) -> None:
        """Raise the error of a call."""
        missing = [sentence for sentence in sentences if sentence not in self.trips]
        if missing:
            raise DataError(
                f"{self.path} has no round trip of {missing[0]!r:.80} and {len(missing) - 1} more; "
                "prepare it from the same text"
            )

    def __call__(self, sentences: list[str]) -> list[str]:
        self.check(sentences)
        return [self.trips[sentence] for sentence in sentences]

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits of the round trips."""
        return hashlib.sha256(repr(sorted(self.trips.items())).encode()).hexdigest()[:16]


RoundTripper: TypeAlias = LexicalPivot | Bergamot | RoundTripTranslator | PreparedTrips
"""What `open_translator` opens; each has a `fingerprint`."""


def open_translator(
    name: str | Path, pivot: str, *, hub: bool = False, **options: Any
) -> RoundTripper:
    """Open a translator from English to `pivot` and back.

    Args:
        name: "bergamot": models for the pivot "pt", see `Bergamot`. "lexical": an artificial
            pivot, `LexicalPivot`. "opus-mt": two Marian models;
            "multilingual": M2M100 in both directions; both from the hub. A folder that
            `cselab train-translator` made. A .tsv or .csv file of prepared round trips. In a
            path, `{pivot}` stands for the pivot.
        pivot: The language, such as "fr".
        hub: Whether models may be fetched from the hub, or offline from its cache.
        **options: `beams`, `temperature`, `seed` and `device` of `Seq2Seq`.

    Raises:
        SettingsError: For an unknown name, and for a model of the hub without `hub`.
        DataError: If the hub does not have the model, and as the translators.
    """
    name = parse_name(name)
    path = expanded(name.replace("{pivot}", pivot))
    if name == "lexical":
        return LexicalPivot(pivot)
    if name == "bergamot":
        return Bergamot(pivot)
    if name in TRANSLATORS and not hub:
        raise SettingsError(
            f"the translator {name!r} is on the hub; set hub=True, or use 'lexical' offline"
        )
    if name == "opus-mt":
        models = [hub_model(f"Helsinki-NLP/opus-mt-{x}") for x in (f"en-{pivot}", f"{pivot}-en")]
        to_pivot = Seq2Seq(models[0], target=TOKENS.get(pivot), **options)
        return RoundTripTranslator(to_pivot, Seq2Seq(models[1], **options))
    if file_suffix(name) in TABLES or os.path.isfile(path):
        return PreparedTrips(path)
    if name != "multilingual" and not os.path.isdir(path):
        raise SettingsError(
            f"unknown translator {name!r}; {suggest(name, TRANSLATORS)}, or a folder or .tsv file"
        )
    model = hub_model(MULTILINGUAL) if name == "multilingual" else path
    to_pivot = Seq2Seq(model, source="en", target=pivot, **options)
    return RoundTripTranslator(to_pivot, to_pivot.with_languages(pivot, "en"))
