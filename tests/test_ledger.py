"""The ledger: every row is whole, its switches are real settings, and what it says about the loss is so."""

import re

import pandas
import pytest
import torch

import cselab
from cselab import ledger, stages
from cselab.lab import project_path
from cselab.methods import registered
from cselab.models import SentenceEncoder, load_decoder
from cselab.settings import LEDGER_ROWS, Settings

ROWS = ledger.ledger_rows()
MEASURED = [row for row in ROWS if row.measure]


def by_name(what):
    return next(row for row in ROWS if row.what == what)


def test_every_row_says_all_of_it():
    assert len(ROWS) >= 30
    assert len({row.what for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert all(isinstance(cell, str) and cell for cell in row[:5]), row.what


def test_the_committed_page_has_the_rows_of_the_file():
    """Prevents a row that is corrected in the file and stays wrong on the page."""
    committed = (project_path("outputs/reference") / "LEDGER.md").read_text(encoding="utf-8")

    def texts(page):
        lines = [line for line in page.splitlines() if line.startswith("| ")]
        return [re.split(r"(?<!\\)\|", line)[1:6] for line in lines]

    assert texts(committed) == texts(ledger.page(pandas.DataFrame()))


def test_every_switch_is_a_row():
    """Prevents a switch of `released_rows` that the page does not tell of."""
    switched = {row.measure["released"].get("released_rows") for row in MEASURED}
    assert switched - {None} == LEDGER_ROWS


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.what)
def test_the_sides_of_a_row_are_settings_that_differ(row):
    """Prevents a row that measures the default against itself."""
    one, other = (Settings.of("tiny", **row.measure[side]) for side in ledger.SIDES)
    assert one != other
    assert set(row.measure) <= {"method", "term", "paper", "released", "labels"}


def test_a_row_sets_what_nobody_has_set():
    """Prevents a row of the ledger from overriding what was asked for."""
    for profile in ("tiny", "paper"):
        released = Settings.of(profile, released_rows="all")
        assert (released.negative_weight, released.lora_rank) == (1.0, 64)
    assert Settings.of("tiny", released_rows="all", lora_rank=4).lora_rank == 4


def test_a_released_dropout_belongs_to_its_repository(lab):
    """Prevents TNCSE's dropout in JTCSE, and one that overrides what was asked for."""
    tower = stages.backbone(lab)
    released = Settings.of("tiny", released_rows="all")
    tncse, jtcse = registered("tncse"), registered("jtcse")
    assert tncse.dropout(Settings.of("tiny"), tower) == 0.1
    assert (tncse.dropout(released, tower), jtcse.dropout(released, tower)) == (0.00025, 0.1)
    asked = Settings.of("tiny", released_rows="all", stage2_dropout=0.2)
    assert (tncse.dropout(asked, tower), jtcse.dropout(asked, tower)) == (0.2, 0.2)


@pytest.mark.parametrize(("method", "factor"), [("tncse", 1.0), ("jtcse", 1.3)])
def test_a_released_rate_belongs_to_its_repository(lab, monkeypatch, method, factor):
    """Prevents JTCSE's rate in TNCSE, and a rate of BERT-base for a small backbone."""
    train, rates = stages.training._train, []

    def recorded_train(lab, stage, name, towers, schedule, *rest, **options):
        if name == method:
            rates.append(schedule.learning_rate)
            raise InterruptedError
        return train(lab, stage, name, towers, schedule, *rest, **options)

    monkeypatch.setattr(stages.training, "_train", recorded_train)
    for rows in ("", "stage2_rate"):
        with pytest.raises(InterruptedError):
            stages.joint(lab, method, released_rows=rows)
    assert rates[1] == pytest.approx(factor * rates[0])


@pytest.fixture(scope="module")
def lab(tmp_path_factory, make_bert, word_tokenizer):
    folder = tmp_path_factory.mktemp("ledger")
    SentenceEncoder(make_bert(1), word_tokenizer).save_pretrained(folder / "bert")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cselab.stages.training.dev_score", lambda lab, encode: 0.0)
        for variable in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS", "CSELAB_DATA"):
            patch.delenv(variable, raising=False)
        yield cselab.open_lab(
            "ledger", outputs=folder, backbone=str(folder / "bert"), sentences=200, caels=2, stage1_steps=2,
            stage1_batch_size=8, stage1_eval_every=2, triplets=64, device="cpu",
        )  # fmt: skip


@pytest.mark.parametrize("row", [row for row in MEASURED if "term" in row.measure], ids=lambda row: row.what)
def test_a_row_changes_the_loss_unless_it_says_that_it_does_not(lab, row):
    """Prevents a wording that is named but not computed.

    Only the last layer's mask, with padding masked, changes nothing.
    """
    one, other = (ledger.loss_effect(lab, row, side) for side in ledger.SIDES)
    same = one.loss == pytest.approx(other.loss, rel=1e-5) and one.gradient == pytest.approx(other.gradient, rel=1e-4)
    assert same == (row.what == "the last layer's mask under last-token pooling")


def test_unmasked_padding_tells_last_from_none(lab, monkeypatch):
    """billm opens the padding together with the last layer; only then the last token changes."""
    folder = stages.backbone(lab, "decoder")
    texts = ["A man is playing a guitar in the old town.", "Two dogs run."]

    def last_tokens(how):
        encoder = SentenceEncoder(*load_decoder(folder, bidirectional=how), pooling="last_token")
        return encoder.encode(texts)

    none = last_tokens("none")
    torch.testing.assert_close(last_tokens("last"), none, rtol=0, atol=0)

    def zeros(config, states, padding):
        return states.new_zeros(len(states), 1, states.shape[1], states.shape[1])

    monkeypatch.setattr("cselab.models.decoder.create_bidirectional_mask", zeros)
    moved = (last_tokens("last") - none).norm(dim=1)
    assert moved[0] == 0  # the longest sentence of the batch has no padding
    assert moved[1] > 0.1


def test_the_printed_dcl_is_much_larger(lab):
    """Its sum over dimensions and its logits, N times larger, are why lambda = 0.1 belongs to the released form."""
    released, paper = (ledger.loss_effect(lab, by_name("DCL"), side).loss for side in ("released", "paper"))
    assert paper > 10 * released


def test_the_page_has_every_row_and_the_measured_ones_their_numbers():
    """Prevents a table whose columns shift where a cell holds a bar, and a difference with its sign turned."""
    effects = pandas.DataFrame.from_dict(
        {"DCL": {"term": "dcl", "loss": 2.0, "loss, other": 8.0, "gradient": 1.0, "gradient, other": 3.0}},
        orient="index",
    )
    scores = pandas.DataFrame({"ICNCE candidates: paper": [50.0, 51.0], "ICNCE candidates: released": [51.0, 53.0]})
    lines = [line for line in ledger.page(effects, scores).splitlines() if line.startswith("|")]
    assert len(lines) == len(ROWS) + 2
    assert {line.replace("\\|", "").count("|") for line in lines} == {9}
    (dcl,) = (line for line in lines if line.startswith("| DCL |"))
    assert "dcl: 2 → 8 | × 3 |" in dcl
    (icnce,) = (line for line in lines if line.startswith("| ICNCE"))
    assert "+1.50 ± 0.71 (n = 2)" in icnce
