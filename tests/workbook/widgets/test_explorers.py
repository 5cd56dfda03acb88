"""The explorers of norms and of cross-attention layers."""

import copy
import itertools

import pytest

from cselab.analysis import vector_norms
from cselab.errors import SettingsError
from cselab.evaluation import twin_training_cost
from cselab.models import CROSS_STREAMS, remove_layer_norms
from cselab.workbook.headless.page import write_widget
from cselab.workbook.widgets import CaelExplorer, NormExplorer

SENTENCES = [
    "a man is playing guitar .",
    "the dog was sleeping under the table",
    "a cat",
    "the big red ball .",
]


def placements(depth):
    layers = range(1, depth + 1)
    return [
        list(cael) for count in range(depth + 1) for cael in itertools.combinations(layers, count)
    ]


def test_norms_after_surgery_on_a_copy(encoders):
    """Prevents the slider from operating on the reader's own model, and lengths of another r than
    the slider says, in the browser or in the figure."""
    explorer = NormExplorer(encoders, SENTENCES)
    untouched = copy.deepcopy(encoders["one"].backbone.state_dict())
    for removed in (2, 4):
        explorer.removed = removed
        tower = copy.deepcopy(encoders["one"].backbone)
        remove_layer_norms(tower, removed)
        expected = vector_norms(tower, encoders["one"].tokenizer, SENTENCES)
        lines = [line for line in explorer.static().data if line.name == "one"]
        for vector, line, lengths in zip(("cls", "pooled"), lines, expected, strict=True):
            sent = explorer.norms["one"][vector]
            assert sent["lengths"][removed] == pytest.approx(lengths.tolist(), rel=1e-3)
            spread = (lengths.std() / lengths.mean()).item()
            assert sent["spread"][removed] == pytest.approx(spread, rel=1e-3)
            assert line.y[removed] == sent["spread"][removed]
    assert encoders["one"].backbone.state_dict().keys() == untouched.keys()


def test_norms_are_measured_when_they_are_needed(encoders):
    """Prevents a notebook that measures models nobody looks at, a browser whose question is not
    answered, and a page that would have to ask."""
    explorer = NormExplorer(encoders, SENTENCES)
    assert explorer.norms == {}
    explorer._handle_custom_msg({"model": "twin, tower I"}, [])
    assert set(explorer.norms) == {"twin, tower I"}
    assert set(explorer.page_state()["norms"]) == {"one", "twin, tower I", "twin, tower II"}


def test_a_model_that_cannot_be_measured_is_reported_and_tried_again(
    make_desk, monkeypatch, encoders
):
    """Prevents "measuring ..." for ever, where the kernel runs out of memory or is interrupted."""
    explorer = NormExplorer(encoders, SENTENCES)
    measure, broken = explorer.measure, {"twin, tower II"}

    def fail(name):
        if name in broken:
            raise KeyboardInterrupt("stopped")
        return measure(name)

    monkeypatch.setattr(explorer, "measure", fail)
    front = make_desk(explorer, busy=True)
    notes = front.root.locator("p[role=status]")
    assert notes.all_inner_texts() == ["measuring one …", "measuring twin, tower II …"]
    assert front.release() == [{"model": "one"}, {"model": "twin, tower II"}]
    (note,) = notes.all_inner_texts()
    assert "twin, tower II could not be measured: KeyboardInterrupt: stopped" in note
    broken.clear()
    front.page.evaluate("desk.busy = true")
    front.root.get_by_label("model A").select_option("twin, tower I")
    front.page.wait_for_timeout(100)
    assert {one["model"] for one in front.release()} == {"twin, tower I", "twin, tower II"}
    assert notes.count() == 0


def test_one_sentence_has_no_spread(make_desk, encoders):
    """Prevents a NaN, which a comm sends as the word "nan", and "0 %" in its place."""
    explorer = NormExplorer(encoders, SENTENCES[:1])
    front = make_desk(explorer, busy=True)
    front.release()
    assert explorer.norms["one"]["cls"]["spread"] == [None] * 5
    assert "sd / mean –; B: mean" in front.root.locator(".panel .note").first.inner_text()
    explorer.static()


def test_the_table_of_a_chart_stays_open_while_the_slider_moves(visit, encoders, tmp_path):
    """Prevents numbers that fold up because the chart's name has other numbers now."""
    explorer = NormExplorer(encoders, SENTENCES)
    page, root, _ = visit(write_widget(tmp_path / "norms.html", "T", explorer.saved()))
    root.locator("summary").first.click()
    root.get_by_label("LayerNorms removed").fill("2")
    page.wait_for_timeout(100)
    assert root.locator("details").first.get_attribute("open") is not None


def test_controls_of_the_explorers_say_what_is_wrong(encoders, make_bert):
    """Prevents a widget that shows something else than it was set to."""
    norms, cael = NormExplorer(encoders, SENTENCES), CaelExplorer(make_bert(0).config)
    for widget, control, value, message in (
        (norms, "removed", 5, "from 0 to 4"),
        (norms, "model_a", "won", "did you mean 'one'?"),
        (cael, "cael", (4, 2), "rising layer numbers from 1 to 4"),
        (cael, "cael", (5,), "rising layer numbers from 1 to 4"),
        (cael, "cross_stream", "fusd", "did you mean 'fused'?"),
    ):
        before = getattr(widget, control)
        with pytest.raises(SettingsError, match=message.replace("?", r"\?")):
            setattr(widget, control, value)
        assert getattr(widget, control) == before


def test_the_cost_of_each_placement_is_the_counted_one(make_bert):
    """Prevents a cost that is only right for the placements it was measured on."""
    config = make_bert(0, num_hidden_layers=3).config
    explorer, count = CaelExplorer(config, length=9), twin_training_cost(config, length=9)
    for stream, cael in itertools.product(CROSS_STREAMS, placements(3)):
        counted = count(tuple(cael), stream).with_attention
        assert explorer.cost(cael, stream) == pytest.approx(counted, rel=1e-9), (stream, cael)


def test_the_browser_computes_the_same_costs(make_bert, run_js):
    """Prevents a picture whose cost differs from what Python and its documentation say."""
    explorer = CaelExplorer(make_bert(0).config)
    questions = [
        [explorer.costs[stream], stream, cael] for stream in CROSS_STREAMS for cael in placements(4)
    ]
    found = run_js("cael", "const result = given.map((one) => gmacs(...one));", questions)
    expected = [explorer.cost(cael, stream) for _, stream, cael in questions]
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_best_placement_is_chosen_and_the_plain_figure_has_its_cost(make_bert):
    """Prevents a picture, a cost or a score of another placement than the chosen one."""
    scores = {((2, 4), "parallel"): 70.0, ((4,), "fused"): 60.0}
    explorer = CaelExplorer(make_bert(0).config, scores)
    assert (explorer.cael, explorer.cross_stream) == ([2, 4], "parallel")
    explorer.cael, explorer.cross_stream = (4,), "fused"
    cost, *scores = explorer.static().data
    assert list(cost.x) == [explorer.cost(cael, "fused") for cael in ([], [4])]
    assert {line.name: (line.x, line.y) for line in scores} == {
        "parallel": ((2,), (70.0,)),
        "fused": ((1,), (60.0,)),
    }
