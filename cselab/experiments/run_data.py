"""Data of runs: text, tests, triplets and models, each read once."""

import contextlib
import hashlib
import os
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path

from cselab.data.corpus import Corpus, load_corpus
from cselab.data.csts import ConditionalData, load_csts, training_rows
from cselab.data.hub import model_folder
from cselab.data.nli import DEFAULT_FILES, load_nli_text, load_nli_triplets, load_simcse_triplets
from cselab.data.settings import DataConfig
from cselab.data.sources import data_folder
from cselab.data.sts import STS7, YEARLY, StsData, load_sts
from cselab.data.synthetic.sets import Triplet, triplets
from cselab.errors import CselabError, DataError
from cselab.fingerprints import folder_hash


class RunData:
    """Text, tests, triplets and models of a `DataConfig`, each read when it is first asked for."""

    def __init__(self, config: DataConfig):
        self.config = config
        self.keys: dict[tuple[type, str], str] = {}
        """Keys of nodes by class and settings (`cselab.experiments.keys`)."""
        self._nli_texts: dict[int | None, Corpus] = {}

    @property
    def has_real_data(self) -> bool:
        """Whether there is a data folder, or the run may ask the hub."""
        return data_folder(self.config.data_dir) is not None or self.config.hub

    @property
    def dev_name(self) -> str:
        """Name of the dev split, for axes."""
        return f"{self.dev_pairs.task} dev"

    @property
    def test_tasks(self) -> tuple[str, ...]:
        """Names of the tests that scores are reported on."""
        return tuple(pairs.task for pairs in self.test_data)

    @property
    def dev_task(self) -> str:
        """The task whose dev split picks checkpoints; never a test."""
        return self.config.dev_task or ("STSBenchmark" if self.has_real_data else "Synthetic")

    @cached_property
    def dev_pairs(self) -> StsData:
        """The pairs that checkpoints are picked on: the dev split, or `data.dev_pairs` of it."""
        config = self.config
        pairs = load_sts(self.dev_task, "dev", folder=config.data_dir, hub=config.hub)
        pairs = pairs.subsample(config.dev_pairs) if config.dev_pairs else pairs
        if len(set(pairs.scores)) < 2:
            raise DataError(
                f"dev_pairs={config.dev_pairs} leaves pairs of one score, {pairs.scores[0]:g}; "
                "give more, or None for all"
            )
        return pairs

    @cached_property
    def synthetic_pairs(self) -> StsData:
        """The synthetic test pairs, or `data.synthetic_pairs` of them."""
        pairs, most = load_sts("Synthetic", "test"), self.config.synthetic_pairs
        return pairs.subsample(most) if most else pairs

    @cached_property
    def test_data(self) -> list[StsData]:
        """The pairs that scores are reported on; a `dev_task` must not be among them."""
        config = self.config
        tests = [
            self.synthetic_pairs
            if task == "Synthetic"
            else load_sts(
                task,
                folder=config.data_dir,
                hub=config.hub,
                text=config.sts_text if task in YEARLY else "raw",
            )
            for task in config.tasks or (STS7 if self.has_real_data else ("Synthetic",))
        ]
        names = [test.task for test in tests]
        for name in names:
            if names.count(name) > 1:
                raise DataError(f"tasks: two tests are called {name!r}; rename a file, or give one")
        if config.dev_task:
            refuse_tests_as_dev(self.dev_pairs, tests)
        return tests

    @cached_property
    def text(self) -> Corpus:
        """The unlabelled training text.

        The sample does not depend on the seed, so that seeds are paired.
        """
        config = self.config
        if "nli" in config.corpus:
            if len(config.corpus) > 1:
                names = ", ".join(config.corpus)
                raise DataError(
                    f"corpus: 'nli' cannot be mixed with others, got {names}; name it alone"
                )
            return self.nli_text(config.sentences)
        return load_corpus(
            config.corpus or None, folder=config.data_dir, hub=config.hub, limit=config.sentences
        )

    def nli_text(self, limit: int | None) -> Corpus:
        """Premises and hypotheses without their labels, from the files named `nli`, else from where
        `triplets` come from; at most `limit` sentences."""
        config = self.config
        if limit not in self._nli_texts:  # keys and checks ask for it again and again
            self._nli_texts[limit] = load_nli_text(
                config.nli, folder=config.data_dir, hub=config.hub, limit=limit
            )
        return self._nli_texts[limit]

    def sentences(self, count: int | None = None) -> list[str]:
        """The first `count` sentences of the training text, or all."""
        return list(islice(self.text, count))

    @cached_property
    def triplets(self) -> list[Triplet]:
        """Triplets for supervised methods, not drawn by the seed.

        The files named `nli`; with `hub`, SimCSE's triplets; the folder's NLI; or synthetic
        triplets.
        """
        config = self.config
        if config.hub and not config.nli:
            return load_simcse_triplets()[: config.triplets]
        if config.nli or data_folder(config.data_dir):
            names = config.nli or DEFAULT_FILES
            return load_nli_triplets(names, folder=config.data_dir)[: config.triplets]
        return list(triplets(config.triplets))

    @cached_property
    def csts(self) -> tuple[ConditionalData, ConditionalData]:
        """C-STS to train on, and the held-out tenth that picks its checkpoint.

        Raises:
            DataError: With `hub`, where the data folder has no C-STS: synthetic rows are for small
                decoders.
        """
        rows = load_csts("train", folder=self.config.data_dir)
        if self.config.hub and rows.source.kind == "embedded":
            raise DataError(
                "C-STS is not on the hub, its authors give it out on request; set data_dir to a "
                "folder with their files in csts/ (data/README.md)"
            )
        return training_rows(rows)

    @cached_property
    def triplets_hash(self) -> str:
        """Sixteen hex digits of the triplets' texts."""
        return hashlib.sha256(repr(self.triplets).encode()).hexdigest()[:16]

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hex digits of all text and pairs that runs on this data can read."""
        digest = hashlib.sha256(self.text.fingerprint.encode())
        for pairs in (*self.test_data, self.dev_pairs, self.synthetic_pairs):
            digest.update(pairs.fingerprint.encode())
        with contextlib.suppress(CselabError):  # a folder need not have triplets
            digest.update(self.triplets_hash.encode())
        return digest.hexdigest()[:16]

    def model_folder(self, name: str, *, setting: str = "backbone") -> Path:
        """Local folder of a backbone or decoder; errors name the setting."""
        return model_folder(name, hub=self.config.hub, setting=setting)

    def model_hash(self, name: str) -> str:
        """Sixteen hex digits of the content of `model_folder`."""
        return folder_hash(self.model_folder(name))


def refuse_tests_as_dev(dev: StsData, tests: Sequence[StsData]) -> None:
    """Check that the dev pairs are other pairs than the tests': a test must not pick checkpoints.

    At most half of either may be in the other: a third of STS-B's dev pairs are in STS15.
    """

    def pairs(data: StsData) -> set[tuple[str, ...]]:
        return {tuple(sorted(p)) for p in zip(data.sentences1, data.sentences2, strict=True)}

    def name(data: StsData) -> str:
        return data.source.detail if os.path.isfile(data.source.detail) else data.task

    dev_pairs = pairs(dev)
    for test in tests:
        test_pairs = pairs(test)
        both = len(dev_pairs & test_pairs)
        if both > min(len(dev_pairs), len(test_pairs)) / 2:
            raise DataError(
                f"dev_task: {name(dev)} is also a test ({both} of its {len(dev_pairs)} pairs are "
                f"in {name(test)}), and a test must not pick checkpoints; give other pairs, or none"
            )
