"""The generated pages of docs/, and the examples of the how-to pages."""

import itertools
import json
import re
import sys
import tomllib
from functools import partial
from pathlib import Path

import pages
import pytest

from cselab.evaluation.mteb_data import LOCAL_TASKS
from cselab.experiments.grid import expand, read_grid
from cselab.study.mteb_tables import GROUPS, OFFLINE, TABLES
from cselab.workbook.headless.runner import find_parameters

DOCS = Path(__file__).resolve().parents[2] / "docs"
HOW_TO = sorted((DOCS / "how-to").glob("*.md"))


@pytest.mark.parametrize("name", pages.PAGES)
def test_a_generated_page_is_up_to_date(name):
    """Prevents a page with yesterday's defaults: run `python docs/pages.py`."""
    assert pages.rendered(name) == (DOCS / name).read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere():
    """Prevents a link to a page that was moved, or to a figure that was not drawn."""
    root = DOCS.parent
    folders = (root / "data", root / "outputs" / "reference")
    listed = (page for folder in folders for page in folder.glob("*.md"))
    for page in [root / "README.md", *DOCS.rglob("*.md"), *listed]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not target.startswith(("http", "<")):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def code_blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for page in HOW_TO:
        blocks = re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
        found += [(page.stem, block) for block in blocks]
    return found


@pytest.mark.parametrize(("page", "block"), code_blocks("toml"))
def test_grids_of_the_how_to_pages_can_be_run(page, block, tmp_path, own_registry):
    """Prevents an example with a setting that is gone."""
    method = next(text for name, text in code_blocks("python") if name == "own-method")
    sys.modules.pop("cselab_method_my_method", None)  # else it would register nothing again
    (tmp_path / "my_method.py").write_text(method)
    modules = [tmp_path / "my_method.py"] if "my_method" in block else []
    find_notebook = partial(find_parameters, DOCS.parent / "notebooks")
    assert expand(tomllib.loads(block), modules=modules, find_notebook=find_notebook)


def test_the_grid_beside_the_recorded_results_has_their_simcse():
    """Prevents a comparison at other settings than those of the table that the page names."""
    (block,) = (text for _, text in code_blocks("toml") if "like-synthetic-papers" in text)
    grids = DOCS.parent / "outputs" / "reference" / "grids"
    ours, theirs = (
        {**grid, "runs": [block for block in grid["runs"] if block.get("label") == "SimCSE"]}
        for grid in (tomllib.loads(block), read_grid(grids / "synthetic-papers.toml"))
    )
    assert expand(ours) == expand(theirs)


def test_the_page_on_mteb_lists_every_local_task_and_every_benchmark():
    """Prevents a task or a table that only the code knows, and one that is gone."""
    page = (DOCS / "how-to" / "mteb.md").read_text(encoding="utf-8")
    page = page.replace("STS12 to STS16", "STS12, STS13, STS14, STS15, STS16")
    lines = [line.split("|") for line in page.splitlines() if line.startswith("| ")]
    first = [row[1].strip(" `").replace("`", "").split(", ") for row in lines]
    listed = set(itertools.chain(*first)) - {"task", "benchmark"}
    assert listed == {*LOCAL_TASKS, *TABLES, *GROUPS}
    assert f"`{OFFLINE}`" in page


def minutes_of_reading(number: str) -> int:
    """The most that a chapter's own first table allows for."""
    (path,) = (DOCS.parent / "notebooks").glob(f"{number}_*.ipynb")
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    found = re.search(r"\*\*Reading\*\* \| (?:\d+ to )?(\d+) minutes", first)
    assert found, path.name
    return int(found[1])


def test_the_routes_fit_into_their_minutes():
    """Prevents a lecture of 90 minutes with 110 minutes of reading."""
    page = (DOCS / "how-to" / "teaching.md").read_text(encoding="utf-8")
    routes = re.findall(r"^\| [^|]+ \| (\d\d[\d, ]+) \| (\d+) minutes \|", page, re.M)
    assert len(routes) == 4
    for chapters, minutes in routes:
        total = sum(map(minutes_of_reading, chapters.split(", ")))
        assert 0.5 * int(minutes) <= total <= int(minutes), chapters
