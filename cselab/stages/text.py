"""Text: what a run trains on, its round trips, and their tokens."""

from itertools import islice
from pathlib import Path
from typing import Literal

from cselab.data.corpus import Corpus, load_corpus, tokenize_corpus
from cselab.data.nli import DEFAULT_FILES, load_nli_triplets, load_simcse_triplets
from cselab.data.pivot import LexicalPivot
from cselab.data.round_trip import SAMPLE, RoundTrip
from cselab.data.sources import data_folder, read_lines
from cselab.data.sts import STS7, StsData, load_sts
from cselab.data.translators import PreparedTrips, ThereAndBack, open_translator
from cselab.data.world.sets import Triplet, triplets
from cselab.lab import Lab


def real_data(lab: Lab) -> bool:
    """Whether there is a data folder, or the profile may ask the hub."""
    return data_folder(lab.settings.data_dir) is not None or lab.settings.hub


def test_tasks(lab: Lab) -> tuple[str, ...]:
    """The tasks that scores are reported on."""
    return lab.settings.tasks or (STS7 if real_data(lab) else ("World",))


def dev_task(lab: Lab) -> str:
    """The task whose dev split picks checkpoints; never a test."""
    return lab.settings.dev_task or ("STSBenchmark" if real_data(lab) else "World")


def dev_pairs(lab: Lab) -> StsData:
    """The pairs that checkpoints are picked on: the dev split, or `settings.dev_pairs` of it."""
    s = lab.settings
    pairs = load_sts(dev_task(lab), "dev", folder=s.data_dir, hub=s.hub)
    return pairs.thinned(s.dev_pairs) if s.dev_pairs else pairs


def world_pairs(lab: Lab) -> StsData:
    """The world's test pairs, or `settings.world_pairs` of them."""
    pairs = load_sts("World", "test")
    return pairs.thinned(lab.settings.world_pairs) if lab.settings.world_pairs else pairs


def test_data(lab: Lab) -> list[StsData]:
    """The pairs of `test_tasks`."""
    s, tasks = lab.settings, test_tasks(lab)
    return [world_pairs(lab) if task == "World" else load_sts(task, folder=s.data_dir, hub=s.hub) for task in tasks]


def sentences(lab: Lab) -> Corpus:
    """The unlabelled training text. The sample does not depend on the seed, so that seeds are paired."""
    s = lab.settings
    return load_corpus(s.corpus or None, folder=s.data_dir, hub=s.hub, limit=s.sentences)


def nli_triplets(lab: Lab) -> list[Triplet]:
    """What supervised methods learn from, not drawn by the seed: the files named `nli`; with `hub`, SimCSE's triplets; the
    folder's NLI; or the generated text's own triplets."""
    s = lab.settings
    if s.hub and not s.nli:
        return load_simcse_triplets()[: s.triplets]
    if s.nli or data_folder(s.data_dir):
        return load_nli_triplets(s.nli or DEFAULT_FILES, folder=s.data_dir)[: s.triplets]
    return list(triplets(s.triplets))


def view_pivot(lab: Lab) -> str | None:
    """The pivot that single towers train with: tower I's where round trips are the second view (the world, where dropout's alone
    teach nothing), none where the two views are dropout's, as in the papers."""
    return lab.settings.pivot_i if lab.settings.rtt_mode == "pair" else None


def translator_of(lab: Lab, pivot: str) -> LexicalPivot | ThereAndBack | PreparedTrips:
    """The lab's translator to `pivot` and back; a rehearsal looks up all of its prepared trips."""
    s = lab.settings
    search = {"beams": s.beams, "temperature": s.translation_temperature}
    translator = open_translator(s.translator, pivot, hub=s.hub, device=lab.device, **search)
    if lab.rehearsal is not None and isinstance(translator, PreparedTrips):
        translator(list(sentences(lab)))
    return translator


def round_trip_file(lab: Lab, pivot: str) -> Path:
    """One round trip a line, in the order of `sentences(lab)`."""
    text, translator = sentences(lab), translator_of(lab, pivot)
    cache = lab.cache_dir / "round-trips" / translator.fingerprint

    def compute(folder: Path) -> None:
        with (folder / "round-trips.txt").open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in RoundTrip(pivot, translator, cache=cache)(text))

    inputs = {"translator": translator.fingerprint, "text": text.fingerprint}
    return lab.stage("round-trip", inputs, compute) / "round-trips.txt"


def round_trip_seconds(lab: Lab, pivot: str) -> float:
    """Estimated seconds of the whole `round_trip_file`, from those of its first hundred sentences."""
    text = sentences(lab)
    return RoundTrip(pivot, translator_of(lab, pivot)).seconds_for(list(islice(text, SAMPLE)), len(text))


def round_trips(lab: Lab, pivot: str) -> list[str]:
    """The lab's sentences, each after its round trip through `pivot`."""
    return list(read_lines(round_trip_file(lab, pivot)))


def training_rows(lab: Lab, tokenizer, pivot: str | None, max_length: int, widen=lambda rows, corpus: rows):
    """Tokenised training rows: the text alone (pivot None), or with its round trip as `settings.rtt_mode` says.

    widen: gives the rows of sentences, the text's and those of round trips that join it, further columns.
    """

    def tokenised(corpus: Corpus):
        return tokenize_corpus(corpus, tokenizer, max_length=max_length, cache_dir=lab.cache_dir / "tokenised")

    text, mode = sentences(lab), lab.settings.rtt_mode
    rows = widen(tokenised(text), text)
    if pivot is None or mode == "none":
        return rows
    if mode == "twice":
        return combine(rows, rows, "append")
    trips = load_corpus([str(round_trip_file(lab, pivot))])
    return combine(rows, tokenised(trips) if mode == "pair" else widen(tokenised(trips), trips), mode)


def combine(rows, trips, mode: Literal["append", "replace", "pair"]):
    """`append`: both are sentences; `replace`: only the round trips; `pair`: the round trip is the second view."""
    import datasets

    if mode == "append":
        return datasets.concatenate_datasets([rows, trips])
    if mode == "replace":
        return trips
    second = trips.select_columns(["input_ids"]).rename_column("input_ids", "input_ids_b")
    return datasets.concatenate_datasets([rows, second], axis=1)
