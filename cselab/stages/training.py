"""Training: backbones, towers, twins, ensembles and their students, each a stage that is trained once."""

import hashlib
import json
import tempfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from cselab.data.corpus import tokenize_corpus
from cselab.data.hub import hub_model
from cselab.data.nli import tokenize_triplets
from cselab.data.sources import embedded_dir
from cselab.data.targets import with_targets
from cselab.errors import DataError, SettingsError, suggest
from cselab.evaluation import score_data
from cselab.hashing import folder_hash, weights_hash
from cselab.lab import Lab
from cselab.methods import Method, create, own_code, registered
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder, load_backbone, load_tokenizer, longest_input
from cselab.models.folder import CARD, write_card
from cselab.pretraining.sif import SifMean
from cselab.pretraining.text import Rows
from cselab.settings import Schedule, Settings
from cselab.stages.text import (
    dev_pairs,
    dev_task,
    nli_triplets,
    sentences,
    training_rows,
    translator_of,
    view_pivot,
)
from cselab.training import fit
from cselab.training.distributed import rank_and_world

Encode = Callable[[list[str]], torch.Tensor]

OF_TERMS = (
    "terms", "augment", "knobs", "negative_weight", "positive_scale", "dcl", "dcl_temperature", "artificial_rows", "noise", "noise_on",
    "noise_std", "noise_passes",
)  # fmt: skip
OF_DECODERS = ("bidirectional", "decoder_pooling", "prompt", "lora_rank", "lora_alpha", "lora_dropout")
OF_TWINS = ("caels", "cross_stream", "stage2_dropout", "layer_norms_removed", "modulus_on")
OF_ALL = ("seed", "dropout", "pooling", "pooler", "head", "temperature", "released_rows")
"""Settings that a training depends on."""


NOT_OF_TOWERS = (*OF_TERMS, "released_rows")
"""Of stage 2 alone: its ablations find the towers they have. The authors' code of stage 1 is not released."""


class Trained(NamedTuple):
    """A trained encoder and what its training did (`FitResult` as a dict)."""

    encoder: SentenceEncoder | TwinEncoder
    fit: dict[str, Any]


def backbone(lab: Lab, key: Literal["backbone", "decoder"] = "backbone") -> str:
    """Local folder of the backbone or decoder: a shipped one by its name, a folder, or, with `hub`, what the hub has of it.

    Raises SettingsError, with the shipped names, for anything else, and DataError for what the hub does not have.
    """
    name = getattr(lab.settings, key)
    shipped = {path.name: path for path in sorted((embedded_dir() / "backbones").iterdir()) if path.is_dir()}
    if name in shipped:
        return str(shipped[name])
    if (folder := Path(name).expanduser()).is_dir():
        return str(folder)
    if lab.settings.hub:
        return str(hub_model(name))
    raise SettingsError(
        f"{key}: no {name!r} here; {suggest(name, shipped)}; or give a folder, or set hub=True to fetch it from the hub"
    )


def backbone_encoder(lab: Lab, pooling: str | None = None) -> SentenceEncoder:
    """The untrained backbone as a sentence encoder, on the lab's device."""
    path = backbone(lab)
    encoder = SentenceEncoder(load_backbone(path), load_tokenizer(path), pooling=pooling or lab.settings.pooling)
    return encoder.to(lab.device).eval()


def sif_mean(lab: Lab) -> SifMean:
    """What counting the lab's sentences alone can do, in the backbone's vocabulary and width: the floor of every table."""
    one = backbone_encoder(lab)
    rows = Rows.tokenize(sentences(lab), one.tokenizer, max_length=lab.settings.stage1_max_length)
    return SifMean.fit(rows, one.tokenizer, size=one.backbone.config.hidden_size)


def dev_score(lab: Lab, encode: Encode) -> float:
    """Spearman x100 on the dev pairs: what may choose between checkpoints and between settings."""
    return score_data(encode, [dev_pairs(lab)], resamples=0).average


def _train(
    lab: Lab, stage: str, method: str, towers: list[str], schedule: Schedule, rows: Callable, seed: int, **inputs: Any
) -> Path:
    """One stage of training: build `method` from `towers`, fit it, keep encoder and history."""
    s = lab.settings
    if lab.rehearsal is not None:
        return _rehearsed(lab, stage, create(method, s, towers), towers, schedule)
    inputs |= {
        "method": method,
        "code": own_code(method),
        "towers": [folder_hash(tower) for tower in towers],
        "schedule": schedule.as_dict(),
        "dev": [dev_task(lab), s.dev_pairs],
        **s.model_dump(mode="json", include={*OF_ALL, *OF_TERMS, *OF_TWINS, *OF_DECODERS}),
    }

    def compute(folder: Path) -> None:
        torch.manual_seed(seed)  # of what the method draws: a head's weights, LoRA's
        trained = create(method, s, towers)
        result = fit(
            trained, rows(), schedule, dev=lambda method: dev_score(lab, method.encoder.encode), seed=seed, device=lab.device, name=stage,
            checkpoints=folder / "checkpoints", logs=lab.run_dir / "training" / stage,
        )  # fmt: skip
        if rank_and_world()[0] == 0:
            trained.encoder.save_pretrained(folder / "encoder")
            (folder / "fit.json").write_text(json.dumps(result.as_dict(), indent=1))

    return lab.stage(stage, inputs, compute, resumable=True)


def _rehearsed(lab: Lab, stage: str, method: Method, towers: list[str], schedule: Schedule) -> Path:
    """What `_train` would leave, of the weights it would start from, so that all that follows can be built before any training.

    Raises DataError for less text than a batch, SettingsError for more tokens than the backbone reads;
    building `method` has raised whatever else is wrong with it.
    """
    found = len(nli_triplets(lab) if method.views == 3 else sentences(lab))
    if found < schedule.batch_size:
        what = "triplets are" if method.views == 3 else "sentences are"
        raise DataError(f"{found} {what} fewer than one batch of {schedule.batch_size}; give more, or a smaller batch")
    if schedule.max_length > (longest := longest_input(method.encoder.backbones[0])):
        raise SettingsError(f"max_length={schedule.max_length}: the backbone reads at most {longest} tokens; give less")
    folder = Path(tempfile.mkdtemp(dir=lab.rehearsal, prefix=f"{stage}-"))
    encoder, target = method.encoder, folder / "encoder"
    (folder / "fit.json").write_text("{}")
    if lab.settings.pooler == "fresh":  # is in no file yet
        encoder.save_pretrained(target)
        return folder
    target.mkdir()
    if isinstance(encoder, TwinEncoder):
        for name, tower in zip(("tower_i", "tower_ii"), towers, strict=True):
            (target / name).symlink_to(Path(tower).resolve(), target_is_directory=True)
        write_card(target, "twin", cael=encoder.cael, cross_stream=encoder.cross_stream)
    else:
        for path in Path(towers[0]).iterdir():
            if path.name != CARD:
                (target / path.name).symlink_to(path.resolve())
        write_card(target, "sentence", pooling=encoder.pooling, prompt=encoder.prompt)
    return folder


def _opened(lab: Lab, folder: Path, kind: type[SentenceEncoder] | type[TwinEncoder]) -> Trained:
    encoder = kind.from_pretrained(folder / "encoder").to(lab.device).eval()
    return Trained(encoder, json.loads((folder / "fit.json").read_text()))


def _single(lab: Lab, stage: str, method: str, pivot: str | None, schedule: Schedule, seed: int) -> Path:
    """A single-tower method from the backbone; settings of twins do not matter to it, so they are not in its key."""
    lab = lab.with_settings(**dict.fromkeys((*OF_TWINS, *OF_DECODERS)))
    s, base = lab.settings, backbone(lab)
    return _train(
        lab, stage, method, [base], schedule,
        lambda: training_rows(lab, load_tokenizer(base), pivot, schedule.max_length),
        seed=seed, text=sentences(lab).fingerprint, pivot=pivot, rtt_mode=s.rtt_mode,
        translator=pivot and translator_of(lab, pivot).fingerprint,
    )  # fmt: skip


def _of_tower(s: Settings, which: Literal["i", "ii"]) -> tuple[str, Schedule, int]:
    """A tower's pivot, schedule and seed: the towers of one seed never share batches or dropout masks."""
    return (s.pivot_i if which == "i" else s.pivot_ii), s.stage1(which), 2 * s.seed + (which == "ii")


def _tower(lab: Lab, which: Literal["i", "ii"], method: str = "simcse") -> Path:
    plain = lab.with_settings(**dict.fromkeys(NOT_OF_TOWERS)) if method == "simcse" else lab
    return _single(plain, f"{method}-{which}", method, *_of_tower(lab.settings, which))


def tower(lab: Lab, which: Literal["i", "ii"]) -> Trained:
    """Stage 1: one tower by SimCSE on the text and its round trip through this tower's pivot."""
    return _opened(lab, _tower(lab, which), SentenceEncoder)


def tower_sum(lab: Lab, method: str = "simcse") -> TwinEncoder:
    """Two towers of a single-tower method, each with its round trip, as a twin that nobody trained jointly: the fair ensemble."""
    return _added(*(_opened(lab, _tower(lab, which, method), SentenceEncoder).encoder for which in ("i", "ii")))


def _added(one: SentenceEncoder, two: SentenceEncoder) -> TwinEncoder:
    return TwinEncoder(one.backbone, two.backbone, tokenizer=one.tokenizer).eval()


def tower_folders(lab: Lab) -> list[str]:
    """The encoders of stage 1, as folders."""
    return [str(_tower(lab, which) / "encoder") for which in ("i", "ii")]


def joint(lab: Lab, method: str, **overrides: Any) -> Trained:
    """Stage 2: `method` ("tncse", "jtcse") from the two towers; `overrides` are settings, e.g. `caels=1`."""
    registered(method)  # an unknown name is found before the towers are trained
    lab = lab.with_settings(**{**dict.fromkeys(OF_DECODERS), **overrides})
    s = lab.settings
    towers, schedule = tower_folders(lab), s.stage2()
    if "stage2_rate" in s.released_rows:
        schedule = replace(schedule, learning_rate=schedule.learning_rate * registered(method).released_rate)
    folder = _train(
        lab, method, method, towers, schedule,
        lambda: training_rows(lab, load_tokenizer(towers[0]), None, schedule.max_length),
        seed=s.seed, text=sentences(lab).fingerprint,
    )  # fmt: skip
    return _opened(lab, folder, TwinEncoder)


def single(lab: Lab, method: str, *, pivot: str | None = None, **overrides: Any) -> Trained:
    """A single-tower method ("simcse", "imsimcse", "tncse_single") from the backbone, with the schedule `settings.single`.

    pivot: the round trips that join the text as `settings.rtt_mode` says; None is the text alone, as SimCSE and ImSimCSE have it.
    overrides: settings, e.g. `terms="nce,dcl:0.5"`.
    """
    lab = lab.with_settings(**overrides) if overrides else lab
    folder = _single(lab, method, method, pivot, lab.settings.single(), lab.settings.seed)
    return _opened(lab, folder, SentenceEncoder)


def supervised(lab: Lab, method: Literal["simcse_supervised", "angle", "bellm"], **overrides: Any) -> Trained:
    """A method that learns from triplets, from the backbone or, BeLLM, from the decoder; `overrides` are settings."""
    lab = lab.with_settings(**{**dict.fromkeys(OF_TWINS), **overrides})
    if method != "bellm":
        lab = lab.with_settings(**{**dict.fromkeys(OF_DECODERS), "prompt": ""})
    s, schedule, found = lab.settings, lab.settings.supervised(method), nli_triplets(lab)
    base = backbone(lab, "decoder" if method == "bellm" else "backbone")

    def rows():
        folder = lab.cache_dir / "triplets"
        folder.mkdir(exist_ok=True)
        options = {"max_length": schedule.max_length, "prompt": s.prompt}
        return tokenize_triplets(found, load_tokenizer(base), folder / f"{method}.arrow", **options)

    text = hashlib.sha256(repr(found).encode()).hexdigest()[:16]
    folder = _train(lab, method, method, [base], schedule, rows, seed=s.seed, text=text)
    return _opened(lab, folder, SentenceEncoder)


def edfse(lab: Lab, pivots: Sequence[str]) -> Ensemble:
    """EDFSE: the sum of SimCSE towers, each on the text and its round trip through another pivot. The lab's own two pivots give the
    towers of stage 1, so that an ensemble of four and a twin of its first two share them."""
    s = lab.settings
    plain = lab.with_settings(**dict.fromkeys(NOT_OF_TOWERS))
    own = {s.pivot_i: "i", s.pivot_ii: "ii"}
    folders = [
        _tower(lab, own[pivot])
        if pivot in own
        else _single(plain, f"simcse-{pivot}", "simcse", pivot, s.stage1("i"), zlib.crc32(f"{pivot} {s.seed}".encode()))
        for pivot in pivots
    ]
    return Ensemble([_opened(lab, folder, SentenceEncoder).encoder for folder in folders])


def distilled(lab: Lab, teacher: SentenceEncoder | TwinEncoder | Ensemble, name: str) -> Trained:
    """`D`: a fresh tower that learns the teacher's vectors of the text. name: of the stage, such as "jtcse-d"."""
    lab = lab.with_settings(**dict.fromkeys((*OF_TERMS, *OF_TWINS, *OF_DECODERS)))
    s, base, text, key = lab.settings, backbone(lab), sentences(lab), _fingerprint(teacher)
    schedule = s.distillation()

    def rows():
        tokens = tokenize_corpus(
            text, load_tokenizer(base), max_length=schedule.max_length, cache_dir=lab.cache_dir / "tokenised"
        )
        return with_targets(tokens, text, teacher.encode, lab.cache_dir / "targets" / f"{key}-{text.fingerprint}.arrow")

    folder = _train(
        lab, name, "distillation", [base], schedule, rows, seed=s.seed, text=text.fingerprint, teacher=key
    )  # fmt: skip
    return _opened(lab, folder, SentenceEncoder)


def ranked(lab: Lab, teachers: Sequence[SentenceEncoder], which: Literal["i", "ii"] | None = None) -> Trained:
    """RankCSE: a fresh tower that learns the mean of the teachers' orders of neighbours, with the schedule `settings.single`;
    `which`: as that tower, from its round trips and with its schedule."""
    lab = lab.with_settings(**dict.fromkeys((*OF_TWINS, *OF_DECODERS)))
    s, base, text = lab.settings, backbone(lab), sentences(lab)
    pivot, schedule, seed = _of_tower(s, which) if which else (view_pivot(lab), s.single(), s.seed)
    key = "-".join(_fingerprint(teacher) for teacher in teachers)

    def directions(some: list[str]) -> torch.Tensor:
        return torch.cat([torch.nn.functional.normalize(teacher.encode(some), dim=1) for teacher in teachers], dim=1)

    def aimed(tokens, corpus):
        return with_targets(tokens, corpus, directions, lab.cache_dir / "targets" / f"{key}-{corpus.fingerprint}.arrow")

    folder = _train(
        lab, f"rankcse-{which}" if which else "rankcse", "rankcse", [base], schedule,
        lambda: training_rows(lab, load_tokenizer(base), pivot, s.stage1_max_length, aimed),
        seed=seed, text=text.fingerprint, teacher=key, pivot=pivot,
        rtt_mode=s.rtt_mode, translator=pivot and translator_of(lab, pivot).fingerprint,
    )  # fmt: skip
    return _opened(lab, folder, SentenceEncoder)


def ranked_sum(lab: Lab, teachers: Sequence[SentenceEncoder]) -> TwinEncoder:
    """Two towers of RankCSE with the same teachers, as `tower_sum` has the other methods'."""
    return _added(*(ranked(lab, teachers, which).encoder for which in ("i", "ii")))


def _fingerprint(encoder: SentenceEncoder | TwinEncoder | Ensemble) -> str:
    """Of all that decides a teacher's vectors: weights, architecture, tokenizer, pooling, prompt, cross-attention, and how an
    ensemble's members, which may be ensembles, are summed."""
    if isinstance(encoder, Ensemble):
        parts = [encoder.weights, [_fingerprint(member) for member in encoder.members]]
    else:
        configs = [model.config.to_dict() for model in encoder.backbones]
        for config in configs:
            config.pop("_name_or_path", None)  # a place, not a content
        tokenizer = encoder.tokenizer and encoder.tokenizer.backend_tokenizer.to_str()
        read = [getattr(encoder, name, None) for name in ("pooling", "prompt", "cael", "cross_stream")]
        parts = [type(encoder).__name__, configs, tokenizer, read, weights_hash(*encoder.backbones)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]
