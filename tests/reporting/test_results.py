"""The committed pages of results say what the committed stores have."""

import re
import sys
from pathlib import Path

import pytest

from cselab.reporting import recorded

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))
import result_tables
import results

SLOW = {"RESULTS.md": pytest.mark.slow}  # its bootstraps take half a minute


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, id=p.name, marks=SLOW.get(p.name, ())) for p in results.PAGES],
)
def test_the_tables_of_a_page_are_its_stores(page):
    """Prevents a store that is replaced without its tables, and a figure typed by hand."""
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert results.filled(text) == text


def test_every_picture_of_the_results_is_there():
    text = (result_tables.REFERENCE / "RESULTS.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert pictures
    for name in pictures:
        assert (result_tables.REFERENCE / name).is_file(), name


def test_every_label_of_a_claim_is_in_a_grid():
    """Prevents a claim that no run can ever answer because a label was renamed."""
    known = {
        label
        for text in recorded.TEXTS
        for part in ("", "-studies")
        for label in result_tables.labels_of(f"{text}{part}")
    }
    claims = result_tables.read_claims(result_tables.CLAIMS)
    assert {label for claim in claims for label in (claim.better, claim.than)} <= known


@pytest.mark.parametrize("part", ["", "-studies"])
@pytest.mark.parametrize("text", recorded.TEXTS)
def test_every_recorded_method_has_its_seeds(text, part):
    """Prevents a table in which a method was lucky to have fewer seeds than others, and a row of
    the grid that never ran."""
    labels = result_tables.labels_of(f"{text}{part}")
    seeds = recorded.tables(labels[0], labels)[f"{text} text"].seeds
    seeds = seeds.reindex(labels, fill_value=0)
    assert seeds.min() == seeds.max() >= 5, seeds


@pytest.mark.parametrize("text", recorded.TEXTS)
def test_every_baseline_has_its_seeds(text):
    """Prevents the same in the table of baselines."""
    labels = result_tables.labels_of(f"baselines-{text}")
    seeds = result_tables.baseline_tables(text).numbers["scores"].seeds
    seeds = seeds.reindex(labels, fill_value=0)
    assert seeds.min() == seeds.max() >= 5, seeds


def test_every_row_of_transfer_has_its_seeds():
    """Prevents the same in the table of transfer."""
    labels = result_tables.labels_of("real-transfer")
    seeds = result_tables.transfer("real").seeds.reindex(labels, fill_value=0).astype(float)
    assert seeds.min() == seeds.max() >= 5, seeds
