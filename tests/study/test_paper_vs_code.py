"""Paper versus code: every row is whole, its switches are real settings, and what it says about the
loss is so."""

import re

import pandas
import pytest
import torch
from quick import QUICK

import cselab
from cselab.experiments import PROFILES
from cselab.models import SentenceEncoder, load_decoder
from cselab.paths import project_path
from cselab.study import paper_vs_code

ROWS = paper_vs_code.rows()


def test_the_committed_page_has_the_rows():
    """Prevents a row that is corrected in its file and stays wrong on the page."""
    page = project_path("outputs/reference") / "paper-vs-code.md"

    def texts(page):
        lines = [line for line in page.splitlines() if line.startswith("| ")]
        return {tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", x)[1:6]) for x in lines}

    made = texts(paper_vs_code.page(pandas.DataFrame()))
    assert texts(page.read_text(encoding="utf-8")) == made


@pytest.fixture(scope="module")
def lab(tmp_path_factory, small_backbone):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("CSELAB_DATA", raising=False)
        patch.setitem(PROFILES, "quick", QUICK)
        patch.setattr(paper_vs_code, "SENTENCES", 16)
        yield cselab.open_lab(
            "paper_vs_code",
            profile="quick",
            outputs=tmp_path_factory.mktemp("paper-vs-code"),
            backbone=small_backbone,
            triplets=64,
            sentences=64,
            device="cpu",
        )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_sides_of_a_row_differ(lab, row):
    """Prevents a row that measures the default against itself, and a wording that is named but not
    computed: only the last layer's mask, with padding masked, changes nothing."""
    one, other = paper_vs_code.configs(lab, row)
    assert (one != other) == bool(row.changes(one))
    if row.term:
        one, other = (paper_vs_code.loss_effect(lab, row, changed=c) for c in (False, True))
        same = one == (
            pytest.approx(other.loss, rel=1e-5),
            pytest.approx(other.gradient, rel=1e-4),
        )
        assert same == (row.name == "the last layer's mask under last-token pooling")
        if row.name == "DCL":  # N times the logits, summed over dimensions: why its lambda is 0.1
            assert other.loss > 10 * one.loss


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


def test_the_page_has_every_row_and_the_measured_ones_their_numbers():
    """Prevents a table whose columns shift where a cell holds a bar, and a difference with its
    sign turned."""
    heads = ["term", "loss", "loss, other", "gradient", "gradient, other"]
    effects = pandas.DataFrame([["dcl", 2.0, 8.0, 1.0, 3.0]], index=["DCL"], columns=heads)
    scores = pandas.DataFrame(
        {"ICNCE candidates: paper": [50.0, 51.0], "ICNCE candidates: released": [51.0, 53.0]}
    )
    page = paper_vs_code.page(effects, scores)
    lines = [line for line in page.splitlines() if line.startswith("|")]
    assert len(lines) == len(ROWS) + 2
    assert {line.replace("\\|", "").count("|") for line in lines} == {9}
    (dcl,) = (line for line in lines if line.startswith("| DCL |"))
    assert "dcl: 2 → 8 (released → paper) | × 3 |" in dcl
    (icnce,) = (line for line in lines if line.startswith("| ICNCE"))
    assert "+1.50 ± 0.71 (n = 2)" in icnce
