"""The interactive views without a browser: what they draw is what the models say, and a changed control changes the picture."""

import copy

import pandas
import plotly.graph_objects as go
import pytest
import torch

from cselab.analysis import read_lengths, trace, vector_norms
from cselab.errors import SettingsError
from cselab.evaluation import compare_pairs, evaluate_sts, inference_cost, twin_training_cost
from cselab.losses import info_nce, modulus_ratio
from cselab.methods import Method, create
from cselab.models import SentenceEncoder, TwinEncoder, remove_layer_norms
from cselab.settings import Settings
from cselab.systems import SINGLE
from cselab.views import (
    AttentionInspector,
    CaelExplorer,
    LossPlayground,
    NormExplorer,
    Run,
    RunComparer,
    View,
    difference_chart,
)
from cselab.views.attention import ACROSS, OWN
from cselab.views.bertviz_views import show_bertviz

SENTENCE, OTHER = "a man is playing guitar .", "the dog was sleeping under the table"


@pytest.fixture(scope="module")
def encoders(make_bert, word_tokenizer):
    """A single tower, and a twin with a cross-attention layer at 2 and 4 of 4."""
    return {
        "one": SentenceEncoder(make_bert(1), word_tokenizer).eval(),
        "twin": TwinEncoder(make_bert(2), make_bert(3), cael=(2, 4), tokenizer=word_tokenizer).eval(),
    }


@pytest.fixture
def inspector(encoders):
    return AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)])


@pytest.fixture
def towers(tmp_path, make_bert, word_tokenizer):
    for name, seed in (("i", 1), ("ii", 2)):
        SentenceEncoder(make_bert(seed), word_tokenizer).save_pretrained(tmp_path / name)
    return [str(tmp_path / name) for name in ("i", "ii")]


def maps(view):
    return [torch.tensor(part.z) for part in view.static().data if part.type == "heatmap"]


def ids(encoder, text):
    return encoder.tokenizer([text], return_tensors="pt", return_token_type_ids=False)["input_ids"]


def texts(figure: go.Figure) -> str:
    return figure.to_json()


# -------------------------------------------------------------------------------------------- attention


def test_the_maps_are_the_models_own(encoders, inspector):
    """Prevents a map of another layer, head or model: layers and heads count from 1, head 0 is their mean."""
    inspector.controls["model_b"].value = "twin, tower II"
    inspector.controls["layer"].value = 3
    expected = [trace(tower, ids(encoders["one"], SENTENCE)).attention[2, 0]
                for tower in (encoders["one"].backbone, encoders["twin"].tower_ii)]  # fmt: skip
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs.mean(0))
    inspector.controls["head"].value = 2
    for mine, theirs in zip(maps(inspector), expected, strict=True):
        torch.testing.assert_close(mine, theirs[1])


def test_a_second_sentence_is_read_by_model_b_alone(inspector):
    before = maps(inspector)
    inspector.pick.value = (SENTENCE, OTHER)
    after = maps(inspector)
    torch.testing.assert_close(after[0], before[0])
    assert after[1].shape != before[1].shape


def test_the_other_towers_values_are_read_at_cross_attention_layers_only(encoders, inspector):
    """Prevents a picture of cross-attention where there is none: weights are tower I's, values tower II's, at a CAEL."""
    twin = encoders["twin"]
    one, two = (trace(tower, ids(twin, SENTENCE)) for tower in twin.backbones)
    inspector.controls["model_a"].value = "twin, tower I"
    inspector.controls["show"].value = ACROSS
    for layer, values in ((2, two.values), (3, one.values)):
        inspector.controls["layer"].value = layer
        torch.testing.assert_close(maps(inspector)[0], read_lengths(one.attention, values)[layer - 1, 0].mean(0))
        said = "no cross-attention here (CAELs: 2, 4)" in texts(inspector.static())
        assert said == (layer == 3)
    inspector.controls["show"].value = OWN
    torch.testing.assert_close(maps(inspector)[0], read_lengths(one.attention, one.values)[2, 0].mean(0))


def test_shares_are_of_one(inspector):
    """Bars of received attention over all tokens, and the four classes at each layer, sum to 1 in each model."""
    figure = inspector.static()
    for axis in {bar.xaxis for bar in figure.data if bar.type == "bar"}:
        assert sum(sum(bar.y) for bar in figure.data if bar.type == "bar" and bar.xaxis == axis) == pytest.approx(
            1, abs=1e-5
        )
    lines = [part for part in figure.data if part.type == "scatter" and "energy" not in part.name]
    for side in (lines[:4], lines[4:]):
        torch.testing.assert_close(torch.tensor([line.y for line in side]).sum(0), torch.ones(4))


def test_what_a_user_types_is_shown_letter_by_letter(inspector):
    """Prevents a link or a tag of the user's from becoming one in the figure, where plotly reads HTML."""
    inspector.controls["sentence"].value = "<b>a</b> dog"
    labels = [text for axis in inspector.static().select_xaxes() for text in axis.ticktext or ()]
    assert not any("<" in text for text in labels)


def test_a_long_sentence_is_cut(inspector):
    inspector.controls["sentence"].value = "a dog " * 200
    assert max(len(part) for part in maps(inspector)) <= 48


def test_without_a_network_our_own_view_shows_and_says_why(inspector, monkeypatch, capsys):
    monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
    show_bertviz(inspector)
    assert "bertviz loads its scripts from the network" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["head", "model"])
def test_bertviz_gets_the_same_attention_and_cannot_be_ended_by_a_token(inspector, monkeypatch, kind):
    """Prevents bertviz from showing other numbers, and a sentence with </script> from ending bertviz's own."""
    import json

    from cselab.views import bertviz_views

    shown = []
    monkeypatch.delenv("CSELAB_RUN_DIR", raising=False)
    monkeypatch.setattr(bertviz_views, "_online", lambda: True)
    monkeypatch.setattr(bertviz_views, "display", shown.append)
    reading = inspector.read("one", SENTENCE)
    reading.tokens[1] = "</script>"  # as a byte-level tokenizer may have it
    show_bertviz(inspector, kind)
    (page,) = shown
    assert page.data.count("</script>") == 2  # require.js and the view
    first = json.dumps(reading.own.attention[0, 0].tolist())
    assert first in page.data


# ------------------------------------------------------------------------------------------------ norms


def test_norms_after_surgery_on_a_copy(encoders):
    """Prevents the slider from operating on the reader's own model, and a norm of another r than the slider says."""
    sentences = [SENTENCE, OTHER, "a cat", "the big red ball ."]
    view = NormExplorer(encoders, sentences)
    untouched = copy.deepcopy(encoders["one"].backbone.state_dict())
    for removed in (0, 2, 4):
        view.controls["removed"].value = removed
        tower = copy.deepcopy(encoders["one"].backbone)
        remove_layer_norms(tower, removed)
        expected = vector_norms(tower, encoders["one"].tokenizer, sentences)
        drawn = [violin for violin in view.static().data if violin.type == "violin" and "one" in violin.name]
        for violin, lengths in zip(drawn, expected, strict=True):
            torch.testing.assert_close(torch.tensor(violin.y), lengths)
    assert encoders["one"].backbone.state_dict().keys() == untouched.keys()


# ------------------------------------------------------------------------------------------------- CAELs


def test_a_cross_stream_costs_what_it_computes(make_bert):
    """Closed form: from the first CAEL to the last, a layer more a tower; at a CAEL the second value projection is free (the
    other tower's inputs are projected once more)."""
    config = make_bert(0).config
    tower, cost = inference_cost(config, length=32), twin_training_cost(config, length=32)
    assert cost((), "parallel").linear == pytest.approx(2 * tower.linear)
    layer = tower.linear / config.num_hidden_layers
    assert cost((2, 4), "parallel").linear == pytest.approx(2 * tower.linear + 2 * 3 * layer)
    assert cost((2, 4), "last_only").linear == pytest.approx(2 * tower.linear + 2 * layer)
    own = 3 * config.hidden_size**2 * 32 / 1e9  # query, key and value once more
    assert cost((4,), "fused").linear == pytest.approx(2 * tower.linear + 2 * own)


def test_ticked_layers_are_drawn_and_costed(make_bert):
    config = make_bert(0).config
    view = CaelExplorer(config, {((2, 4), "parallel"): 70.0, ((4,), "fused"): 60.0})
    assert "CAELs at 2, 4" in texts(view.static())  # what scored best
    view.preset.value = (4,)
    view.controls["cross_stream"].value = "fused"
    figure = view.static()
    assert "CAELs at 4" in texts(figure)
    bars, scores = figure.data
    assert bars.y[1] == pytest.approx(twin_training_cost(config, length=32)((4,), "fused").with_attention)
    assert list(scores.y) == [70.0, 60.0]
    assert scores.marker.size[1] > scores.marker.size[0]
    for n in range(1, 5):
        view.controls[f"layer_{n}"].value = False
    assert "CAELs at no layer" in texts(view.static())


# ------------------------------------------------------------------------------------------- playground


@pytest.fixture
def playground(towers):
    return LossPlayground(create("jtcse", Settings.of("tiny", caels=1), towers))


def test_gradient_descent_lowers_the_methods_own_loss(playground):
    playground.controls["rate"].value = 0.003
    before = playground.history[0]
    playground.descend(60)
    after = playground.history[-1]
    assert sum(after[term] for term in playground.method.terms) < 0.5 * sum(
        before[term] for term in playground.method.terms
    )
    assert len(playground.history) == 61


def test_a_step_is_the_gradient_of_what_the_sliders_say(playground):
    """Prevents a weight or a temperature that the picture shows and the descent does not follow."""
    for name in ("icnce", "ictm"):
        playground.controls[name].value = 0
    playground.controls["nce"].value, playground.controls["temperature"].value = 0.5, 0.1
    start = {space: rows.clone().requires_grad_() for space, rows in playground.points.items()}
    tau = playground.controls["temperature"].value
    loss = 0.5 * sum(info_nce(*rows, temperature=tau) for rows in start.values())
    gradients = torch.autograd.grad(loss, list(start.values()))
    playground.descend()
    for (space, rows), gradient in zip(start.items(), gradients, strict=True):
        torch.testing.assert_close(
            playground.points[space], rows.detach() - playground.controls["rate"].value * gradient
        )
    assert playground.terms == "nce:0.5"


def test_every_offered_term_moves_points(playground):
    """Prevents a slider without an effect, and a term that the playground's vectors do not feed."""
    for term in playground.offered:
        for name in playground.offered:
            playground.controls[name].value = float(name == term)
        playground.draw()
        before = {space: rows.clone() for space, rows in playground.points.items()}
        playground.descend()
        assert any(not torch.equal(before[space], rows) for space, rows in playground.points.items()), term
        assert set(playground.method.terms) == {term}


@pytest.mark.parametrize("name", SINGLE)
def test_any_method_of_two_views_is_played_with(small_pretrained, name):
    """Prevents a method whose playground breaks when a slider is moved, and a term that reads a text which points have not."""
    playground = LossPlayground(create(name, Settings.of("tiny", terms="nce"), [small_pretrained]))
    for term in playground.offered:
        playground.controls[term].value = 0.5
    playground.descend()
    playground.static()
    assert set(playground.method.terms) == set(playground.offered)


@pytest.mark.parametrize(
    ("name", "said"), [("diffcse", "2 views and the terms nce, rtd"), ("simcse_supervised", "has 3 views")]
)
def test_what_points_cannot_show_is_said(small_pretrained, name, said):
    with pytest.raises(SettingsError, match=said):
        LossPlayground(create(name, Settings.of("tiny"), [small_pretrained]))


def test_without_a_term_nothing_moves(playground):
    for name in playground.offered:
        playground.controls[name].value = 0
    before = {space: rows.clone() for space, rows in playground.points.items()}
    playground.descend(3)
    assert all(torch.equal(before[space], rows) for space, rows in playground.points.items())
    playground.static()


def test_one_point_is_set_by_its_sliders(playground):
    playground.widget()
    playground.point.value = ("cls_ii", 1, 2)
    before = {space: rows.clone() for space, rows in playground.points.items()}
    playground.angle.value, playground.length.value = 90, 2.0
    moved = playground.points["cls_ii"][1, 2]
    torch.testing.assert_close(moved, torch.tensor([0.0, 2.0]), atol=1e-5, rtol=0)
    before["cls_ii"][1, 2] = moved
    assert all(torch.equal(before[space], rows) for space, rows in playground.points.items())


def test_on_the_sphere_lengths_stay(playground):
    playground.controls["shape"].value = "sphere"
    playground.descend(10)
    for rows in playground.points.values():
        assert rows.shape[-1] == 3
        torch.testing.assert_close(rows.norm(dim=-1), torch.ones(rows.shape[:-1]))


def test_the_surface_carries_the_positives(playground):
    """The marked pairs' l_TN is the loss's own ratio between view a of one tower and view b of the other."""
    marks = playground.static().data[-1]
    p, q = playground.points["cls_i"][0], playground.points["cls_ii"][1]
    k, t = torch.tensor(marks.x), torch.tensor(marks.y)
    torch.testing.assert_close((1 + k**2 - 2 * k * t).sqrt() / (1 + k), modulus_ratio(p, q), atol=1e-4, rtol=1e-4)


def test_the_object_in_the_playground_is_what_the_trainer_takes(playground, word_tokenizer):
    playground.controls["dcl"].value = 0.5
    batch = dict(word_tokenizer(2 * [SENTENCE, OTHER], padding=True, return_tensors="pt", return_token_type_ids=False))
    assert isinstance(playground.method, Method)
    from cselab.methods import StepContext

    assert set(playground.method.losses(batch, StepContext.at(0, 0))) == {"nce", "icnce", "ictm", "dcl"}
    assert "dcl:0.5" in playground.terms


# --------------------------------------------------------------------------------------------------- runs


@pytest.fixture(scope="module")
def runs():
    torch.manual_seed(0)
    vectors: dict[str, torch.Tensor] = {}

    def encode(noise):
        def rows(sentences):
            for sentence in sentences:
                vectors.setdefault(sentence, torch.randn(8))
            return torch.stack([vectors[s] for s in sentences]) + noise * torch.randn(len(sentences), 8)

        return rows

    def run(noise, dev):
        report = evaluate_sts(encode(noise), ("World",), resamples=0)
        return Run([{"step": 0, "dev": 10.0}, {"step": 5, "dev": dev}], report, report.by_phenomenon())

    made = {"base": run(0.0, 20.0), "other": run(1.0, 30.0)}
    opened = []
    return {name: lambda name=name: (opened.append(name), made[name])[1] for name in (*made, "never")}, made, opened


def test_runs_side_by_side(runs):
    """Prevents a difference of the wrong sign, and a run that is opened though nobody picked it."""
    openers, made, opened = runs
    view = RunComparer(openers)
    figure = view.static()
    (marks,) = [part for part in figure.data if getattr(part, "mode", "") == "markers"]
    expected = compare_pairs(made["other"].report.tasks["World"], made["base"].report.tasks["World"], resamples=500)
    assert list(marks.y) == pytest.approx([expected.difference])
    assert marks.y[0] + marks.error_y.array[0] == pytest.approx(expected.high)
    assert marks.y[0] - marks.error_y.arrayminus[0] == pytest.approx(expected.low)
    curves = {part.name: list(part.y) for part in figure.data if getattr(part, "mode", "") == "lines+markers"}
    assert curves == {"base": [10.0, 20.0], "other": [10.0, 30.0]}
    assert set(opened) == {"base", "other"}


# ------------------------------------------------------------------------------------------- every view


def every_view(encoders, playground, runs):
    return [
        (AttentionInspector(encoders, SENTENCE), "layer", 2),
        (NormExplorer(encoders, [SENTENCE, OTHER, "a cat"]), "removed", 3),
        (CaelExplorer(encoders["one"].backbone.config), "layer_1", True),
        (playground, "shape", "space"),
        (RunComparer(runs[0]), "picked", ("other",)),
    ]


def test_the_live_figure_follows_its_controls(encoders, playground, runs):
    """Prevents a widget that stays as it was drawn first, and a live figure that differs from the static one."""
    for view, name, value in every_view(encoders, playground, runs):
        view.widget()
        before = view.live.to_json()
        view.controls[name].value = value
        assert view.live.to_json() != before, type(view)
        live, static = go.Figure(view.live).to_plotly_json(), view.static().to_plotly_json()
        for trace_ in (*live["data"], *static["data"]):
            trace_.pop("uid", None)
        assert len(live["data"]) == len(static["data"])
        assert live["layout"].keys() == static["layout"].keys(), type(view)


def test_a_headless_run_shows_the_static_figure(encoders, playground, runs, monkeypatch):
    """Prevents an exported page with nothing where a widget was."""
    shown = []
    monkeypatch.setattr("cselab.views.view.display", shown.append)
    for view, _, _ in every_view(encoders, playground, runs):
        monkeypatch.setenv("CSELAB_RUN_DIR", "somewhere")
        view._ipython_display_()
        monkeypatch.delenv("CSELAB_RUN_DIR")
        view._ipython_display_()
        static, widget = shown[-2:]
        assert isinstance(static, go.Figure), type(view)
        assert not isinstance(widget, go.Figure)


def test_controls_have_labels(encoders, playground, runs):
    """Prevents a slider whose purpose nobody can read, aloud or on the screen."""
    for view, _, _ in every_view(encoders, playground, runs):
        assert isinstance(view, View)
        assert all(control.description for control in view.controls.values()), type(view)


def test_a_difference_is_drawn_at_its_methods_row_with_its_interval():
    """Prevents a point beside another method's name where a table lacks a row."""
    columns = ["average", "sd", "seeds", "difference", "low", "high"]
    nan = float("nan")
    one = pandas.DataFrame([[60, 1, 3, nan, nan, nan], [61, 1, 3, 1.0, 0.5, 1.5]], ["base", "A"], columns)
    two = pandas.DataFrame([[50, 1, 3, nan, nan, nan], [48, 1, 3, -2.0, -4.0, 0.0]], ["base", "B"], columns)
    figure = difference_chart({"real": one, "world": two}, "base")
    assert figure.layout.yaxis.ticktext == ("A", "B")
    (a, b) = figure.data
    assert [round(y) for y in (*a.y, *b.y)] == [0, 1]
    assert (b.x[0], b.error_x.array[0], b.error_x.arrayminus[0]) == (-2.0, 2.0, 2.0)
