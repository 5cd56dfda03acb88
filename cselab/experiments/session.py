"""A session: where runs are computed, and the data that they share, read once."""

import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from cselab.data.config import DataConfig
from cselab.data.corpus import Corpus, load_corpus
from cselab.data.fingerprints import folder_hash
from cselab.data.hub import model_folder
from cselab.data.nli import (
    DEFAULT_FILES,
    load_nli_text,
    load_nli_triplets,
    load_simcse_triplets,
)
from cselab.data.sources import data_folder, read_lines
from cselab.data.sts import STS7, StsData, load_sts
from cselab.data.synthetic.sets import Triplet, triplets
from cselab.data.translation.config import RoundTrips
from cselab.data.translation.pivot import LexicalPivot
from cselab.data.translation.round_trip import SAMPLE, RoundTrip
from cselab.data.translation.translators import PreparedTrips, RoundTripTranslator, open_translator
from cselab.errors import DataError
from cselab.experiments.code import code_of_modules
from cselab.experiments.workspace import Workspace


class Session:
    """Text, tests, triplets and translators of a `DataConfig`, and the workspace of its runs.

    Args:
        workspace: Where runs are computed and kept.
        data: What is read; each once, when it is first asked for.
        rehearsal: A folder while `check` builds what a run will train without training it; else
            None.

    Examples:
        >>> from cselab.experiments import Session, Workspace, configure
        >>> run = configure("simcse", changes={"sentences": 100, "dev_pairs": 20})
        >>> session = Session(Workspace(run.machine), run.data)
        >>> session.test_tasks, len(session.text), len(session.dev_pairs)
        (('Synthetic',), 100, 20)
    """

    def __init__(self, workspace: Workspace, data: DataConfig, rehearsal: Path | None = None):
        self.workspace, self.data, self.rehearsal = workspace, data, rehearsal
        self.device = workspace.device

    @property
    def has_real_data(self) -> bool:
        """Whether there is a data folder, or the run may ask the hub."""
        return data_folder(self.data.data_dir) is not None or self.data.hub

    @property
    def test_tasks(self) -> tuple[str, ...]:
        """The tasks that scores are reported on."""
        return self.data.tasks or (STS7 if self.has_real_data else ("Synthetic",))

    @property
    def dev_task(self) -> str:
        """The task whose dev split picks checkpoints; never a test."""
        return self.data.dev_task or ("STSBenchmark" if self.has_real_data else "Synthetic")

    @cached_property
    def dev_pairs(self) -> StsData:
        """The pairs that checkpoints are picked on: the dev split, or `data.dev_pairs` of it.

        Raises:
            DataError: As `load_sts`, and for a `dev_pairs` that leaves nothing to rank.
        """
        data = self.data
        pairs = load_sts(self.dev_task, "dev", folder=data.data_dir, hub=data.hub)
        pairs = pairs.subsample(data.dev_pairs) if data.dev_pairs else pairs
        if len(set(pairs.scores)) < 2:
            raise DataError(
                f"dev_pairs={data.dev_pairs} leaves pairs of one score, {pairs.scores[0]:g}; give "
                "more, or None for all"
            )
        return pairs

    @cached_property
    def synthetic_pairs(self) -> StsData:
        """The synthetic test pairs, or `data.synthetic_pairs` of them."""
        pairs, most = load_sts("Synthetic", "test"), self.data.synthetic_pairs
        return pairs.subsample(most) if most else pairs

    @cached_property
    def test_data(self) -> list[StsData]:
        """The pairs of `test_tasks`.

        Raises:
            DataError: For two tests of one name, and as `refuse_tests_as_dev` if `dev_task` is set.
        """
        data = self.data
        tests = [
            self.synthetic_pairs
            if task == "Synthetic"
            else load_sts(task, folder=data.data_dir, hub=data.hub)
            for task in self.test_tasks
        ]
        names = [test.task for test in tests]
        if doubled := [name for name in names if names.count(name) > 1]:
            raise DataError(
                f"tasks: two tests are called {doubled[0]!r}; rename a file, or give one"
            )
        if data.dev_task:
            refuse_tests_as_dev(self.dev_pairs, tests)
        return tests

    @cached_property
    def text(self) -> Corpus:
        """The unlabelled training text.

        The sample does not depend on the seed, so that seeds are paired.

        Raises:
            DataError: For "nli" beside other names, and as `load_corpus`.
        """
        data = self.data
        if "nli" in data.corpus:
            if len(data.corpus) > 1:
                names = ", ".join(data.corpus)
                raise DataError(
                    f"corpus: 'nli' cannot be mixed with others, got {names}; name it alone"
                )
            return self.nli_text(data.sentences)
        return load_corpus(
            data.corpus or None, folder=data.data_dir, hub=data.hub, limit=data.sentences
        )

    def nli_text(self, limit: int) -> Corpus:
        """Premises and hypotheses without their labels.

        Args:
            limit: Most sentences; they are of the files named `nli`, else of where `triplets` come
                from.
        """
        data = self.data
        if limit not in self._nli_texts:
            self._nli_texts[limit] = load_nli_text(
                data.nli, folder=data.data_dir, hub=data.hub, limit=limit
            )
        return self._nli_texts[limit]

    @cached_property
    def _nli_texts(self) -> dict[int, Corpus]:
        """By size; keys and checks ask for them again and again."""
        return {}

    def text_of(self, node: Any) -> Corpus:
        """The text that a node without training is fitted to: the training text, or NLI's."""
        if getattr(node, "text", "") == "nli":
            return self.nli_text(node.fitted_on)
        return self.text

    def first_sentences(self, count: int | None = None) -> list[str]:
        """The first `count` sentences of the text, or all."""
        return list(islice(self.text, count))

    @cached_property
    def triplets(self) -> list[Triplet]:
        """What supervised methods learn from, not drawn by the seed.

        The files named `nli`; with `hub`, SimCSE's triplets; the folder's NLI; or synthetic
        triplets.
        """
        data = self.data
        if data.hub and not data.nli:
            return load_simcse_triplets()[: data.triplets]
        if data.nli or data_folder(data.data_dir):
            names = data.nli or DEFAULT_FILES
            return load_nli_triplets(names, folder=data.data_dir)[: data.triplets]
        return list(triplets(data.triplets))

    @cached_property
    def triplets_hash(self) -> str:
        """Sixteen hex digits of the triplets' texts."""
        return hashlib.sha256(repr(self.triplets).encode()).hexdigest()[:16]

    def model_folder(self, name: str, *, setting: str = "backbone") -> Path:
        """Local folder of a backbone or decoder, as `cselab.data.hub.model_folder` finds it.

        Args:
            name: As there.
            setting: What has the name, for the message.

        Raises:
            SettingsError: As there.
            DataError: As there.
        """
        return model_folder(name, hub=self.data.hub, setting=setting)

    def model_hash(self, name: str) -> str:
        """Sixteen hex digits of the content of `model_folder`."""
        return folder_hash(self.model_folder(name))

    def translator(self, trips: RoundTrips) -> LexicalPivot | RoundTripTranslator | PreparedTrips:
        """English to the pivot and back; a rehearsal looks up all of its prepared trips."""
        translator = open_translator(
            trips.translator,
            trips.pivot,
            hub=self.data.hub,
            beams=trips.beams,
            temperature=trips.sampling_temperature,
            device=self.device,
        )
        if self.rehearsal is not None and isinstance(translator, PreparedTrips):
            translator(self.first_sentences())
        return translator

    def round_trip_file(self, trips: RoundTrips) -> Path:
        """One round trip a line, in the order of the text."""
        translator = self.translator(trips)
        cache = self.workspace.cache_dir / "round-trips" / translator.fingerprint

        def compute(folder: Path) -> None:
            back = RoundTrip(trips.pivot, translator, cache=cache)(self.text)
            with (folder / "round-trips.txt").open("w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in back)

        inputs = {
            "translator": translator.fingerprint,
            "text": self.text.fingerprint,
            "code": code_of_modules(RoundTrip.__module__),
        }
        name = f"round-trips-{trips.pivot}"
        return self.workspace.step(name, inputs, compute) / "round-trips.txt"

    def round_trips(self, trips: RoundTrips) -> list[str]:
        """The sentences of the text, each after its round trip."""
        return list(read_lines(self.round_trip_file(trips)))

    def round_trip_seconds(self, trips: RoundTrips) -> float:
        """Estimated seconds of the whole `round_trip_file`, from its first hundred sentences."""
        some = self.first_sentences(SAMPLE)
        return RoundTrip(trips.pivot, self.translator(trips)).seconds_for(some, len(self.text))


def refuse_tests_as_dev(dev: StsData, tests: Sequence[StsData]) -> None:
    """Check that the dev pairs are other pairs than the tests': a test must not pick checkpoints.

    A third of STS-B's dev pairs are in STS15, from which it was drawn, so a smaller part is fine.

    Raises:
        DataError: If more than half of the dev pairs are in a test, or of a test in the dev pairs.
    """
    ours = _pairs_of(dev)
    for test in tests:
        theirs = _pairs_of(test)
        both = len(ours & theirs)
        if both > min(len(ours), len(theirs)) / 2:
            raise DataError(
                f"dev_task: {_shown(dev)} is also a test ({both} of its {len(ours)} pairs are in "
                f"{_shown(test)}), and a test must not pick checkpoints; give other pairs, or none "
                "for the default"
            )


def _shown(data: StsData) -> str:
    """The path of a user's file, else the name of the task."""
    return data.source.detail if os.path.isfile(data.source.detail) else data.task


def _pairs_of(data: StsData) -> set[tuple[str, ...]]:
    pairs = zip(data.sentences1, data.sentences2, strict=True)
    return {tuple(sorted(pair)) for pair in pairs}
