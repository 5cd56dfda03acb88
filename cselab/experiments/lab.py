"""The lab: what a notebook works with. It trains, finds and measures methods by name."""

import itertools
import json
import os
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pandas
import torch
from filelock import FileLock
from transformers.utils import logging as transformers_logging

from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.data.corpus import Corpus
from cselab.data.progress import progress_bar
from cselab.data.sts import StsData
from cselab.data.translation.config import RoundTrips
from cselab.errors import SettingsError
from cselab.evaluation import StsReport
from cselab.experiments import finished, scores
from cselab.experiments.check import check
from cselab.experiments.config import Machine, RunConfig, check_settings, configure
from cselab.experiments.session import Session
from cselab.experiments.train import Trained, dev_score, rows_of, start_folders, train, train_nodes
from cselab.experiments.workspace import Workspace
from cselab.methods import Batch, Method, MethodConfig, create, registered
from cselab.models import load, load_tokenizer
from cselab.models.encode import Encoder
from cselab.seals import clear_access
from cselab.training.distributed import rank_and_world

DATA_METHOD = "untrained"
"""A method that settings of the data alone fit."""


class Lab:
    """A profile, a seed and settings that every method of a notebook shares, where they fit it.

    `train(method, **changes)` gives a trained encoder, `evaluate(encoders)` scores and records
    them, `check(*methods)` finds everything that they will read before the first step. `open_lab`
    makes one.

    Args:
        notebook: Name of the notebook in recorded rows.
        profile: "tiny", "small" or "paper".
        seed: Seed of every run.
        preset: "paper", "released" or None, as in `configure`.
        settings: Values by dotted path, for the methods that have them.
        workspace: Where runs are kept; None: that of the settings.

    Examples:
        >>> from cselab.experiments import open_lab
        >>> lab = open_lab("x", caels=2, synthetic_pairs=20)
        >>> lab.config("jtcse").caels, lab.config("jtcse", caels=1).caels
        (2, 1)
        >>> reports = lab.evaluate({"untrained": lab.untrained()})
        >>> {task: len(score.data) for task, score in reports["untrained"].tasks.items()}
        {'Synthetic': 20}
    """

    def __init__(
        self,
        notebook: str,
        profile: str,
        seed: int,
        preset: str | None,
        settings: Mapping[str, Any],
        workspace: Workspace | None = None,
    ):
        self.notebook, self.profile, self.seed, self.preset = notebook, profile, seed, preset
        self.settings = dict(settings)
        self.base = self.run(DATA_METHOD)
        self.workspace = workspace or Workspace(self.base.machine)
        self.session = Session(self.workspace, self.base.data)
        self.device, self.run_dir = self.workspace.device, self.workspace.run_dir

    def run(self, method: str | MethodConfig, **changes: Any) -> RunConfig:
        """The run of a method with this lab's settings, and `changes`.

        Args:
            method: A registered name, or a configuration, which takes `changes` only.
            **changes: Settings that have to fit the method, and profile, seed or preset. Dotted
                paths are written in a mapping: `lab.run("jtcse", **{"towers.temperature": 0.1})`.

        Raises:
            SettingsError: As `configure`, and for what is the whole lab's (`device`).
        """
        _check_machine(changes)
        given = {"profile": self.profile, "seed": self.seed, "preset": self.preset, **changes}
        profile, seed, preset = (given.pop(name) for name in ("profile", "seed", "preset"))
        usual = self.settings if isinstance(method, str) else {}
        return configure(method, profile, seed=seed, preset=preset, usual=usual, changes=given)

    def config(self, method: str | MethodConfig, **changes: Any) -> Any:
        """The configuration of a method: the tree that would be trained.

        Args:
            method: As in `run`.
            **changes: As in `run`.
        """
        return self.run(method, **changes).method

    def train(self, method: str | MethodConfig, **changes: Any) -> Trained:
        """Train a method, by name or configuration, or find it trained.

        Args:
            method: As in `run`.
            **changes: As in `run`.

        Examples:
            >>> from cselab.experiments import open_lab
            >>> lab = open_lab("x", steps=2, batch_size=8, sentences=50, dev_pairs=20)
            >>> trained = lab.train("simcse", round_trips=None)  # doctest: +ELLIPSIS
            simcse: computed in ... s, kept as simcse-...
            >>> trained.fit["best_step"] in (0, 2)
            True
        """
        run = self.run(method, **changes)
        return train(run, Session(self.workspace, run.data))  # its files may have changed

    def towers(self, method: str = "sum", **changes: Any) -> list[Trained]:
        """The trained towers that a sum or a twin starts from, in order.

        Args:
            method: A method with towers, as in `run`.
            **changes: As in `run`.
        """
        config, session = self._node(method, changes)
        return train_nodes(session, config.towers)

    def untrained(self, pooling: str = "cls") -> Any:
        """The backbone before training, as a sentence encoder."""
        return self.train("untrained", pooling=pooling).encoder

    def checkpoints(
        self, names: str | Sequence[str], *, pooling: str | None = None
    ) -> dict[str, Encoder]:
        """Finished encoders, by the last part of their names, or by the whole where two share it.

        Args:
            names: Folders (`cselab.load`), shipped backbones, or, with hub=True, names on the hub
                such as "princeton-nlp/unsup-simcse-bert-base-uncased"; a list, or one string with
                commas, as a command line gives it.
            pooling: As in `cselab.load`.

        Raises:
            SettingsError: For a name that is none of these.
            DataError: For what the hub does not have.
            ModelError: As `cselab.load`.

        Examples:
            >>> from cselab.experiments import open_lab
            >>> list(open_lab("x").checkpoints("tiny-bert, plain-bert"))
            ['tiny-bert', 'plain-bert']
        """
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",") if name.strip()]
        lasts = [Path(name).name for name in names]
        found = {}
        for name, last in zip(names, lasts, strict=True):
            folder = self.session.model_folder(name, setting="checkpoints")
            label = last if lasts.count(last) == 1 else name
            found[label] = load(folder, pooling=pooling).to(self.device)
        return found

    def create(self, method: str | MethodConfig, **changes: Any) -> Method:
        """A method before its training, from its backbone or its trained towers, on the device.

        Args:
            method: As in `run`.
            **changes: As in `run`.
        """
        config, session = self._node(method, changes)
        return create(config, folders=start_folders(session, config)).to(self.device)

    def batches(self, method: str | MethodConfig, **changes: Any) -> Iterator[Batch]:
        """The batches that a training of the method sees, in their order, on the device.

        The iterator has no end: epoch follows epoch.

        Args:
            method: As in `run`.
            **changes: As in `run`.
        """
        config, session = self._node(method, changes)
        tokenizer = load_tokenizer(start_folders(session, config)[0])
        rows = rows_of(session, config, tokenizer)
        sampler = BucketedBatchSampler(rows["length"], config.schedule.batch_size, seed=config.seed)
        collate = ViewCollator(tokenizer, views=registered(config.method).views)
        for epoch in itertools.count():
            sampler.set_epoch(epoch)
            for chosen in sampler:
                batch = collate([rows[i] for i in chosen])
                yield {name: column.to(self.device) for name, column in batch.items()}

    def _node(self, method: str | MethodConfig, changes: Mapping[str, Any]) -> tuple[Any, Session]:
        """The configuration as this machine trains it, and a session of its data."""
        run = self.workspace.with_fast_precision(self.run(method, **changes))
        return run.method, Session(self.workspace, run.data)

    def check(self, *methods: str) -> None:
        """Find all that training and measuring `methods` will read before the first step of any."""
        check([self.run(method) for method in methods], self.session)

    def evaluate(self, encoders: Mapping[str, Encoder]) -> dict[str, StsReport]:
        """Scores of encoders on the tests, recorded as rows of the run under their names.

        Args:
            encoders: `Trained` or other encoders, by name.
        """
        reports = {}
        for name, encoder in encoders.items():
            reports[name] = report = scores.score(self.session, encoder)
            folder = getattr(encoder, "folder", None)
            of = {"method": name, "step": folder.name if folder else ""}
            if isinstance(encoder, Trained):  # a machine without bfloat16 trains in float32
                of["precision"] = encoder.precision
            self.record({**of, **row} for row in report.to_rows())
        return reports

    def over_seeds(
        self,
        build: Mapping[str, Callable[["Lab"], Encoder]],
        seeds: Iterable[int],
        known: Mapping[str, StsReport] | None = None,
    ) -> pandas.DataFrame:
        """Average test score of each method (columns) trained with each seed (rows).

        Trainings are kept, so an interrupted run goes on. Scores of other seeds are recorded; the
        row of the lab's own one is `evaluate`'s.

        Args:
            build: Functions by name of the method; each trains, or finds, it in the lab of a seed.
            seeds: The seeds.
            known: Reports of the lab's own seed, which are not computed again.
        """
        seeds, known = list(seeds), known or {}
        table: dict[int, dict[str, float]] = {}
        with progress_bar("methods × seeds", len(build) * len(seeds), unit="run") as bar:
            for seed in seeds:
                lab = self.with_settings(seed=seed)
                for name, encoder_of in build.items():
                    if seed == self.seed and name in known:
                        report = known[name]
                    elif seed == self.seed:
                        report = scores.score(lab.session, encoder_of(lab))
                    else:
                        report = lab.evaluate({name: encoder_of(lab)})[name]
                    table.setdefault(seed, {})[name] = report.average
                    bar.update()
        return pandas.DataFrame.from_dict(table, orient="index").rename_axis("seed")

    @property
    def text(self) -> Corpus:
        """The training text."""
        return self.session.text

    def sentences(self, count: int) -> list[str]:
        """The first so many sentences of the training text."""
        return self.session.first_sentences(count)

    @property
    def dev_pairs(self) -> StsData:
        """The pairs that pick checkpoints."""
        return self.session.dev_pairs

    @property
    def dev_name(self) -> str:
        """The name of the dev split, for axes."""
        return f"{self.dev_pairs.task} dev"

    @property
    def test_tasks(self) -> tuple[str, ...]:
        """The names of the tests that scores are reported on."""
        return tuple(pairs.task for pairs in self.session.test_data)

    def dev_score(self, encoder: Encoder) -> float:
        """Spearman x100 on the dev pairs."""
        return dev_score(self.session, encoder)

    def phenomena(self, encoder: Encoder, report: StsReport | None = None) -> Mapping[str, float]:
        """Spearman x100 within each phenomenon of the synthetic test pairs.

        Args:
            encoder: The encoder.
            report: Scores of the encoder, which are read if they have the synthetic pairs.
        """
        return scores.phenomena(self.session, encoder, report)

    def geometry(self, encoder: Encoder) -> tuple[float, float]:
        """(uniformity, alignment) on the dev split."""
        return scores.geometry(self.session, encoder)

    def energy(self, encoder: Encoder) -> float | None:
        """Energy of [CLS], a mean over layers, towers and 100 sentences.

        Args:
            encoder: A training's result or an encoder.

        Returns:
            The energy, or None without BERT-like towers.
        """
        return scores.energy(self.session, getattr(encoder, "encoder", encoder))

    def pair_cosines(self, encoder: Encoder) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and gold ratings of the dev pairs."""
        return scores.pair_cosines(self.session, encoder)

    def round_trips(self, pivot: str) -> list[str]:
        """The sentences of the text, each after its round trip through `pivot`."""
        return self.session.round_trips(self._through(pivot))

    def round_trip_seconds(self, pivot: str) -> float:
        """Estimated seconds of all round trips through `pivot`."""
        return self.session.round_trip_seconds(self._through(pivot))

    def _through(self, pivot: str) -> RoundTrips:
        first = self.config("sum").towers[0].round_trips
        return first.model_copy(update={"pivot": pivot})

    def finished_runs(self) -> dict[str, Callable[[], finished.FinishedRun]]:
        """What opens each finished training, by name, newest first."""
        return finished.finished_runs(self.session)

    def record(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append result rows to results.jsonl, with settings, seed and environment.

        Of several processes only the first writes.

        Args:
            rows: Rows with method, task, score, n, …
        """
        if rank_and_world()[0]:
            return
        settings = {**self.settings, **({"preset": self.preset} if self.preset else {})}
        common = {
            "notebook": self.notebook,
            "seed": self.seed,
            "profile": self.profile,
            "settings": json.dumps(settings, sort_keys=True, default=str),
            **self.workspace.environment,
        }
        rows = ({**common, **_as_texts(row)} for row in rows)
        text = "".join(json.dumps(row, default=_plain) + "\n" for row in rows)
        path = self.run_dir / "results.jsonl"
        with (
            clear_access(self.run_dir),
            FileLock(f"{path}.lock"),
            path.open("a+b") as file,
        ):
            file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
            if file.read() not in (b"", b"\n"):  # the line of a writer that was killed
                text = "\n" + text
            file.write(text.encode())

    def with_settings(self, **changes: Any) -> "Lab":
        """The same lab with some settings changed, for a comparison inside one notebook.

        Args:
            **changes: As the parameters of `open_lab`.

        Raises:
            SettingsError: As `open_lab`, and for what is the whole lab's (`device`).
        """
        _check_machine(changes)
        given: dict[str, Any] = {"profile": self.profile, "seed": self.seed, "preset": self.preset}
        given |= {name: changes.pop(name) for name in list(changes) if name in given}
        settings = {**self.settings, **changes}
        check_settings(settings, given["profile"])
        lab = Lab(self.notebook, settings=settings, workspace=self.workspace, **given)
        if lab.base.data == self.base.data:
            lab.session = self.session
        return lab

    def __repr__(self) -> str:
        found = self.workspace.environment
        changed = "".join(f", {name}={value}" for name, value in self.settings.items())
        return (
            f"{self.notebook}: profile {self.profile}, seed {self.seed}{changed}; {self.device} "
            f"({found['hardware']}), torch {found['torch']}, transformers {found['transformers']}; "
            f"results in {self.run_dir}"
        )


def _as_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row; its method and task are texts, also of numbers."""
    return {k: str(v) if k in ("method", "task") else v for k, v in row.items()}


def _plain(value: Any) -> Any:
    """A number of NumPy or torch as one of Python, anything else as its text."""
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)


def _check_machine(changes: Mapping[str, Any]) -> None:
    """That the machine stays: a lab has one device and one folder of outputs."""
    machine = {"machine", *Machine.model_fields}
    if names := machine & {path.removeprefix("machine.") for path in changes}:
        raise SettingsError(f"{min(names)} is the whole lab's; give it to open_lab")


def open_lab(notebook: str, **parameters: Any) -> Lab:
    """Set up a notebook: profile, seed and settings, seeds of the libraries, device.

    Args:
        notebook: Name of the notebook in recorded rows.
        **parameters: profile, seed, preset, and settings as in `Lab`; None is "as the profile has
            it".

    Raises:
        SettingsError: With the nearest valid name for an unknown profile or setting, and for a bad
            value.

    Examples:
        >>> from cselab.experiments import open_lab
        >>> lab = open_lab("x", temperature=0.05)
        >>> lab.profile, lab.config("simcse").temperature, lab.config("scd").temperature
        ('tiny', 0.05, 0.05)
        >>> open_lab("x", temprature=0.05)
        Traceback (most recent call last):
            ...
        cselab.errors.SettingsError: unknown setting 'temprature'; did you mean 'temperature'?
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    profile, preset = given.pop("profile", "tiny"), given.pop("preset", None)
    seed = given.pop("seed", 42)
    lab_seed = configure(DATA_METHOD, profile, seed=seed, preset=preset).seed
    check_settings(given, profile)
    _quiet()
    random.seed(lab_seed)
    numpy.random.seed(lab_seed)  # noqa: NPY002  scikit-learn and transformers read it
    torch.manual_seed(lab_seed)
    return Lab(notebook, profile, lab_seed, preset, given)


def _quiet() -> None:
    """Library chatter that a reader of a notebook should not have to scroll past."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    warnings.filterwarnings("ignore", message=".*pin_memory.*")
