"""The committed pages of results say what the committed stores have."""

import re

import claim_tables
import pytest
import result_tables
import results
from result_values import REFERENCE

from cselab.experiments.grid import parse_seeds, read_grid
from cselab.experiments.store import Store
from cselab.study import recorded


@pytest.mark.parametrize("page", [pytest.param(p, id=p.name) for p in results.MARKED])
def test_the_tables_of_a_page_are_its_stores(page):
    """Prevents a store that is replaced without its tables, and a figure typed by hand."""
    text = page.read_text(encoding="utf-8")
    assert "<!-- table: " in text
    assert results.filled(text) == text


@pytest.mark.slow  # all tables, of which pages share some
def test_pages_of_results_are_their_templates():
    """Prevents a page or a CSV file that other stores made, and a number typed into a page."""
    for template, page in results.PAGES.items():
        text, tables = results.rendered(template)
        assert page.read_text(encoding="utf-8") == text, template
        for name, table in tables.items():
            written = (REFERENCE / "tables" / f"{name}.csv").read_text(encoding="utf-8")
            assert written == table.to_csv(), name


def test_every_table_of_the_results_is_on_a_page():
    """Prevents CSV files of tables that no page has any more."""
    linked = {
        name
        for page in results.PAGES.values()
        for name in re.findall(r"\(tables/([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in (REFERENCE / "tables").iterdir()} == linked


def test_grids_agree_only_where_both_verdicts_are_settled(monkeypatch):
    """Prevents "the tuning changes the verdict" for a claim that one grid leaves undecided, and for
    two gains of different size."""
    checked = claim_tables.checked("real-papers")
    undecided = ["undecided"] * (len(checked) - 2)
    found = {
        "real-papers": checked.assign(verdict="better"),
        "real-tuned": checked.assign(verdict=["better, by less", "worse", *undecided]),
    }
    monkeypatch.setattr(claim_tables, "GRIDS", tuple(found))
    monkeypatch.setattr(claim_tables, "TEXTS", ("real",))
    monkeypatch.setattr(claim_tables, "checked", found.__getitem__)
    agree = list(claim_tables.claims()["real text, agree"])
    assert agree == ["yes", "no", *("" for _ in undecided)]


def test_the_stores_are_of_one_library_and_every_row_has_the_same_seeds():
    """Prevents a table whose rows were made by different versions, which the pages deny, or in
    which a method was lucky to have fewer seeds than others."""
    paths = [recorded.store(grid) for grid in result_tables.GRIDS]
    assert len({source for path in paths for source in Store(path).runs().source}) == 1
    for grid in claim_tables.GRIDS:
        declared = read_grid(REFERENCE / "grids" / f"{grid}.toml")
        assert len(parse_seeds(declared["seeds"])) >= 7
        assert not any({"seed", "seeds"} & block.keys() for block in declared["runs"])
