"""The documentation site, built as `make docs` builds it, from a run of two notebooks."""

import importlib
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import build_site
import pytest

ROOT = Path(__file__).resolve().parents[2]
RUN = ("00_start_here", "03_jtcse_training")


class Links(HTMLParser):
    """Targets of a page's links, and its anchors."""

    def __init__(self, page: Path):
        super().__init__()
        self.targets: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        self.targets += [found[name] for name in ("href", "src") if name in found]
        if "src" in found or found.get("rel") == "stylesheet":
            self.fetched.append(found.get("src") or found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site's folder, made elsewhere than `make docs` makes it."""
    folder = tmp_path_factory.mktemp("site")
    run = folder / "run"
    run.mkdir()
    for stem in (*RUN, "index"):
        (run / f"{stem}.html").write_text("<!doctype html><body>executed")
    built = folder / "outputs" / "docs" / "pages"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build_site, "PAGES", built)
        build_site.collect(run)
    config = (ROOT / "mkdocs.yml").read_text().replace("paths: [.]", f"paths: [{ROOT}]")
    (folder / "mkdocs.yml").write_text(config)
    return build_site.build(folder)


def test_the_list_of_executed_notebooks_has_the_core_first():
    """Prevents a reader of the site from starting with an elective."""
    page = build_site.notebooks_page(["05_layernorm_removal", "11_loss_playground"])
    assert page.index("11_loss_playground.html") < page.index("05_layernorm_removal.html")


@pytest.mark.slow  # renders the API
def test_every_link_of_the_site_leads_somewhere(site):
    """Prevents a link to a page or a heading that was renamed, a page that the site lacks or that
    is blank without a network, and an API page that misses a function."""
    pages = {path.resolve(): Links(path) for path in site.rglob("*.html")}
    assert len(pages) > 40
    broken = []
    for page, links in pages.items():
        for target in links.targets:
            if target.startswith(("http://", "https://", "mailto:", "data:", "javascript:")):
                continue
            path, _, anchor = target.partition("#")
            place = (page.parent / unquote(path)).resolve() if path else page
            place = place / "index.html" if place.is_dir() else place
            there = place.is_file() and (
                not anchor or place not in pages or unquote(anchor) in pages[place].anchors
            )
            if not there and page.name != "404.html":  # served at any depth
                broken.append((str(page.relative_to(site)), target))
    assert broken == []
    executed = pages[(site / "notebooks" / f"{RUN[0]}.html").resolve()]
    assert "index.html" in executed.targets  # a way back
    fetched = [target for links in pages.values() for target in links.fetched]
    assert not [target for target in fetched if re.match(r"(https?:)?//", target)]
    for package in ("losses", "evaluation"):
        names = importlib.import_module(f"cselab.{package}").__all__
        anchors = Links(site / "api" / f"cselab.{package}.html").anchors
        lacking = {name for name in names if not any(a.endswith(f".{name}") for a in anchors)}
        assert lacking == set()


@pytest.mark.slow
def test_the_search_finds_a_word_without_a_network(site, browser):
    """Prevents a search that fetches its worker and says that it is unavailable."""
    page = browser.new_context(offline=True).new_page()
    page.goto(f"file://{site}/index.html")
    page.keyboard.press("/")
    page.keyboard.type("temperature")
    page.get_by_text("results", exact=False).first.wait_for()
    assert page.get_by_text("info_nce").count() > 0
    page.close()
