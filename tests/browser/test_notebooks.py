"""Notebooks 02, 06 and 11 as a reader uses them: JupyterLab in Chromium, cells run, controls moved
with the keyboard."""

import json
import re

import pytest
from conftest import IDLE

QUICK = {"sentences": 300, "settings": {"steps": 2, "towers.steps": 2}}
OUTPUT = ".jp-OutputArea-output[data-mime-type='application/vnd.jupyter.{}']"


def widget_plot(page):
    """The plot of the page's first widget: a plain figure may stand above it."""
    return page.locator(".jupyter-widgets .js-plotly-plot").first


def picture(plot) -> str:
    """What a plot shows: its data and layout."""
    return json.dumps(plot.evaluate("plot => [plot.data, plot.layout.annotations]"))


def changed(page, plot, before: str) -> bool:
    for _ in range(60):
        if picture(plot) != before:
            return True
        page.wait_for_timeout(250)
    return False


def assert_no_errors(page, console_errors):
    assert page.locator(OUTPUT.format("error")).all_inner_texts() == []
    warnings = page.locator(OUTPUT.format("stderr")).all_inner_texts()
    assert [text for text in warnings if "Warning" in text] == []
    assert console_errors == []


@pytest.mark.slow
def test_the_attention_inspector(open_notebook):
    """Prevents a widget that works in Python and is dead, empty or broken in the browser."""
    page, console_errors = open_notebook("06_attention_and_norms", **QUICK)
    assert_no_errors(page, console_errors)
    inspector = widget_plot(page)
    inspector.scroll_into_view_if_needed()
    assert inspector.locator(".heatmaplayer image").count() == 2
    before = picture(inspector)
    page.locator(".widget-slider .noUi-handle").first.focus()
    page.keyboard.press("ArrowLeft")
    assert changed(page, inspector, before)
    assert "attention received, layer 1" in picture(inspector)  # the notebook has set it to 2
    before = picture(inspector)
    sentence = page.locator(".widget-text input").first
    sentence.fill("<b>Two</b> dogs are running.")
    sentence.press("Enter")
    assert changed(page, inspector, before)
    shown = inspector.locator(".xtick text").all_text_contents()
    assert "<" in shown
    assert "dogs" in shown
    assert_no_errors(page, console_errors)


@pytest.mark.slow
def test_the_loss_playground(open_notebook):
    """Prevents a play button that moves nothing, a slider that the loss does not hear, and points
    that the browser moves by itself: it rounds a slider's value to its step and sends it back."""
    page, console_errors = open_notebook("11_loss_playground", sentences=300, steps=2)
    assert_no_errors(page, console_errors)
    playground = widget_plot(page)
    playground.scroll_into_view_if_needed()
    last_step = "plot => Math.max(...plot.data.find(trace => trace.name == 'ictm').x)"
    assert playground.evaluate(last_step) == 150
    before = picture(playground)
    page.get_by_role("button", name="one step").first.click()
    assert changed(page, playground, before)
    before = picture(playground)
    # the weight of the first term
    page.locator(".widget-slider .noUi-handle").first.focus()
    for _ in range(5):
        page.keyboard.press("ArrowLeft")
    page.locator(".jupyter-widgets.widget-play button").first.click()
    assert changed(page, playground, before)
    assert_no_errors(page, console_errors)


@pytest.mark.slow
def test_a_training_is_watched_stopped_and_goes_on(open_notebook):
    """Prevents a live figure that appears when all is over, a stop button that the kernel hears
    after the training, a page of traceback, and a training that starts again."""
    page, console_errors = open_notebook(
        "02_twin_pretraining",
        until_idle=False,
        sentences=300,
        steps=200,
        settings={"eval_every": 10, "dev_pairs": 20},
    )
    stop = page.get_by_role("button", name="■ stop")
    stop.wait_for()
    drawn = """() => [...document.querySelectorAll('.js-plotly-plot')].some(
        plot => plot.data.some(trace => /simcse.*: nce/.test(trace.name) && trace.x.length > 25))"""
    page.wait_for_function(drawn)
    stop.click()
    page.wait_for_selector(IDLE, state="attached")
    texts = page.locator(OUTPUT.format("stderr")).all_inner_texts()
    (line,) = [text.strip() for text in texts if "interrupted" in text]
    found = re.fullmatch(r"(.+): interrupted at step (\d+) of 200; .* from step (\d+)", line)
    assert found, line
    name, stopped, start = found[1], int(found[2]), int(found[3])
    assert 25 < stopped < 200
    page.evaluate("() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }")
    page.get_by_text(f"{name}: resumed at step {start}").first.wait_for()
    assert console_errors == []
