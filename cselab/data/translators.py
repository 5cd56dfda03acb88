"""Translators there and back: models of the hub or trained here, and round trips that somebody prepared."""

import copy
import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError

from cselab.data.hub import hub_model
from cselab.data.pivot import LexicalPivot
from cselab.data.sources import read_lines
from cselab.errors import DataError, SettingsError, suggest
from cselab.hashing import folder_hash

Translator = Callable[[list[str]], list[str]]
"""Sentences in, as many lines out, in their order."""

NAMES = ("lexical", "opus-mt", "multilingual")
MULTILINGUAL = "facebook/m2m100_418M"
TOKENS = {"zh": "cmn_Hans"}
"""Target tokens of opus-mt models that write more than one form of a language."""
LONGEST = 128
"""Tokens of a source sentence; what is longer is cut."""


class Seq2Seq:
    """One direction of a sequence-to-sequence model of transformers: `Seq2Seq(folder)(sentences)`.

    model: its folder (`cselab.data.hub.hub_model` gives that of a hub name). The weights are loaded at the first call, in half
        precision on a GPU.
    source, target: languages, for a model that knows several: M2M100 and its kin, or a Marian model with `>>fr<<` tokens.
    beams: width of the beam search, 1 is greedy. temperature: above 0 words are drawn instead, one hypothesis each; the
        draws depend on `seed` and on the sentences of a call, so a call gives the same whenever it is made.

    Raises DataError for a model that does not load or does not know the target, SettingsError for a bad search option.
    """

    def __init__(
        self, model: str | Path, *, source: str | None = None, target: str | None = None, beams: int = 1,
        temperature: float = 0.0, seed: int = 0, device: torch.device | str = "cpu",
    ):  # fmt: skip
        from transformers import AutoConfig, AutoTokenizer

        if beams < 1 or temperature < 0 or (temperature and beams > 1):
            raise SettingsError(
                f"beams={beams}, temperature={temperature}: expected a beam of at least 1 with temperature 0, or one beam "
                "and a temperature above 0"
            )
        try:
            kind = AutoConfig.from_pretrained(model, trust_remote_code=False)
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # of Marian: sacremoses is recommended
                self.tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise DataError(
                f"no translator at {str(model)!r}: {str(error).strip().splitlines()[0]}; give a folder that "
                "`cselab train-translator` made, or the name of one on the hub"
            ) from None
        if not kind.is_encoder_decoder:
            raise DataError(
                f"{model} is a {kind.model_type!r} model, which does not translate; give a folder that "
                "`cselab train-translator` made"
            )
        self.folder = Path(model)
        self.device = torch.device(device)
        self.dtype = _precision(self.device)
        self.seed = seed
        self._shared: list = []  # the weights once they are loaded, the same for all directions
        self.search = {"num_beams": beams, "do_sample": temperature > 0}
        if temperature:
            self.search |= {"temperature": temperature, "top_k": 0}
        self.name = str(model)
        self._speak(source, target)

    @property
    def model(self):
        """The weights, loaded when they are first asked for. Raises DataError where they do not load."""
        if not self._shared:
            from transformers import AutoModelForSeq2SeqLM

            try:
                with torch.random.fork_rng(devices=[]):
                    found = AutoModelForSeq2SeqLM.from_pretrained(self.folder, dtype=self.dtype)
            except (OSError, ValueError, RuntimeError, SafetensorError, UnpicklingError) as error:
                raise DataError(
                    f"the translator at {self.name!r} does not load: {str(error).strip().splitlines()[0]}; get it again"
                ) from None
            self._shared.append(found.to(self.device).eval())
        return self._shared[0]

    def towards(self, source: str, target: str) -> "Seq2Seq":
        """Another direction of the same weights, which are not loaded again. Raises DataError as the class does."""
        other = copy.copy(self)
        other.search = dict(self.search)
        other._speak(source, target)
        return other

    def _speak(self, source: str | None, target: str | None) -> None:
        self.source, self.prefix = source, ""
        if hasattr(self.tokenizer, "get_lang_id"):
            self.search["forced_bos_token_id"] = self.tokenizer.get_lang_id(target)
        elif target and f">>{target}<<" in self.tokenizer.get_vocab():
            self.prefix = f">>{target}<< "
        elif target and any(token.startswith(">>") for token in self.tokenizer.get_vocab()):
            raise DataError(
                f"the translator at {self.name!r} has no token >>{target}<<, so it does not know {target!r}"
            )

    def __call__(self, sentences: list[str]) -> list[str]:
        if "forced_bos_token_id" in self.search:
            self.tokenizer.src_lang = self.source
        batch = self.tokenizer(
            [self.prefix + sentence for sentence in sentences], padding=True, truncation=True, max_length=LONGEST,
            return_tensors="pt", return_token_type_ids=False,
        ).to(self.device)  # fmt: skip
        longest = 2 * batch["input_ids"].shape[1] + 10
        text = hashlib.sha256("\n".join([str(self.seed), *sentences]).encode()).digest()
        with torch.inference_mode(), torch.random.fork_rng():
            torch.manual_seed(int.from_bytes(text[:7], "big"))
            out = self.model.generate(**batch, **self.search, max_length=None, max_new_tokens=longest)
        return self.tokenizer.batch_decode(out, skip_special_tokens=True, clean_up_tokenization_spaces=False)

    @property
    def fingerprint(self) -> str:
        """Of the model's files, the search and the precision; nothing is loaded for it."""
        how = f"{self.source} {self.prefix} {sorted(self.search.items())} {self.seed} {self.dtype}"
        text = f"{how} {folder_hash(self.folder)}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def _precision(device: torch.device) -> torch.dtype:
    """Half the memory and twice the speed on a GPU; a processor translates in float32."""
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


class ThereAndBack:
    """A round trip from two directions. A sentence whose translation is empty comes back empty."""

    def __init__(self, there: Seq2Seq, back: Seq2Seq):
        self.there, self.back = there, back
        self.batch_size = 512 if there.device.type == "cuda" else 64

    def __call__(self, sentences: list[str]) -> list[str]:
        return self.back(self.there(sentences))

    @property
    def fingerprint(self) -> str:
        return self.there.fingerprint + self.back.fingerprint


class PreparedTrips:
    """Round trips from a file: .tsv or .tsv.gz, first line `sentence<TAB>round_trip`, one a line.

    Raises DataError for a malformed file, and where asked for a sentence that it does not have.
    """

    def __init__(self, path: str | Path):
        self.path, self.trips = Path(path).expanduser(), {}
        for number, line in enumerate(read_lines(self.path), 1):
            cells = line.split("\t")
            if len(cells) != 2 or (number == 1 and cells != ["sentence", "round_trip"]):
                raise DataError(
                    f"{self.path}, line {number}: expected sentence, a tab and round_trip, got {line[:60]!r}"
                )
            if number > 1:
                self.trips[cells[0].strip()] = cells[1]

    def __call__(self, sentences: list[str]) -> list[str]:
        missing = [sentence for sentence in sentences if sentence not in self.trips]
        if missing:
            raise DataError(
                f"{self.path} has no round trip of {missing[0]!r:.80} (nor of {len(missing) - 1} more of {len(sentences)}); "
                "prepare it from the same text"
            )
        return [self.trips[sentence] for sentence in sentences]

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(repr(sorted(self.trips.items())).encode()).hexdigest()[:16]


def open_translator(
    name: str, pivot: str, *, hub: bool = False, beams: int = 1, temperature: float = 0.0, seed: int = 0,
    device: torch.device | str = "cpu",
) -> LexicalPivot | ThereAndBack | PreparedTrips:  # fmt: skip
    """The translator English to `pivot` and back that a setting names.

    name: "lexical": the offline stand-in. "opus-mt": the two Marian models of the pair. "multilingual": M2M100 both ways; both
        from the hub. A folder that `cselab train-translator` made. A .tsv or .tsv.gz file of prepared trips; `{pivot}`
        in a path stands for the pivot.

    Raises SettingsError for an unknown name, or a hub that may not be asked; DataError for what the hub does not have; what
    the translators raise.
    """
    search = {"beams": beams, "temperature": temperature, "seed": seed, "device": device}
    path = Path(name.replace("{pivot}", pivot)).expanduser()
    if name == "lexical":
        return LexicalPivot(pivot)
    if name in NAMES and not hub:
        raise SettingsError(f"the translator {name!r} is fetched from the hub; set hub=True, or use 'lexical' offline")
    if name == "opus-mt":
        there, back = (hub_model(f"Helsinki-NLP/opus-mt-{pair}") for pair in (f"en-{pivot}", f"{pivot}-en"))
        return ThereAndBack(Seq2Seq(there, target=TOKENS.get(pivot), **search), Seq2Seq(back, **search))
    if name.endswith((".tsv", ".tsv.gz")):
        return PreparedTrips(path)
    if name != "multilingual" and not path.is_dir():
        raise SettingsError(
            f"unknown translator {name!r}; {suggest(name, NAMES)}, or a folder, or a .tsv file of prepared round trips"
        )
    model = hub_model(MULTILINGUAL) if name == "multilingual" else path
    there = Seq2Seq(model, source="en", target=pivot, **search)
    return ThereAndBack(there, there.towards(pivot, "en"))
