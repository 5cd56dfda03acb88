"""Training a run: its nodes from the leaves up, each once."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import datasets
import torch
from transformers import PreTrainedTokenizerBase

from cselab.data.targets import with_targets
from cselab.errors import SettingsError
from cselab.evaluation import score_data
from cselab.experiments.code import code_of
from cselab.experiments.config import RunConfig
from cselab.experiments.keys import key_inputs, node_key
from cselab.experiments.rehearsal import rehearsed
from cselab.experiments.rows import text_rows, triplet_rows
from cselab.experiments.session import Session
from cselab.experiments.workspace import Workspace
from cselab.methods import MethodConfig, create, registered
from cselab.methods.config import TrainedConfig
from cselab.methods.training_free import Materials
from cselab.models import load, load_tokenizer
from cselab.models.encode import Encoder
from cselab.models.texts import as_sentences
from cselab.training import fit
from cselab.training.distributed import rank_and_world


@dataclass(frozen=True)
class Trained:
    """An encoder, the node it is of, and what its training did; see `train`.

    Attributes:
        encoder: The encoder, in evaluation mode.
        config: The node.
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
        """The encoder's vectors, (n, d).

        Args:
            sentences: n of them.
            **options: As in the encoder's `encode`.
        """
        return self.encoder.encode(as_sentences(sentences), **options)

    @property
    def precision(self) -> str:
        """ "bfloat16" if any node was trained in it, else "float32"."""
        config = self.config
        used = any(place[-1] == "bf16" and config.value_at(place) for place, _ in config.paths())
        return "bfloat16" if used else "float32"


def train(run: RunConfig, session: Session | None = None) -> Trained:
    """Train a run, or find it trained: the nodes that it starts from first.

    Args:
        run: The run, from `configure`.
        session: Whose data has been read already; None: a new one.

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
    if session is None:
        session = Session(Workspace(run.machine), run.data)
    return train_node(session, session.workspace.with_fast_precision(run).method)


def train_node(session: Session, node: MethodConfig) -> Trained:
    """One node of a tree, trained or found.

    Args:
        session: Whose data is read.
        node: A part of a run's tree.
    """
    if not isinstance(node, TrainedConfig):
        return Trained(_untrained(session, node), node)
    folder = _folder(session, node)
    encoder = load(folder / "encoder").to(session.device)
    return Trained(encoder, node, json.loads((folder / "fit.json").read_text()), folder)


def train_nodes(session: Session, nodes: Sequence[MethodConfig]) -> list[Trained]:
    """Several nodes, trained or found, in their order.

    Nodes that another process is training come last: while it trains tower I, this one trains tower
    II.

    Args:
        session: Whose data is read.
        nodes: Parts of a run's tree.
    """
    found = {}
    for place in sorted(range(len(nodes)), key=lambda i: _is_trained_elsewhere(session, nodes[i])):
        found[place] = train_node(session, nodes[place])
    return [found[place] for place in range(len(nodes))]


def _is_trained_elsewhere(session: Session, node: MethodConfig) -> bool:
    if session.rehearsal is not None or not isinstance(node, TrainedConfig):
        return False
    return session.workspace.is_computing(step_name(node), key_inputs(session, node))


def _untrained(session: Session, node: MethodConfig) -> Encoder:
    kind = registered(node.method)
    parts = [part.encoder for part in train_nodes(session, node.parts)]
    if session.rehearsal is not None and kind.fits:  # fitting takes its time
        kind.check(node, parts, len(session.text_of(node)))
        return parts[0] if parts else _backbone(session, node)

    def text(count: int | None) -> list[str]:
        return list(islice(session.text_of(node), count))

    materials = Materials(parts, text, session.model_folder, session.device)
    return kind.encoder(node, materials)


def _backbone(session: Session, node: MethodConfig) -> Encoder:
    untrained = registered("untrained")
    return _untrained(session, untrained.Config(backbone=node.pretrained_model))


def _folder(session: Session, node: TrainedConfig) -> Path:
    """The finished step of a trained node: encoder and history."""
    starts = start_folders(session, node)
    name, schedule = step_name(node), node.schedule
    if session.rehearsal is not None:
        method = create(node, folders=starts)
        return rehearsed(session, name, method, starts, _teacher(session, node))

    def compute(folder: Path) -> None:
        torch.manual_seed(node.seed)  # of what the method draws: a head's weights, LoRA's
        method = create(node, folders=starts)
        result = fit(
            method,
            rows_of(session, node, load_tokenizer(starts[0])),
            schedule,
            dev=lambda method: dev_score(session, method.encoder),
            seed=node.seed,
            device=session.device,
            name=name,
            checkpoints=folder / "checkpoints",
            logs=session.workspace.run_dir / "training" / name,
            listener=session.workspace.listener,
        )
        if rank_and_world()[0] == 0:
            method.encoder.save_pretrained(folder / "encoder")
            (folder / "fit.json").write_text(json.dumps(result.as_dict(), indent=1))

    return session.workspace.step(name, key_inputs(session, node), compute, resumable=True)


def start_folders(session: Session, node: TrainedConfig) -> list[str]:
    """The folders that a method is built from: its towers, trained or found, or its model.

    Args:
        session: Whose models are read.
        node: The method's.

    Raises:
        SettingsError: For a tower that is not trained.
    """
    towers = getattr(node, "towers", ())
    if alone := [tower.method for tower in towers if not isinstance(tower, TrainedConfig)]:
        raise SettingsError(f"towers: {alone[0]!r} is not trained; give a method with one tower")
    if not towers:
        return [str(session.model_folder(node.pretrained_model))]
    folders = []
    for tower in train_nodes(session, towers):
        assert tower.folder is not None  # all of them are trained
        folders.append(str(tower.folder / "encoder"))
    return folders


def step_name(node: TrainedConfig) -> str:
    """The method's name and, where there is one, the pivot of its round trips."""
    trips = getattr(node, "round_trips", None)
    return f"{node.method}-{trips.pivot}" if trips else node.method


def dev_score(session: Session, encoder: Encoder) -> float:
    """Spearman x100 on the dev pairs: what may choose between checkpoints and between settings."""
    return score_data(encoder.encode, [session.dev_pairs], resamples=0).average


def rows_of(
    session: Session, node: TrainedConfig, tokenizer: PreTrainedTokenizerBase
) -> datasets.Dataset:
    """The training rows of a node: what its method reads.

    Args:
        session: Whose text or triplets are read.
        node: Configuration of the method.
        tokenizer: The model's.
    """
    length, cache_dir = node.schedule.max_length, session.workspace.cache_dir
    if registered(node.method).reads == "triplets":
        return triplet_rows(
            session.triplets,
            tokenizer,
            max_length=length,
            path=cache_dir / "triplets" / f"{node_key(session, node)}.arrow",
            prompt=getattr(node, "prompt", ""),
        )
    teach_rows, trips = teach(session, node), getattr(node, "round_trips", None)
    return text_rows(
        session.text,
        tokenizer,
        max_length=length,
        cache_dir=cache_dir / "tokenised",
        mode=trips.mode if trips else "none",
        trips=trips and (lambda: session.round_trip_file(trips)),
        widen=teach_rows or (lambda rows, corpus: rows),
    )


def _teachers(node: TrainedConfig) -> list[MethodConfig]:
    towers = getattr(node, "towers", ())
    return [part for part in node.parts if part not in towers]


def _teacher(session: Session, node: TrainedConfig) -> Callable | None:
    """What gives sentences their teachers' vectors; None without a teacher."""
    encoders = [teacher.encoder for teacher in train_nodes(session, _teachers(node))]
    return registered(node.method).targets(encoders) if encoders else None


def teach(session: Session, node: TrainedConfig) -> Callable | None:
    """What gives training rows their teachers' vectors, the column `target`.

    Args:
        session: Whose encoders teach.
        node: Configuration of the student.

    Returns:
        A function of rows and their corpus that returns wider rows; None without teachers.
    """
    teachers, encode = _teachers(node), _teacher(session, node)
    if encode is None:
        return None
    parts = [node_key(session, teacher) for teacher in teachers]
    key = "-".join([*parts, code_of(registered(node.method))])  # its `targets` shapes the vectors
    folder = session.workspace.cache_dir / "targets"

    def widen(rows, corpus):
        return with_targets(rows, corpus, encode, folder / f"{key}-{corpus.fingerprint}.arrow")

    return widen
