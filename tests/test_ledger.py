"""The ledger: every row is whole, its switches are real settings, and what it says about the loss is so."""

import pytest

import cselab
from cselab import ledger
from cselab.models import SentenceEncoder
from cselab.settings import LEDGER_ROWS, Settings

ROWS = ledger.ledger_rows()
MEASURED = [row for row in ROWS if row.measure]


def by_name(what):
    return next(row for row in ROWS if row.what == what)


def test_every_row_says_all_of_it():
    assert len(ROWS) >= 18
    assert len({row.what for row in ROWS}) == len(ROWS)
    for row in ROWS:
        assert all(isinstance(cell, str) and cell for cell in row[:5]), row.what


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
    """Prevents a row of the ledger from overriding what was asked for, and a rate of BERT-base for a small backbone."""
    for profile in ("tiny", "paper"):
        plain, released = Settings.of(profile), Settings.of(profile, released_rows="all")
        assert released.stage2_learning_rate == pytest.approx(1.3 * plain.stage2_learning_rate)
        assert (released.stage2_dropout, released.negative_weight, released.lora_rank) == (0.00025, 1.0, 64)
    assert Settings.of("tiny", released_rows="all", lora_rank=4).lora_rank == 4
    for profile in ("tiny", "paper"):  # and so it does when it is switched on later, once
        later = Settings.of(profile, seed=1).changed(released_rows="stage2_rate")
        assert later.stage2_learning_rate == Settings.of(profile, released_rows="all").stage2_learning_rate
        assert later.changed(seed=2).stage2_learning_rate == later.stage2_learning_rate
    assert Settings.of("paper", released_rows="stage2_rate").stage2_learning_rate == pytest.approx(1.3e-6)


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
    """Prevents a wording that is told but not computed; the mask of the last layer is the one that changes nothing."""
    one, other = (ledger.loss_effect(lab, row, side) for side in ledger.SIDES)
    same = one.loss == pytest.approx(other.loss, rel=1e-5) and one.gradient == pytest.approx(other.gradient, rel=1e-4)
    assert same == (row.what == "the last layer's mask under last-token pooling")


def test_the_printed_dcl_is_much_larger(lab):
    """Its sum over dimensions and its logits, N times larger, are why lambda = 0.1 belongs to the released form."""
    released, paper = (ledger.loss_effect(lab, by_name("DCL"), side).loss for side in ("released", "paper"))
    assert paper > 10 * released


def test_the_page_has_every_row_and_the_measured_ones_their_numbers():
    """Prevents a table whose columns shift where a cell holds a bar, and a difference with its sign turned."""
    import pandas

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
