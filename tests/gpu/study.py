"""Every system on one backbone, seed by seed: a row a method, with its test and dev scores and its settings.

    python tests/gpu/study.py --results study.jsonl 1 2 3 [--profile tiny] [--only "JTCSE*" SimCSE] [-p name=value ...]

Rows that are already there are skipped, so an interrupted study goes on. Checkpoints are picked on STS-B dev (the world's
without a data folder); the methods of a seed share towers and batches.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import torch

from cselab import open_lab, stages
from cselab.models import Ensemble, Whitened

PIVOTS = ("fr", "ru", "nl", "zh")
NOISE = [(noise, on) for noise in ("more", "less") for on in ("positives", "negatives")]
KNOBS = {"m": "negative_weight", "pos_ratio": "positive_scale", "τ": "dcl_temperature"}
SWEEPS = {"m": (0.5, 0.8, 1.0, 1.2), "pos_ratio": (0.5, 0.9), "λ": (0.02, 0.5, 1.0), "τ": (1.0, 20.0, 50.0)}
BELLM = [
    ("none", "last_token"), ("last", "last_token"), ("all", "last_token"), ("addition", "last_token"), ("none", "mean"),
    ("last", "mean"), ("all", "mean"), ("addition", "mean"),
]  # fmt: skip


def single(lab, method: str, **overrides):
    return stages.single(lab, method, pivot=stages.view_pivot(lab), **overrides).encoder


def systems() -> Iterator[tuple[str, Callable]]:
    """Name and how a lab gets the encoder, in an order in which later ones find what they need."""
    yield "SIF mean", stages.sif_mean
    yield "untrained (cls)", partial(stages.backbone_encoder, pooling="cls")
    yield "untrained (mean)", partial(stages.backbone_encoder, pooling="mean")
    yield "whitened (cls)", whitened
    yield "SimCSE", lambda lab: single(lab, "simcse")
    for pivot in PIVOTS:
        yield f"SimCSE + {pivot}", lambda lab, pivot=pivot: stages.edfse(lab, (pivot,)).members[0]
    yield "SimCSE, I + II", stages.tower_sum
    yield "EDFSE (4 pivots)", partial(stages.edfse, pivots=PIVOTS)
    yield "TNCSE", lambda lab: stages.joint(lab, "tncse").encoder
    for stream in ("parallel", "last_only", "fused"):
        yield f"JTCSE, {stream}", lambda lab, s=stream: stages.joint(lab, "jtcse", cross_stream=s).encoder
    yield "TNCSE, one tower", lambda lab: single(lab, "tncse_single")
    for name, terms in (("off-dropout", "off_info"), ("SimCSE + DCL", "nce,dcl"), ("ImSimCSE", "off_info,dcl")):
        yield name, lambda lab, t=terms: single(lab, "imsimcse", terms=t)
    alone = {"terms": "dcl:1", "dcl": "paper", "dcl_temperature": 0.05}
    yield "DCL alone", lambda lab: single(lab, "imsimcse", **alone)
    for rows in (0, 128):
        yield (
            f"SimCSE + Barlow, M = {rows}",
            lambda lab, m=rows: single(lab, "simcse", terms="nce,barlow:0.01", artificial_rows=m),
        )
    for noise, on in NOISE:
        yield (
            f"{noise} noise, {on}",
            lambda lab, n=noise, on=on: single(lab, "simcse_noise", noise=n, noise_on=on),
        )
    for knob, values in SWEEPS.items():
        for value in values:
            settings = {"terms": f"off_info,dcl:{value}"} if knob == "λ" else {KNOBS[knob]: value}
            yield f"ImSimCSE, {knob} = {value}", lambda lab, s=settings: single(lab, "imsimcse", **s)
    yield "SimCSE, supervised", lambda lab: stages.supervised(lab, "simcse_supervised").encoder
    yield "JTCSE UC", uc
    teachers = {"EDFSE": partial(stages.edfse, pivots=PIVOTS), "JTCSE": jtcse, "JTCSE UC": uc}
    for name, teacher in teachers.items():
        yield (
            f"{name} D",
            lambda lab, n=name, t=teacher: stages.distilled(lab, t(lab), f"{n.replace(' ', '-')}-d").encoder,
        )
    for how, pooling in BELLM:
        yield (
            f"BeLLM {how}, {pooling}",
            lambda lab, how=how, pooling=pooling: (
                stages.supervised(lab, "bellm", bidirectional=how, decoder_pooling=pooling).encoder
            ),
        )


def whitened(lab):
    sample = [line for line, _ in zip(stages.sentences(lab), range(10_000), strict=False)]
    return Whitened(stages.backbone_encoder(lab).encode, sample)


def jtcse(lab):
    return stages.joint(lab, "jtcse").encoder


def uc(lab) -> Ensemble:
    """A twin and an outsider that learned from triplets."""
    return Ensemble.uc(jtcse(lab), stages.supervised(lab, "simcse_supervised").encoder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seeds", nargs="+", type=int)
    parser.add_argument("--profile", default="small")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--outputs", type=Path, default=Path("outputs"), help="where stages are kept")
    parser.add_argument(
        "--only", nargs="*", default=["*"], help="names of systems, * and ? as in a shell; all by default"
    )
    parser.add_argument("-p", action="append", default=[], help="a setting: name=value")
    given = parser.parse_args()
    settings = {name: _value(value) for name, value in (text.split("=", 1) for text in given.p)}
    for seed in given.seeds:
        lab = open_lab(
            "study", profile=given.profile, seed=seed, outputs=given.outputs, bf16=torch.cuda.is_available(), **settings
        )
        for name, build in systems():
            if (seed, name) in _done(given.results) or not any(fnmatch(name, pattern) for pattern in given.only):
                continue
            started = time.perf_counter()
            encode = build(lab).encode
            report, dev = stages.score(lab, encode), stages.dev_score(lab, encode)
            seconds = round(time.perf_counter() - started)
            row = {"seed": seed, "method": name, "average": report.average, **report.scores, "dev": dev}
            row["seconds"] = seconds
            row |= {"profile": given.profile, "settings": settings}
            with given.results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{seed} {name}: {report.average:.2f} in {seconds} s", flush=True)


def _done(results: Path) -> set[tuple[int, str]]:
    rows = map(json.loads, results.read_text().splitlines()) if results.exists() else ()
    return {(row["seed"], row["method"]) for row in rows}


def _value(text: str):
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


if __name__ == "__main__":
    main()
