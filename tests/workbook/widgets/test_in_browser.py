"""The widgets as a page without a kernel draws them, in a real browser, opened from a file."""

import re
from pathlib import Path

import pytest
from transformers import BertConfig

from cselab.analysis import trace
from cselab.methods import create, registered
from cselab.workbook.headless.page import place_figure, write_html, write_widget
from cselab.workbook.widgets import (
    AttentionInspector,
    CaelExplorer,
    LossPlayground,
    NormExplorer,
)

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"
LONG = " ".join(["the small dog was running in the big park and not eating bread"] * 5)
CHECKS = (Path(__file__).parent / "page_checks.js").read_text()
WIDTHS = (400, 900, 1600)
KINDS = ("inspector", "long", "norms", "caels", "playground")


@pytest.fixture(scope="module")
def pages(browser, encoders, small_backbone, tmp_path_factory):
    """Pages with one widget each, by name."""
    folder = tmp_path_factory.mktemp("pages")
    method = create(registered("jtcse").Config(caels=1), folders=[small_backbone] * 2)
    made = {
        "inspector": AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)]),
        "long": AttentionInspector(encoders, LONG),
        "norms": NormExplorer(encoders, [SENTENCE, OTHER, "a cat", "the big red ball ."]),
        "caels": CaelExplorer(
            encoders["one"].backbone.config, {((2, 4), "parallel"): 70.0, ((4,), "fused"): 60.0}
        ),
        "playground": LossPlayground(method),
    }
    assert set(made) == set(KINDS)
    paths = {
        name: write_widget(folder / f"{name}.html", "T", widget.saved())
        for name, widget in made.items()
    }
    assert max(path.stat().st_size for path in paths.values()) < 3_000_000
    return paths


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_clipped_overlaps_or_is_illegible(visit, pages, name):
    """Prevents a widget of 700 pixels whatever the window, notes over titles, legends over curves,
    unreadable labels, white in the dark theme."""
    page, root, said = visit(pages[name])
    paper = "root => getComputedStyle(root).backgroundColor.match(/\\d+/g).map(Number)"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.wait_for_timeout(250)
            assert root.evaluate(f"root => ({CHECKS})(root)") == [], (width, scheme)
            assert (sum(root.evaluate(paper)[:3]) < 3 * 128) == (scheme == "dark")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        place = root.evaluate("root => root.parentElement.clientWidth")
        assert root.bounding_box()["width"] == pytest.approx(place, abs=1)
    assert said == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [kind for kind in KINDS if kind != "long"])
def test_every_control_works_without_a_kernel(visit, pages, name):
    """Prevents a control that is dead, empty or broken in a page that was opened from a file, and
    one that asks the network."""
    page, root, said = visit(pages[name])
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


def test_a_map_of_the_other_towers_values_says_where_there_are_none(visit, pages):
    """Prevents notes that lay over titles in this state, and a map of a tower's own values under
    the other one's name."""
    page, root, _ = visit(pages["inspector"])
    root.get_by_label("show").select_option("weight × length of the other tower's value")
    for layer in (3, 4):
        root.get_by_label("layer", exact=True).fill(str(layer))
        page.wait_for_timeout(100)
        note = root.locator("p[role=status]").first.inner_text()
        assert f"A: no cross-attention in layer {layer} (CAELs: none)" in note
        assert ("B: no cross-attention in layer 3 (CAELs: 2, 4)" in note) == (layer == 3)
        assert root.evaluate(f"root => ({CHECKS})(root)") == []


def test_a_thumbnail_a_token_and_a_tap_are_shown_in_both_models(visit, pages):
    """Prevents a click that enlarges another head, a hover that shows a row of one model and
    nothing of the other, and weights that only a mouse can read."""
    page, root, _ = visit(pages["inspector"])
    root.get_by_role("button", name="model A, layer 3, head 2").click()
    page.wait_for_timeout(100)
    titles = root.locator(".maps h4").all_inner_texts()
    assert titles == ["layer 3, head 2", "A: one", "B: twin, tower II", "A − B"]
    root.locator(".strips .chip").nth(2).hover()
    bands = root.locator(".maps rect[visibility=visible]")
    assert bands.count() == 6  # a row and a column in A, B and A − B
    assert len({bands.nth(n).get_attribute("y") for n in (0, 2, 4)}) == 1
    assert "A: man reads most from" in root.locator(".maps p[role=status]").inner_text()
    box = root.locator(".map svg").first.bounding_box()
    page.mouse.click(box["x"] + 100, box["y"] + 100)
    tip = root.locator(".tip").inner_text()
    assert re.search(r"reads .*\nweight: A [\d.]+, B [\d.]+, A − B ", tip)


def test_hiding_the_sinks_stretches_the_scale(visit, pages, encoders):
    """Prevents a box that blanks [CLS] and leaves the scale that it flattened: the scale ends at
    the largest weight that is still shown, of both models."""
    page, root, _ = visit(pages["inspector"])
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


def test_a_widget_that_fails_leaves_the_others_and_the_figures(browser, pages, tmp_path):
    """Prevents one broken state that empties a page."""
    state = {"script": "norms", "state": {"kernel": False}}
    good = CaelExplorer(BertConfig(num_hidden_layers=2)).saved()
    body = "<main class='notebook'><div id='widget-0'></div><div id='widget-1'></div>"
    figure = {"data": [{"type": "bar", "y": [1, 2]}], "layout": {}}
    body += place_figure(figure, 0) + "</main>"
    write_html(tmp_path / "p.html", "T", body, [figure], [state, good])
    page = browser.new_page()
    page.goto((tmp_path / "p.html").as_uri())
    page.locator(".main-svg").first.wait_for()
    assert "could not be drawn" in page.locator("#widget-0").inner_text()
    assert page.locator("#widget-1 .cselab svg").count() > 0
    page.close()


def test_a_slider_goes_on_where_its_value_did_not_change(visit, pages):
    """Prevents a slider that sticks: in a page, a value that is set again is no change."""
    page, root, _ = visit(pages["playground"])
    slider = root.get_by_label("steps per second", exact=True)
    slider.focus()
    values = []
    for _ in range(12):
        page.keyboard.press("ArrowLeft")
        values.append(float(slider.input_value()))
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]
    assert len(set(values)) >= 6
