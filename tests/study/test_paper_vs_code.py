"""Paper versus code: every row is whole, its switches are real settings, and what it says about the
loss is so."""

import re

import pandas
import pytest
import torch
from quick import QUICK

import cselab
from cselab.experiments import PROFILES, configure
from cselab.models import SentenceEncoder, load_decoder
from cselab.paths import project_path
from cselab.study import paper_vs_code

ROWS = paper_vs_code.rows()
MEASURED = [row for row in ROWS if row.changes(configure(row.method, "paper").method)]


def by_name(name):
    return next(row for row in ROWS if row.name == name)


def test_the_committed_page_has_the_rows():
    """Prevents a row that is corrected in its file and stays wrong on the page."""
    page = project_path("outputs/reference") / "paper-vs-code.md"

    def texts(page):
        lines = [line for line in page.splitlines() if line.startswith("| ")]
        return {tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", x)[1:6]) for x in lines}

    made = texts(paper_vs_code.page(pandas.DataFrame()))
    assert texts(page.read_text(encoding="utf-8")) == made


def test_rows_have_different_names():
    """Prevents a row that hides another of its name in the tables."""
    assert len({row.name for row in ROWS}) == len(ROWS) >= 30


@pytest.fixture(scope="module")
def lab(tmp_path_factory, small_backbone):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CSELAB_DATA", raising=False)
        patch.setitem(PROFILES, "quick", QUICK)
        yield cselab.open_lab(
            "paper_vs_code",
            profile="quick",
            outputs=tmp_path_factory.mktemp("paper-vs-code"),
            backbone=small_backbone,
            triplets=64,
            sentences=64,
            device="cpu",
        )


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row.name)
def test_the_sides_of_a_row_are_configurations_that_differ(lab, row):
    """Prevents a row that measures the default against itself."""
    one, other = paper_vs_code.configs(lab, row)
    assert one != other


@pytest.mark.parametrize("row", [row for row in MEASURED if row.term], ids=lambda row: row.name)
def test_a_row_changes_the_loss_unless_it_says_that_it_does_not(lab, row):
    """Prevents a wording that is named but not computed.

    Only the last layer's mask, with padding masked, changes nothing.
    """
    one, other = (paper_vs_code.loss_effect(lab, row, changed=c) for c in (False, True))
    same = one == (
        pytest.approx(other.loss, rel=1e-5),
        pytest.approx(other.gradient, rel=1e-4),
    )
    assert same == (row.name == "the last layer's mask under last-token pooling")


def test_unmasked_padding_distinguishes_last_from_none(lab, monkeypatch):
    """billm opens the padding together with the last layer; only then the last token changes."""
    folder = lab.data.model_folder("tiny-llama")
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
    """Its sum over dimensions and its logits, N times larger, are why lambda = 0.1 belongs to the
    released form."""
    row = by_name("DCL")
    released, paper = (
        paper_vs_code.loss_effect(lab, row, changed=changed).loss for changed in (False, True)
    )
    assert paper > 10 * released


def test_the_page_has_every_row_and_the_measured_ones_their_numbers():
    """Prevents a table whose columns shift where a cell holds a bar, and a difference with its
    sign turned."""
    effects = pandas.DataFrame.from_dict(
        {
            "DCL": {
                "term": "dcl",
                "loss": 2.0,
                "loss, other": 8.0,
                "gradient": 1.0,
                "gradient, other": 3.0,
            }
        },
        orient="index",
    )
    scores = pandas.DataFrame(
        {"ICNCE candidates: paper": [50.0, 51.0], "ICNCE candidates: released": [51.0, 53.0]}
    )
    lines = [
        line for line in paper_vs_code.page(effects, scores).splitlines() if line.startswith("|")
    ]
    assert len(lines) == len(ROWS) + 2
    assert {line.replace("\\|", "").count("|") for line in lines} == {9}
    (dcl,) = (line for line in lines if line.startswith("| DCL |"))
    assert "dcl: 2 → 8 (released → paper) | × 3 |" in dcl
    (icnce,) = (line for line in lines if line.startswith("| ICNCE"))
    assert "+1.50 ± 0.71 (n = 2)" in icnce
