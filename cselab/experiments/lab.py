"""The lab: what a notebook works with. It trains, finds and measures methods by name."""

import itertools
import json
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy
import pandas
import torch
from filelock import FileLock

from cselab.config import DEFAULT_PROFILE
from cselab.data.batching import BucketedBatchSampler, ViewCollator
from cselab.data.progress_bar import progress_bar
from cselab.data.settings import RoundTrips
from cselab.data.sources import read_lines
from cselab.data.translation.round_trip import RoundTrip
from cselab.errors import SettingsError
from cselab.evaluation.sts import StsReport
from cselab.experiments.cache import Cache, quiet_libraries
from cselab.experiments.check import check
from cselab.experiments.measures import score
from cselab.experiments.run import Machine, RunConfig, check_settings, configure, set_up
from cselab.experiments.train import Trained, created, rows_of, start_folders, train, train_node
from cselab.methods import Batch, Method, MethodConfig, registered
from cselab.models import load, load_tokenizer
from cselab.models.encode import Encoder
from cselab.seals import clear_access
from cselab.training.distributed import rank_and_world


class Lab:
    """A profile, a seed and settings that every method of a notebook shares, where they fit it.

    `train(method, **changes)` gives a trained encoder, `evaluate(encoders)` scores and records
    them, `check(*methods)` finds everything that they will read before the first step. `open_lab`
    makes one.

    Args:
        notebook: Name in recorded rows.
        settings: Values by dotted path, for the methods that have them.
        cache: A cache that has already read the data; None: a new one.

    Attributes:
        cache: Finished steps, device and folders.
        data: Text, tests and models: `cache.data`.

    Examples:
        >>> from cselab.experiments import open_lab
        >>> lab = open_lab("x", profile="tiny", caels=2, synthetic_pairs=20)
        >>> lab.config("jtcse").caels, lab.config("jtcse", caels=1).caels
        (2, 1)
        >>> reports = lab.evaluate({"pretrained only": lab.pretrained()})
        >>> {task: len(score.data) for task, score in reports["pretrained only"].tasks.items()}
        {'Synthetic': 20}
    """

    def __init__(
        self,
        notebook: str,
        profile: str,
        seed: int,
        preset: str | None,
        settings: Mapping[str, Any],
        cache: Cache | None = None,
    ):
        self.notebook, self.profile, self.seed, self.preset = notebook, profile, seed, preset
        self.settings = dict(settings)
        setup = set_up(profile, seed=seed, preset=preset, settings=settings)
        self.cache = cache or Cache(setup)
        if self.cache.data.config != setup.data:
            self.cache = self.cache.reading(setup.data)
        self.data, self.device = self.cache.data, self.cache.device

    def run(self, method: str | MethodConfig, **changes: Any) -> RunConfig:
        """The run of a method with this lab's settings, and `changes`.

        Args:
            method: A registered name, or a configuration, which takes the lab's data and `changes`.
            **changes: Settings that have to fit the method, and profile, seed or preset. Dotted
                paths are written in a mapping: `lab.run("jtcse", **{"towers.temperature": 0.1})`.

        Raises:
            SettingsError: As `configure`, and for settings of the whole lab (`device`).
        """
        _check_machine(changes)
        profile, seed, preset = (
            changes.pop(name, getattr(self, name)) for name in ("profile", "seed", "preset")
        )
        return configure(
            method, profile, seed=seed, preset=preset, defaults=self.settings, changes=changes
        )

    def config(self, method: str | MethodConfig, **changes: Any) -> Any:
        """The configuration of a method, as in `run`: the tree that would be trained."""
        return self.run(method, **changes).method

    def train(self, method: str | MethodConfig, *, fresh: bool = False, **changes: Any) -> Trained:
        """Train a method, as in `run`, or find it trained; `fresh` trains it anew.

        Examples:
            >>> from cselab.experiments import open_lab
            >>> lab = open_lab("x", steps=2, batch_size=8, sentences=50, dev_pairs=20)
            >>> trained = lab.train("simcse", round_trips=None)  # doctest: +ELLIPSIS
            simcse: computed in ... s, kept as simcse-...
            >>> trained.fit["best_step"] in (0, 2)
            True
        """
        run = self.run(method, **changes)
        return train(run, self.cache.reading(run.data), fresh=fresh)

    def towers(self, method: str = "sum", **changes: Any) -> list[Trained]:
        """The trained towers that a sum or a twin starts from, in order."""
        config, cache = self._node(method, changes)
        return [train_node(cache, tower) for tower in config.towers]

    def pretrained(self, pooling: str = "cls") -> Any:
        """The backbone, pretrained only, as a sentence encoder."""
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

        Examples:
            >>> from cselab.experiments import open_lab
            >>> list(open_lab("x").checkpoints("tiny-bert, plain-bert"))
            ['tiny-bert', 'plain-bert']
        """
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",") if name.strip()]
        lasts = [Path(name).name for name in names]
        encoders = {}
        for name, last in zip(names, lasts, strict=True):
            folder = self.data.model_folder(name, setting="checkpoints")
            label = last if lasts.count(last) == 1 else name
            encoders[label] = load(folder, pooling=pooling).to(self.device)
        return encoders

    def create(self, method: str | MethodConfig, **changes: Any) -> Method:
        """A method before its training, from its backbone or its trained towers, on the device."""
        config, cache = self._node(method, changes)
        return created(cache, config).to(self.device)

    def batches(self, method: str | MethodConfig, **changes: Any) -> Iterator[Batch]:
        """The batches that a training of the method sees, epoch after epoch, on the device."""
        config, cache = self._node(method, changes)
        tokenizer = load_tokenizer(start_folders(cache, config)[0])
        rows = rows_of(cache, config, tokenizer)
        plan = config.schedule
        sampler = BucketedBatchSampler(
            rows["length"], plan.batch_size, seed=config.seed, by_length=plan.by_length
        )
        collate = ViewCollator(tokenizer, views=registered(config.method).views)
        for epoch in itertools.count():
            sampler.set_epoch(epoch)
            for chosen in sampler:
                batch = collate([rows[i] for i in chosen])
                yield {name: column.to(self.device) for name, column in batch.items()}

    def _node(self, method: str | MethodConfig, changes: Mapping[str, Any]) -> tuple[Any, Cache]:
        """The configuration as this machine trains it, and a cache with its data."""
        run = self.cache.with_fast_precision(self.run(method, **changes))
        return run.method, self.cache.reading(run.data)

    def check(self, *methods: str | MethodConfig) -> None:
        """Find all that training and measuring `methods` will read before the first step of any."""
        check([self.run(method) for method in methods], self.cache)

    def evaluate(self, encoders: Mapping[str, Encoder]) -> dict[str, StsReport]:
        """Scores of encoders, `Trained` or others, on the tests, recorded under their names."""
        reports = {}
        for name, encoder in encoders.items():
            reports[name] = report = score(self.data, encoder)
            source = {"method": name, "step": ""}
            if isinstance(encoder, Trained):  # a machine without bfloat16 trains in float32
                source["step"] = encoder.folder.name if encoder.folder else ""
                source["precision"] = encoder.precision
            self.record({**source, **row} for row in report.to_rows())
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
                        report = score(lab.data, encoder_of(lab))
                    else:
                        report = lab.evaluate({name: encoder_of(lab)})[name]
                    table.setdefault(seed, {})[name] = report.average
                    bar.update()
        return pandas.DataFrame.from_dict(table, orient="index").rename_axis("seed")

    def round_trips(self, pivot: str, sentences: list[str] | None = None) -> list[str]:
        """The sentences of the text, or those given, each after its round trip through `pivot`."""
        trips = self._trips(pivot)
        if sentences is not None:
            return list(RoundTrip(pivot, self.cache.translator(trips))(sentences))
        return list(read_lines(self.cache.round_trip_file(trips)))

    def _trips(self, pivot: str) -> RoundTrips:
        trips = self.config("sum").towers[0].trips
        if trips is None:
            raise SettingsError("round_trips: the towers have none; leave the setting out")
        return trips.model_copy(update={"pivot": pivot})

    def record(self, rows: Iterable[dict[str, Any]]) -> None:
        """Append result rows (method, task, score, n, …) to results.jsonl, with settings, seed and
        environment; of several processes only the first writes."""
        if rank_and_world()[0]:
            return
        settings = {**self.settings, **({"preset": self.preset} if self.preset else {})}
        common = {
            "notebook": self.notebook,
            "seed": self.seed,
            "profile": self.profile,
            "settings": json.dumps(settings, sort_keys=True, default=str),
            **self.cache.environment,
        }
        _append_rows(self.cache.run_dir / "results.jsonl", ({**common, **row} for row in rows))

    def with_settings(self, **changes: Any) -> "Lab":
        """The same lab with other parameters of `open_lab`, but for settings of the whole lab
        (`device`), for a comparison inside one notebook."""
        _check_machine(changes)
        profile, seed, preset = (
            changes.pop(name, getattr(self, name)) for name in ("profile", "seed", "preset")
        )
        settings = {**self.settings, **changes}
        check_settings(settings, profile)
        return Lab(self.notebook, profile, seed, preset, settings, self.cache)

    def __repr__(self) -> str:
        stamp = self.cache.environment
        changed = "".join(f", {name}={value}" for name, value in self.settings.items())
        return (
            f"{self.notebook}: profile {self.profile}, seed {self.seed}{changed}; {self.device} "
            f"({stamp['hardware']}), torch {stamp['torch']}, transformers {stamp['transformers']}; "
            f"results in {self.cache.run_dir}"
        )


def _append_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Append rows to the file, whole and after the line of a writer that was killed.

    Methods and tasks are texts, also of numbers.
    """
    text = ""
    for row in rows:
        texts = {name: str(row[name]) for name in ("method", "task") if name in row}
        text += json.dumps({**row, **texts}, default=_plain) + "\n"
    with clear_access(path.parent), FileLock(f"{path}.lock"), path.open("a+b") as file:
        file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
        if file.read() not in (b"", b"\n"):
            text = "\n" + text
        file.write(text.encode())


def _plain(value: Any) -> Any:
    """A number of NumPy or torch as one of Python, anything else as its text."""
    return value.item() if getattr(value, "ndim", None) == 0 else str(value)


def _check_machine(changes: Mapping[str, Any]) -> None:
    """Refuse another machine: a lab has one device and one folder of outputs."""
    machine = {"machine", *Machine.model_fields}
    if names := machine & {path.removeprefix("machine.") for path in changes}:
        raise SettingsError(f"{min(names)} is the whole lab's; give it to open_lab")


def open_lab(notebook: str, *, settings: Mapping[str, Any] | None = None, **parameters: Any) -> Lab:
    """Set up a notebook: profile, seed and settings, seeds of the libraries, device.

    Args:
        notebook: Name in recorded rows.
        settings: Further parameters, by dotted path.
        **parameters: profile, seed, preset, and settings as in `Lab`; None is "as the profile has
            it".

    Raises:
        SettingsError: With the nearest valid name for an unknown one, for a bad value, and for a
            parameter that is in `settings` too.

    Examples:
        >>> from cselab.experiments import open_lab
        >>> lab = open_lab("x", profile="tiny", temperature=0.05)
        >>> lab.profile, lab.config("simcse").temperature, lab.config("scd").temperature
        ('tiny', 0.05, 0.05)
        >>> open_lab("x", temprature=0.05)
        Traceback (most recent call last):
            ...
        cselab.errors.SettingsError: unknown setting 'temprature'; did you mean 'temperature'?
    """
    given, further = (
        {name: value for name, value in (values or {}).items() if value is not None}
        for values in (parameters, settings)
    )
    for name in given.keys() & further.keys():
        raise SettingsError(
            f"{name} is given twice: {given[name]!r} by its own name and {further[name]!r} in "
            "settings; give it by its own name alone"
        )
    settings = {**given, **further}
    profile, preset = settings.pop("profile", DEFAULT_PROFILE), settings.pop("preset", None)
    seed = set_up(profile, seed=settings.pop("seed", None), preset=preset).seed
    check_settings(settings, profile)
    quiet_libraries()
    random.seed(seed)
    numpy.random.seed(seed)  # noqa: NPY002  scikit-learn and transformers read it
    torch.manual_seed(seed)
    return Lab(notebook, profile, seed, preset, settings)
