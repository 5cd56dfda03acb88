"""Training a run: its nodes from the leaves up, each once."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerBase

from cselab.data.csts import tokenize_csts
from cselab.data.nli import tokenize_triplets
from cselab.data.settings import RoundTrips
from cselab.data.targets import with_targets
from cselab.errors import SettingsError
from cselab.evaluation.csts import PROMPT, evaluate_csts, with_condition
from cselab.evaluation.sts import StsReport
from cselab.experiments.cache import Cache
from cselab.experiments.code import code_of
from cselab.experiments.keys import fitted_text, key_inputs, node_key
from cselab.experiments.measures import dev_score, score
from cselab.experiments.run import RunConfig
from cselab.experiments.training_rows import Widen, text_rows
from cselab.methods import Method, MethodConfig, create, registered
from cselab.methods.nodes import TrainedConfig
from cselab.methods.simcse import has_head
from cselab.methods.training_free import Materials
from cselab.models import load, load_tokenizer
from cselab.models.adapters import ADAPTERS
from cselab.models.encode import Encoder
from cselab.models.prompts import fill_prompt
from cselab.models.texts import as_sentences
from cselab.training import fit
from cselab.training.distributed import rank_and_world

HEAD = "head.safetensors"
"""File of a trained head, beside the folder of its encoder."""


@dataclass(frozen=True)
class Trained:
    """An encoder in evaluation mode, its node, and what its training did; see `train`.

    Attributes:
        fit: `FitResult` as a dict; {} where nothing was trained.
        folder: Folder of the finished step, or None.

    Examples:
        >>> from cselab.experiments import configure, train
        >>> trained = train(configure("untrained"))
        >>> trained.encode(["A dog runs."]).shape, trained.fit, trained.precision
        (torch.Size([1, 192]), {}, 'float32')
    """

    encoder: Encoder
    config: MethodConfig
    fit: dict[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    def encode(self, sentences: Iterable[str], **options: Any) -> Any:
        """The encoder's vectors of n sentences, (n, d), with the options of its `encode`."""
        return self.encoder.encode(as_sentences(sentences), **options)

    @property
    def precision(self) -> str:
        """ "bfloat16" if any node was trained in it, else "float32"."""
        used = any(place[-1] == "bf16" and value for place, value, _ in self.config.walk())
        return "bfloat16" if used else "float32"


def train(run: RunConfig, cache: Cache | None = None, *, fresh: bool = False) -> Trained:
    """Train a run, or find it trained: the nodes that it starts from first.

    Args:
        cache: A cache that has already read the data; None: a new one.
        fresh: Train the run's root anew, whatever the cache has: after a change that no source
            shows.

    Raises:
        CselabError: For bad input (`cselab.experiments.check` finds it before the first step).
        DivergenceError: For a training that went wrong.

    Examples:
        >>> from cselab.experiments import configure, train
        >>> small = {"steps": 2, "batch_size": 8, "sentences": 50, "dev_pairs": 20}
        >>> run = configure("simcse", changes={**small, "round_trips": None})
        >>> trained = train(run)  # doctest: +ELLIPSIS
        simcse: computed in ... s, kept as simcse-...
        >>> [row["step"] for row in trained.fit["history"]]
        [0, 2]
    """
    cache = cache or Cache(run)
    return train_node(cache, cache.with_fast_precision(run).method, fresh=fresh)


def evaluate(run: RunConfig, cache: Cache | None = None) -> StsReport:
    """Scores of a run on its tests; the run is trained first, or found trained.

    Examples:
        >>> from cselab.experiments import configure, evaluate
        >>> run = configure("untrained", changes={"synthetic_pairs": 20})
        >>> list(evaluate(run).scores)
        ['Synthetic']
    """
    cache = cache or Cache(run)
    return score(cache.data, train(run, cache))


def train_node(cache: Cache, node: MethodConfig, *, fresh: bool = False) -> Trained:
    """One node of a run's tree, trained or found."""
    if not isinstance(node, TrainedConfig):
        return Trained(_untrained(cache, node), node)
    folder = _step(cache, node, fresh=fresh)
    # the same decoder may lie elsewhere now
    adapts = (folder / "encoder" / ADAPTERS).is_file()
    base = start_folders(cache, node)[0] if adapts else None
    encoder = load(folder / "encoder", base=base).to(cache.device)
    return Trained(encoder, node, json.loads((folder / "fit.json").read_text()), folder)


def _untrained(cache: Cache, node: MethodConfig) -> Encoder:
    def text(count: int | None) -> list[str]:
        return list(islice(fitted_text(cache.data, node), count))

    parts = [train_node(cache, part).encoder for part in node.parts]
    materials = Materials(parts, text, cache.data.model_folder, cache.device)
    return registered(node.method).encoder(node, materials)


def _step(cache: Cache, node: TrainedConfig, *, fresh: bool = False) -> Path:
    """The folder with the node's encoder and history, trained or found."""
    name, start = step_name(node), start_folders(cache, node)[0]

    def compute(folder: Path) -> None:
        method = created(cache, node)
        result = fit(
            method,
            rows_of(cache, node, load_tokenizer(start)),
            node.schedule,
            dev=lambda method: _dev_score(cache, method),
            seed=node.seed,
            device=cache.device,
            name=name,
            checkpoints=folder / "checkpoints",
            save_every=cache.save_every,
            logs=cache.run_dir / "training" / name,
            listener=cache.listener,
        )
        if rank_and_world()[0] == 0:
            method.encoder.save_pretrained(folder / "encoder")
            if has_head(node):
                save_file(method.head.state_dict(), folder / HEAD)
            (folder / "fit.json").write_text(json.dumps(result.as_dict(), indent=1))

    inputs = key_inputs(cache, node)
    if fresh:
        inputs["fresh"] = datetime.now(UTC).isoformat()
    return cache.step(name, inputs, compute, resumable=True)


def _dev_score(cache: Cache, method: Method) -> float:
    """What picks the checkpoint: the score on dev, of C-STS on held-out pairs."""
    if method.reads == "csts":
        encode = with_condition(method.encoder).encode
        return evaluate_csts(encode, cache.data.csts[1], resamples=0).spearman
    return dev_score(cache.data, method.encoder)


def created(cache: Cache, node: TrainedConfig) -> Method:
    """A node's method before its training, from its model or its trained towers."""
    folders = start_folders(cache, node)
    torch.manual_seed(node.seed)  # of what the method draws: a head's weights, LoRA's
    method = create(node, folders=[str(folder) for folder in folders])
    if getattr(node, "head", "none") == "kept":
        for head, folder in zip(method.heads, folders, strict=True):
            head.load_state_dict(load_file(folder.with_name(HEAD)))
    return method


def start_folders(cache: Cache, node: TrainedConfig) -> list[Path]:
    """Folders of the weights that a node starts from: its towers', or its model's.

    A tower that another process is training comes last: while it trains tower I, this one trains
    tower II.
    """
    towers = trained_towers(node)
    if not towers:
        return [cache.data.model_folder(node.pretrained_model, setting=node.model_setting)]
    elsewhere = [cache.is_computing(step_name(one), key_inputs(cache, one)) for one in towers]
    folders = {
        i: _step(cache, towers[i]) / "encoder"
        for i in sorted(range(len(towers)), key=elsewhere.__getitem__)
    }
    return [folders[i] for i in range(len(towers))]


def trained_towers(node: TrainedConfig) -> Sequence[Any]:
    """The towers that a node starts from; none if it starts from a model."""
    if alone := [tower.method for tower in node.starts if not isinstance(tower, TrainedConfig)]:
        raise SettingsError(f"towers: {alone[0]!r} is not trained; give a method with one tower")
    return node.starts


def step_name(node: TrainedConfig) -> str:
    """The method's name and, where there is one, the pivot of its round trips."""
    return f"{node.method}-{node.trips.pivot}" if node.trips else node.method


def rows_of(
    cache: Cache, node: TrainedConfig, tokenizer: PreTrainedTokenizerBase
) -> datasets.Dataset:
    """The training rows of a node, tokenised: text, with its round trips and teachers' vectors, or
    triplets, or pairs of C-STS."""
    length, trips, reads = node.schedule.max_length, node.trips, registered(node.method).reads
    if reads != "text":
        path = cache.cache_dir / reads / f"{node_key(cache, node)}.arrow"
        path.parent.mkdir(exist_ok=True)

        def add_prompt(side: Sequence[str], conditions: Sequence[str] | None = None) -> list[str]:
            prompt = PROMPT if conditions else getattr(node, "prompt", "")
            if not prompt:
                return list(side)
            return fill_prompt(prompt, side, tokenizer, length, conditions=conditions)

        tokenize: Any = tokenize_csts if reads == "csts" else tokenize_triplets
        rows = cache.data.csts[0] if reads == "csts" else cache.data.triplets
        return tokenize(rows, tokenizer, path, max_length=length, add_prompt=add_prompt)
    return text_rows(
        cache.data.text,
        tokenizer,
        max_length=length,
        cache_dir=cache.cache_dir / "tokenised",
        mode=trips.mode if trips else "none",
        trips=(lambda: cache.round_trip_file(trips)) if trips else None,
        widen=_adding_targets(cache, node),
    )


def _adding_targets(cache: Cache, node: TrainedConfig) -> Widen:
    """Function that adds the teachers' vectors to rows, the column `target`; none without them."""
    teachers = teachers_of(node)
    if not teachers:
        return lambda rows, corpus: rows
    kind = registered(node.method)
    encode = kind.targets([train_node(cache, teacher).encoder for teacher in teachers])
    # the method's `targets` shapes the vectors
    key = "-".join([*(node_key(cache, teacher) for teacher in teachers), code_of(kind)])
    folder = cache.cache_dir / "targets"
    return lambda rows, corpus: with_targets(
        rows, corpus, encode, folder / f"{key}-{corpus.fingerprint}.arrow"
    )


def trips_of(node: MethodConfig) -> list[RoundTrips]:
    """The round trips that a tree reads."""
    trips = [value for _, value, _ in node.walk() if isinstance(value, RoundTrips)]
    return [one for one in trips if one.mode not in ("none", "twice")]


def teachers_of(node: TrainedConfig) -> list[MethodConfig]:
    """The parts of a node that it learns from, rather than starts from."""
    return [part for part in node.parts if part not in node.starts]
