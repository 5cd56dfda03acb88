"""The widgets as a page without a kernel draws them, in a real browser, opened from a file."""

import itertools
from pathlib import Path

import nbformat
import pytest

from cselab.analysis import trace
from cselab.browser import WIDGET_MIME
from cselab.headless.page import write_page
from cselab.methods import create, registered
from cselab.widgets import (
    AttentionInspector,
    CaelExplorer,
    LossPlayground,
    NormExplorer,
    RunComparer,
)

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"
LONG = " ".join(["the small dog was running in the big park and not eating bread"] * 5)
CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
WIDTHS = (400, 900, 1600)
KINDS = ("inspector", "long", "norms", "caels", "playground", "runs")


@pytest.fixture(scope="module")
def pages(browser, encoders, small_backbone, runs, tmp_path_factory):
    """Addresses of pages with one widget each, by name."""
    folder = tmp_path_factory.mktemp("pages")
    method = create(registered("jtcse").Config(caels=1), folders=[small_backbone] * 2)
    names = list(runs[0])[:2]
    made = {
        "inspector": AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)]),
        "long": AttentionInspector(encoders, LONG),
        "norms": NormExplorer(encoders, [SENTENCE, OTHER, "a cat", "the big red ball ."]),
        "caels": CaelExplorer(
            encoders["one"].backbone.config, {((2, 4), "parallel"): 70.0, ((4,), "fused"): 60.0}
        ),
        "playground": LossPlayground(method),
        "runs": RunComparer({name: runs[0][name] for name in names}),
    }
    assert set(made) == set(KINDS)
    return {name: address(folder / name, widget) for name, widget in made.items()}


def address(stem: Path, widget) -> str:
    """Write the page of a notebook that shows the widget."""
    data = {WIDGET_MIME: {"script": widget.script, "state": widget.page_state()}}
    output = nbformat.v4.new_output("display_data", data)
    cell = nbformat.v4.new_code_cell("widget", outputs=[output])
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), stem.with_suffix(".ipynb"))
    page = stem.with_suffix(".html")
    write_page(stem.with_suffix(".ipynb"), page, "T")
    assert page.stat().st_size < 3_000_000
    return page.as_uri()


@pytest.fixture
def visit(browser, pages):
    """`visit("norms", 900)`: the page, its widget's root, and the browser's messages."""
    opened = []

    def go(name: str, width: int = 1280, scheme: str = "light"):
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened.append(page)
        said: list[str] = []
        page.on("console", lambda line: said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on(
            "request", lambda request: said.append(request.url) if remote(request.url) else None
        )
        page.goto(pages[name])
        root = page.locator(".cselab")
        root.locator("svg").first.wait_for()
        page.wait_for_timeout(200)
        return page, root, said

    yield go
    for page in opened:
        page.close()


def remote(url: str) -> bool:
    return url.startswith(("http:", "https:", "ws:"))


def pictures(root) -> str:
    """All that a widget shows."""
    return root.evaluate(
        "root => root.innerHTML + [...root.querySelectorAll('canvas')].map(c => c.toDataURL())"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_clipped_overlaps_or_is_illegible(visit, name, scheme):
    """Prevents what the first edition's widgets were in a browser: 700 pixels wide whatever the
    window, notes over titles, legends over curves, unreadable labels, white in the dark theme."""
    for width in WIDTHS:
        page, root, said = visit(name, width, scheme)
        assert root.evaluate(f"root => ({CHECKS})(root)") == [], width
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        place = root.evaluate("root => root.parentElement.clientWidth")
        assert root.bounding_box()["width"] == pytest.approx(place, abs=1)
        assert said == []
        page.close()


@pytest.mark.parametrize("name", [kind for kind in KINDS if kind != "long"])
def test_every_control_works_without_a_kernel(visit, name):
    """Prevents a control that is dead, empty or broken in a page that was opened from a file, and
    one that asks the network."""
    page, root, said = visit(name)
    for n in range(root.locator("select:not([multiple])").count()):
        control = root.locator("select:not([multiple])").nth(n)
        if not control.is_visible():
            continue
        for option in range(control.locator("option").count()):
            control.select_option(index=option)
            page.wait_for_timeout(30)
    for kind in ("range", "checkbox"):
        for n in range(root.locator(f"input[type={kind}]").count()):
            control = root.locator(f"input[type={kind}]").nth(n)
            if control.is_visible() and control.is_enabled():
                control.focus()
                page.keyboard.press("ArrowLeft" if kind == "range" else "Space")
                page.keyboard.press("ArrowRight" if kind == "range" else "Space")
                page.wait_for_timeout(30)
    for n in range(min(24, root.locator("button").count())):
        control = root.locator("button").nth(n)
        if control.is_visible() and control.is_enabled():
            control.click()
            page.wait_for_timeout(30)
    page.wait_for_timeout(300)
    assert said == []
    assert root.locator("svg").count() > 0
    assert root.evaluate(f"root => ({CHECKS})(root)") == []


def test_the_layer_and_head_of_a_thumbnail_are_enlarged_in_both_models(visit):
    """Prevents a click that enlarges another head, and maps that do not follow."""
    page, root, _ = visit("inspector")
    root.get_by_role("button", name="model A, layer 3, head 2").click()
    page.wait_for_timeout(100)
    titles = root.locator(".maps h4").all_inner_texts()
    assert len(titles) == 3
    assert all("layer 3, head 2" in title for title in titles)


def test_a_token_is_marked_in_both_models(visit):
    """Prevents a hover that shows a row of one model and nothing of the other."""
    _, root, _ = visit("inspector")
    chip = root.locator(".strips .chip").nth(2)
    chip.hover()
    bands = root.locator(".maps rect[visibility=visible]")
    assert bands.count() == 6  # a row and a column in A, B and A − B
    tops = [bands.nth(n).get_attribute("y") for n in (0, 2, 4)]
    assert len(set(tops)) == 1


def test_hiding_the_sinks_stretches_the_scale(visit, encoders):
    """Prevents a box that blanks [CLS] and leaves the scale that it flattened: the scale ends at
    the largest weight that is still shown, of both models."""
    page, root, _ = visit("inspector")
    largest = "root => root.querySelector('.maps .legend').lastElementChild.textContent"

    def expected(cut: slice) -> float:
        towers = (encoders["one"].backbone, encoders["twin"].tower_ii)
        ids = encoders["one"].tokenizer(SENTENCE, return_tensors="pt")["input_ids"]
        maps = [trace(tower, ids).attention[-1, 0].mean(0) for tower in towers]
        return max(one[cut, cut].max().item() for one in maps)

    for box, cut in (("hidden", slice(1, -1)), ("shown", slice(None))):
        root.get_by_label("hide [CLS] and [SEP]").set_checked(box == "hidden")
        page.wait_for_timeout(100)
        assert float(root.evaluate(largest)) == pytest.approx(expected(cut), rel=5e-3)


def test_sixty_tokens_are_legible(visit):
    """Prevents labels on each other: every token has a row of twelve pixels or more."""
    _, root, _ = visit("long", 400)
    places = root.evaluate(
        """root => [...root.querySelector('.map svg').querySelectorAll('text[text-anchor=end]')]
        .map(text => text.getBoundingClientRect().top)"""
    )
    assert len(places) >= 60
    gaps = [below - above for above, below in itertools.pairwise(places)]
    assert min(gaps) >= 11.9
