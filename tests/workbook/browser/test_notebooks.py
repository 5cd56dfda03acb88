"""The widgets and a training as a reader uses them: JupyterLab in Chromium, cells run, controls
moved with the keyboard."""

import re
from pathlib import Path
from textwrap import dedent

import pytest
from jupyterlab_page import IDLE, TOKEN

CHECKS = (Path(__file__).parents[1] / "widgets" / "page_checks.js").read_text()

FIGURE = ".jp-RenderedPlotly :is(img, .main-svg)"  # JupyterLab shows a saved figure as an image
OUTPUT = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.{}']"


def assert_no_errors(page, console_errors):
    assert page.locator(OUTPUT.format("error")).all_inner_texts() == []
    told = page.locator(OUTPUT.format("stderr")).all_inner_texts()
    assert [text for text in told if "Warning" in text or "Traceback" in text] == []
    assert console_errors == []


def in_theme(page, name: str):
    change = "name => window.jupyterapp.commands.execute('apputils:change-theme', { theme: name })"
    page.evaluate(change, name)
    dark = str(name == "JupyterLab Light").lower()
    page.wait_for_selector(f"body[data-jp-theme-light={dark}]", state="attached")


INSPECTED = f"""
from cselab.models import SentenceEncoder, TwinEncoder, load_backbone, load_tokenizer
from cselab.methods import create
from cselab.workbook.widgets import AttentionInspector, CaelExplorer, LossPlayground, NormExplorer

folder = {str(Path(__file__).parents[3] / "data" / "backbones" / "tiny-bert")!r}
tokenizer = load_tokenizer(folder)
towers = [load_backbone(folder) for _ in range(2)]
encoders = {{
    "backbone": SentenceEncoder(load_backbone(folder), tokenizer),
    "twin": TwinEncoder(*towers, cael=(2, 4, 6), tokenizer=tokenizer),
}}
inspector = AttentionInspector(encoders, "A man is playing the guitar.")
inspector.layer = 2
inspector
"""


@pytest.mark.slow
def test_the_widgets(open_notebook):
    """Prevents a widget that works in Python and is dead, empty or broken in the browser: of one
    width in every window, clipped at 468 pixels, white in the dark theme, deaf to its keys."""
    others = [
        "NormExplorer(encoders, ['A cat.', 'Two dogs run.'])",
        "CaelExplorer(towers[0].config)",
        "LossPlayground(create('simcse', folders=[folder]))",
    ]
    page, console_errors = open_notebook("inspected", cells=[INSPECTED, *others])
    page.set_default_timeout(60_000)
    assert_no_errors(page, console_errors)
    inspector = page.locator(".cselab[aria-label='Attention inspector']")
    inspector.scroll_into_view_if_needed()
    heading = inspector.locator(".maps h4").first
    assert heading.inner_text() == "layer 2, mean of the heads"  # the cell has set it
    inspector.get_by_label("layer", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    inspector.locator(".maps h4", has_text="layer 1,").wait_for()
    sentence = inspector.get_by_role("textbox", name="sentence 1")
    sentence.fill("<b>Two</b> dogs are running.")
    sentence.press("Enter")
    inspector.locator(".strips .chip", has_text="dogs").wait_for()
    assert inspector.locator(".strips .chip", has_text="<").count() == 2
    playground = page.locator(".cselab[aria-label='Loss playground']")
    before = playground.inner_html()
    playground.get_by_role("button", name="one step").first.click()
    page.wait_for_timeout(300)
    assert playground.inner_html() != before
    page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        in_theme(page, theme)
        for width in (468, 1280, 1600):
            page.set_viewport_size({"width": width, "height": 1000})
            page.wait_for_timeout(500)
            for widget in page.locator(".cselab").all():
                assert widget.evaluate(f"root => ({CHECKS})(root)") == [], (theme, width)
                cell = "root => root.closest('.jp-OutputArea-output').clientWidth"
                assert widget.bounding_box()["width"] > 0.97 * widget.evaluate(cell)
    assert page.get_by_text("model not found").count() == 0
    assert_no_errors(page, console_errors)


@pytest.mark.slow
def test_a_saved_notebook_that_is_opened_again_shows_the_figure(open_notebook, jupyterlab):
    """Prevents "Error displaying widget: model not found" in place of what the reader saw."""
    url, _ = jupyterlab
    cell = "from cselab.workbook.widgets import CaelExplorer\nfrom transformers import BertConfig\n"
    cell += "CaelExplorer(BertConfig(num_hidden_layers=4))"
    page, _ = open_notebook("saved", cells=[cell])
    page.locator(".cselab svg").first.wait_for()
    assert page.locator(FIGURE).locator("visible=true").count() == 0
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
    page.wait_for_timeout(2000)
    page.evaluate("() => window.jupyterapp.serviceManager.sessions.shutdownAll()")
    page.wait_for_timeout(1000)
    page.goto(f"{url}lab/tree/saved.ipynb?token={TOKEN}&reset")
    page.locator(FIGURE).first.wait_for(timeout=60_000)
    page.wait_for_timeout(2000)
    assert page.get_by_text("model not found").locator("visible=true").count() == 0
    assert page.locator(".cselab").count() == 0


@pytest.mark.slow
def test_a_training_is_watched_stopped_and_goes_on(open_notebook):
    """Prevents a live figure that appears when all is over, a stop button that the kernel hears
    after the training, a page of traceback, and a training that starts again."""
    cell = """
        from cselab import open_lab
        from cselab.workbook import widgets

        lab = open_lab("live", profile="tiny", steps=2000, eval_every=10, dev_pairs=20)
        with widgets.LiveTraining(lab):
            lab.train("simcse")
    """
    page, console_errors = open_notebook("live", cells=[dedent(cell)], until_idle=False)
    stop = page.get_by_role("button", name="■ stop")
    stop.wait_for()
    drawn = """() => [...document.querySelectorAll('.cselab path')].some(
        path => path.closest('g').dataset.series?.match(/simcse.*: nce/)
            && path.getAttribute('d').split('L').length > 25)"""
    page.wait_for_function(drawn)
    stop.click()
    page.wait_for_selector(IDLE, state="attached")
    texts = page.locator(OUTPUT.format("stderr")).all_inner_texts()
    (line,) = [text.strip() for text in texts if "interrupted" in text]
    found = re.fullmatch(r"(.+): interrupted at step (\d+) of 2000; .* from step (\d+)", line)
    assert found, line
    name, stopped, start = found[1], int(found[2]), int(found[3])
    assert 25 < stopped < 2000
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.get_by_text(f"{name}: resumed at step {start}").first.wait_for()
    assert console_errors == []
