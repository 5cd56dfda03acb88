"""The committed pages of results say what the committed stores have."""

import re

import pytest
import results

from cselab import recorded


@pytest.mark.parametrize("page", results.PAGES, ids=lambda path: path.name)
def test_the_tables_of_a_page_are_its_stores(page):
    """Prevents a store that is replaced without its tables, and a figure typed by hand."""
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert results.filled(text) == text


def test_every_picture_of_the_results_is_there():
    text = (results.REFERENCE / "RESULTS.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert pictures
    for name in pictures:
        assert (results.REFERENCE / name).is_file(), name


def test_every_label_of_a_claim_is_in_a_grid():
    """Prevents a claim that no run can ever answer, for a label was renamed."""
    known = {
        label
        for text in recorded.TEXTS
        for part in ("", "-studies")
        for label in results.declared(f"{text}{part}.toml")
    }
    claims = results.read_claims(results.CLAIMS)
    assert {label for claim in claims for label in (claim.better, claim.than)} <= known


@pytest.mark.parametrize("grid", ["world", "world-studies", "real", "real-studies"])
def test_every_recorded_system_has_its_seeds(grid):
    """Prevents a table in which a method was lucky to have fewer seeds than others, and a row of the grid that never ran."""
    labels, text = results.declared(f"{grid}.toml"), grid.removesuffix("-studies")
    seeds = recorded.tables(labels[0], labels)[f"{text} text"].seeds.reindex(labels, fill_value=0)
    assert seeds.min() == seeds.max() >= 5, seeds


@pytest.mark.parametrize("text", recorded.TEXTS)
def test_every_baseline_has_its_seeds(text):
    """Prevents the same in the table of baselines."""
    labels = results.declared(f"baselines-{text}.toml")
    seeds = results.baseline_tables(text).numbers["scores"].seeds.reindex(labels, fill_value=0)
    assert seeds.min() == seeds.max() >= 5, seeds


def test_every_row_of_transfer_has_its_seeds():
    """Prevents the same in the table of transfer."""
    seeds = results.transfer("real").seeds.reindex(results.declared("real-transfer.toml"), fill_value=0).astype(float)
    assert seeds.min() == seeds.max() >= 5, seeds
