"""The ledger: where papers and released code differ, each row with what it does to a loss (data/ledger.yaml)."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pandas
import torch
import yaml

from cselab import stages
from cselab.data.sources import embedded_dir
from cselab.lab import Lab
from cselab.methods import Batch, StepContext, create
from cselab.models import load_tokenizer
from cselab.prompts import put_into
from cselab.settings import Settings

SENTENCES = 64
SIDES = ("paper", "released")


class Row(NamedTuple):
    """One difference. measure: method, term and the settings of both sides, or None where nothing can be measured."""

    what: str
    of: str
    paper: str
    released: str
    here: str
    measure: dict[str, Any] | None = None


class Effect(NamedTuple):
    """A loss (or one term of it) at the start of training, and the length of its gradient in the encoder."""

    loss: float
    gradient: float


def ledger_rows() -> list[Row]:
    """All of them, in the order of the page."""
    return [Row(**row) for row in yaml.safe_load((embedded_dir() / "ledger.yaml").read_text(encoding="utf-8"))]


def settings_of(row: Row, side: str, settings: Settings) -> dict[str, Any]:
    """Overrides that give the paper's or the released wording; a value "×1.3" multiplies the profile's own."""
    given = row.measure[side]
    return {
        key: getattr(settings, key) * float(value[1:]) if str(value).startswith("×") else value
        for key, value in given.items()
    }


def loss_effects(lab: Lab) -> pandas.DataFrame:
    """For each row with a term: the term's value and gradient in both wordings, on one batch of the lab's text.

    Twins start from the lab's two towers (trained if they are not there), other methods from the backbone or decoder;
    the same dropout masks for both sides.
    """
    table = {}
    for row in ledger_rows():
        if row.measure and "term" in row.measure:
            labels = row.measure.get("labels", SIDES)
            sides = [loss_effect(lab, row, side) for side in SIDES]
            table[row.what] = {
                "of": row.of, "term": row.measure["term"], "sides": " / ".join(labels),
                "loss": sides[0].loss, "loss, other": sides[1].loss,
                "gradient": sides[0].gradient, "gradient, other": sides[1].gradient,
            }  # fmt: skip
    return pandas.DataFrame.from_dict(table, orient="index")


def loss_effect(lab: Lab, row: Row, side: str, *, seed: int = 0) -> Effect:
    """One side of one row."""
    name, term = row.measure["method"], row.measure["term"]
    one = lab.with_settings(**settings_of(row, side, lab.settings))
    towers = _towers(lab, name)
    method = create(name, one.settings, towers).to(lab.device).train()
    batch = _batch(lab, one.settings, name, towers[0], views=method.views)
    torch.manual_seed(seed)
    loss = method.losses(batch, StepContext(seed=seed, step=0, coin=True))[term]
    loss.backward()
    squares = [p.grad.square().sum() for p in method.encoder.parameters() if p.grad is not None]
    return Effect(loss.item(), torch.stack(squares).sum().sqrt().item())


def _towers(lab: Lab, method: str) -> list[str]:
    if method in ("tncse", "jtcse"):
        return stages.tower_folders(lab)
    return [stages.backbone(lab, "decoder" if method == "bellm" else "backbone")]


def _batch(lab: Lab, settings: Settings, method: str, tower: str, *, views: int) -> Batch:
    tokenizer = load_tokenizer(tower)
    if views == 3:
        triplets = stages.nli_triplets(lab)[:SENTENCES]
        sides = zip(*((t.anchor, t.entailed, t.contradicted) for t in triplets), strict=True)
        text = [line for side in sides for line in side]
        if method == "bellm":
            text = put_into(settings.prompt, text, tokenizer, settings.supervised_max_length)
    else:
        text = [line for line, _ in zip(stages.sentences(lab), range(SENTENCES), strict=False)] * views
    tokens = tokenizer(
        text, padding=True, truncation=True, max_length=64, return_tensors="pt", return_token_type_ids=False
    )
    return dict(tokens.to(lab.device))


def score_effects(lab: Lab, seeds: range, rows: Mapping[str, Row]) -> pandas.DataFrame:
    """Average test score of each row's two wordings (columns "what: paper", "what: released") by seed; trainings are stages."""
    build = {
        f"{what}: {label}": lambda lab, row=row, side=side: _trained(lab, row, side).encode
        for what, row in rows.items()
        for side, label in zip(SIDES, row.measure.get("labels", SIDES), strict=True)
    }
    return stages.over_seeds(lab, build, seeds)


def _trained(lab: Lab, row: Row, side: str):
    method, overrides = row.measure["method"], settings_of(row, side, lab.settings)
    if method in ("tncse", "jtcse"):
        return stages.joint(lab, method, **overrides).encoder
    if method == "bellm":
        return stages.supervised(lab, method, **overrides).encoder
    pivot = lab.settings.pivot_i if lab.settings.rtt_mode == "pair" else None  # the round trip is the second view
    return stages.single(lab, method, pivot=pivot, **overrides).encoder
