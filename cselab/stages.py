"""The workbook's expensive steps, each computed once and shared: text, round trips, towers, twins, scores.

Notebooks call these with their lab. What a step depends on is its key, so notebook 03 run first trains the towers that
notebook 02 shows, and run second finds them.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas
import torch

from cselab.data.corpus import Corpus, load_corpus, tokenize_corpus
from cselab.data.round_trip import RoundTrip
from cselab.data.sources import data_folder, embedded_dir, hub_allowed, read_lines
from cselab.data.sts import STS7, load_sts
from cselab.errors import SettingsError, suggest
from cselab.evaluation import StsReport, alignment, evaluate_sts, uniformity
from cselab.lab import Lab
from cselab.methods import Method, create
from cselab.models import SentenceEncoder, TwinEncoder, load_backbone, load_tokenizer
from cselab.pretraining.sif import SifMean
from cselab.pretraining.text import Rows
from cselab.settings import Schedule
from cselab.training import fit

Encode = Callable[[list[str]], torch.Tensor]


class Trained(NamedTuple):
    """A trained encoder and what its training did (`FitResult` as a dict)."""

    encoder: SentenceEncoder | TwinEncoder
    fit: dict[str, Any]


# ---------------------------------------------------------------------------------------------------- data


def real_data(lab: Lab) -> bool:
    """Whether there is a data folder, or the profile may ask the hub."""
    return data_folder(lab.settings.data_dir) is not None or lab.settings.hub


def test_tasks(lab: Lab) -> tuple[str, ...]:
    """The tasks that scores are reported on."""
    return lab.settings.tasks or (STS7 if real_data(lab) else ("World",))


def dev_task(lab: Lab) -> str:
    """The task whose dev split picks checkpoints; never a test."""
    return lab.settings.dev_task or ("STSBenchmark" if real_data(lab) else "World")


def sentences(lab: Lab) -> Corpus:
    """The unlabelled training text. The sample does not depend on the seed, so that seeds are paired."""
    s = lab.settings
    return load_corpus(s.corpus or None, folder=s.data_dir, hub=s.hub, limit=s.sentences)


def round_trip_file(lab: Lab, pivot: str) -> Path:
    """One round trip a line, in the order of `sentences(lab)`."""
    text = sentences(lab)

    def compute(folder: Path) -> None:
        with (folder / "round-trips.txt").open("w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in RoundTrip(pivot)(text))

    return lab.stage("round-trip", {"pivot": pivot, "text": text.fingerprint}, compute) / "round-trips.txt"


def round_trips(lab: Lab, pivot: str) -> list[str]:
    """The lab's sentences, each after its round trip through `pivot`."""
    return list(read_lines(round_trip_file(lab, pivot)))


def training_rows(lab: Lab, tokenizer, pivot: str | None, max_length: int):
    """Tokenised training rows: the text alone (pivot None), or with its round trip as `settings.rtt_mode` says."""
    options = {"max_length": max_length, "cache_dir": lab.cache_dir / "tokenised"}
    rows = tokenize_corpus(sentences(lab), tokenizer, **options)
    if pivot is None:
        return rows
    trips = tokenize_corpus(load_corpus([str(round_trip_file(lab, pivot))]), tokenizer, **options)
    return combine(rows, trips, lab.settings.rtt_mode)


def combine(rows, trips, mode: Literal["append", "replace", "pair"]):
    """`append`: both are sentences; `replace`: only the round trips; `pair`: the round trip is the second view."""
    import datasets

    if mode == "append":
        return datasets.concatenate_datasets([rows, trips])
    if mode == "replace":
        return trips
    second = trips.select_columns(["input_ids"]).rename_column("input_ids", "input_ids_b")
    return datasets.concatenate_datasets([rows, second], axis=1)


# --------------------------------------------------------------------------------------------------- models


def backbone(lab: Lab) -> str:
    """Folder or hub name of the backbone: a shipped one by its name, a folder, or, where the profile may ask it, the hub.

    Raises SettingsError, with the shipped names, for anything else.
    """
    name = lab.settings.backbone
    shipped = {path.name: path for path in sorted((embedded_dir() / "backbones").iterdir()) if path.is_dir()}
    if name in shipped:
        return str(shipped[name])
    if (folder := Path(name).expanduser()).is_dir():
        return str(folder)
    if hub_allowed(lab.settings.hub):
        return name
    raise SettingsError(
        f"backbone: no {name!r} here; {suggest(name, shipped)}; or give a folder, or set hub=True to fetch it from the hub"
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


def dev_score(lab: Lab) -> Callable[[Method], float]:
    """Spearman x100 on the dev split, for `fit`."""
    return lambda method: (
        evaluate_sts(
            method.encoder.encode, (dev_task(lab),), split="dev", folder=lab.settings.data_dir, hub=lab.settings.hub
        ).average
    )


def _train(lab: Lab, stage: str, name: str, towers: list[str], schedule: Schedule, rows, seed: int, **inputs) -> Path:
    """One stage of training: build the method from `towers`, fit it, keep encoder and history."""
    s = lab.settings
    depends = {"seed", "dropout", "pooling", "head", "temperature", "terms", "released_rows", "caels", "cross_stream"}
    inputs |= {
        "method": name,
        "towers": [str(tower) for tower in towers],
        "schedule": schedule.as_dict(),
        "dev": dev_task(lab),
        **s.model_dump(mode="json", include=depends),
    }

    def compute(folder: Path) -> None:
        method = create(name, s, towers)
        result = fit(
            method, rows(), schedule, dev=dev_score(lab), seed=seed, device=lab.device, name=stage,
            checkpoints=folder / "checkpoints", logs=lab.run_dir / "training" / stage,
        )  # fmt: skip
        method.encoder.save_pretrained(folder / "encoder")
        (folder / "fit.json").write_text(json.dumps(result.as_dict(), indent=1))

    return lab.stage(stage, inputs, compute, resumable=True)


def _tower_folder(lab: Lab, which: Literal["i", "ii"]) -> Path:
    s = lab.settings
    pivot = s.pivot_i if which == "i" else s.pivot_ii
    base = backbone(lab)
    schedule = s.stage1(which)
    return _train(
        lab, f"simcse-{which}", "simcse", [base], schedule,
        lambda: training_rows(lab, load_tokenizer(base), pivot, schedule.max_length),
        seed=2 * s.seed + (which == "ii"),  # the towers of one seed never share batches or dropout masks
        text=sentences(lab).fingerprint, pivot=pivot, rtt_mode=s.rtt_mode,
    )  # fmt: skip


def tower(lab: Lab, which: Literal["i", "ii"]) -> Trained:
    """Stage 1: one tower by SimCSE on the text and its round trip through this tower's pivot."""
    folder = _tower_folder(lab, which)
    encoder = SentenceEncoder.from_pretrained(folder / "encoder").to(lab.device).eval()
    return Trained(encoder, json.loads((folder / "fit.json").read_text()))


def tower_sum(lab: Lab) -> TwinEncoder:
    """The two towers of stage 1 as a twin that nobody trained jointly: the fair ensemble."""
    one, two = tower(lab, "i").encoder, tower(lab, "ii").encoder
    return TwinEncoder(one.backbone, two.backbone, tokenizer=one.tokenizer).to(lab.device).eval()


def joint(lab: Lab, method: str, **overrides: Any) -> Trained:
    """Stage 2: `method` ("tncse", "jtcse") from the two towers; `overrides` are settings, e.g. `caels=1`."""
    lab = lab.with_settings(**overrides) if overrides else lab
    s = lab.settings
    towers = [str(_tower_folder(lab, which) / "encoder") for which in ("i", "ii")]
    schedule = s.stage2()
    folder = _train(
        lab, method, method, towers, schedule,
        lambda: training_rows(lab, load_tokenizer(towers[0]), None, schedule.max_length),
        seed=s.seed, text=sentences(lab).fingerprint,
    )  # fmt: skip
    encoder = TwinEncoder.from_pretrained(folder / "encoder").to(lab.device).eval()
    return Trained(encoder, json.loads((folder / "fit.json").read_text()))


# --------------------------------------------------------------------------------------------------- scores


def score(lab: Lab, encode: Encode) -> StsReport:
    """Scores of `encode` on the lab's test tasks."""
    return evaluate_sts(encode, test_tasks(lab), folder=lab.settings.data_dir, hub=lab.settings.hub)


def evaluate(lab: Lab, method: str, encode: Encode) -> StsReport:
    """The same, recorded as rows of the run under the name `method`."""
    report = score(lab, encode)
    lab.record({"method": method, **row} for row in report.to_rows())
    return report


def comparison(reports: Mapping[str, StsReport]) -> pandas.DataFrame:
    """Methods by tasks: score and 95 % bootstrap interval over pairs."""
    table = {
        name: {task: f"{s.spearman:.1f}  [{s.low:.1f}, {s.high:.1f}]" for task, s in report.tasks.items()}
        | ({"average": f"{report.average:.1f}"} if len(report.tasks) > 1 else {})
        for name, report in reports.items()
    }
    return pandas.DataFrame.from_dict(table, orient="index")


def phenomena(encode: Encode, report: StsReport | None = None) -> Mapping[str, float]:
    """Spearman x100 within each phenomenon of the world's test pairs, for any encoder; read off `report` if it has them."""
    if report is None or "World" not in report.tasks:
        report = evaluate_sts(encode, ("World",))
    return report.tasks["World"].by_subset


def pair_cosines(lab: Lab, encode: Encode) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and gold ratings of the dev pairs."""
    pairs = load_sts(dev_task(lab), "dev", folder=lab.settings.data_dir, hub=lab.settings.hub)
    a, b = encode(pairs.sentences1), encode(pairs.sentences2)
    return torch.cosine_similarity(a, b), torch.as_tensor(pairs.scores)


def geometry(lab: Lab, encode: Encode) -> tuple[float, float]:
    """(uniformity, alignment) on the dev split: alignment over pairs rated above 4, uniformity over all its sentences."""
    pairs = load_sts(dev_task(lab), "dev", folder=lab.settings.data_dir, hub=lab.settings.hub)
    a, b = encode(pairs.sentences1), encode(pairs.sentences2)
    close = torch.as_tensor(pairs.scores) > 4
    return uniformity(torch.cat([a, b])).item(), alignment(a[close], b[close]).item()
