"""Terms: how a configuration names them, what one may read, and the shared ones."""

import pytest
import torch
from build_method import build
from method_helpers import HEADS

from cselab.errors import SettingsError
from cselab.losses import dimension_contrast, info_nce, off_dropout_info_nce, split_info_nce
from cselab.methods import TermConfig, registered, term

SimCSE = registered("simcse")


def terms_of(setting) -> list[tuple[str, float]]:
    """Names and weights of the terms that a setting gives SimCSE."""
    terms = SimCSE.Config().changed({"terms": setting}).terms
    return [(name, config.weight) for name, config in terms.items()]


@pytest.mark.parametrize(
    ("setting", "weights"),
    [
        ({"nce": 1, "dcl": 0.5}, {"nce": 1, "dcl": 0.5}),
        ({"dcl": 0.5, "nce": 1}, {"dcl": 0.5, "nce": 1}),
        (["nce", "dcl"], {"nce": 1, "dcl": 0.1}),
        ({"nce": 1, "dcl": {"temperature": 2}}, {"nce": 1, "dcl": 0.1}),
        ({"nce": 1, "dcl": 0}, {"nce": 1}),
        ({"nce": 1, "dcl": {"weight": 0, "temperature": 2}}, {"nce": 1}),
    ],
)
def test_terms_are_set_by_name_with_or_without_weights(setting, weights):
    """Prevents a term without a weight from losing its own default, and weight 0 from being
    computed for nothing."""
    assert terms_of(setting) == list(weights.items())


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"nec": 1}, "unknown term 'nec'; did you mean 'nce'"),
        (["nce", "whitend"], "unknown term 'whitend'; did you mean 'whitened'"),
        ({"ictm": 1}, "unknown term 'ictm'"),
        (["nce", "nce"], "'nce' is named twice"),
        ({"nce": "much"}, "'much'"),
        ({"nce": -1}, "expected 0.0 or more"),
        ({"nce": float("nan")}, "nan"),
        ({"nce": 0}, "no term is left"),
        ([], "no term is left"),
        ("nce,dcl", "expected names or weights, such as .*got 'nce,dcl'"),
        ({"dcl": {"temprature": 2}}, "temprature"),
    ],
)
def test_bad_terms_are_refused(setting, message):
    """Prevents a sweep over a mistyped term, whose every point would be the same."""
    with pytest.raises(SettingsError, match=message):
        terms_of(setting)


def test_one_hyperparameter_is_a_dotted_path():
    """Prevents a path that changes another term, or that resets the term's other numbers."""
    tncse = registered("tncse").Config()
    changed = tncse.changed({"terms.dcl.temperature": 2, "terms.ictm": 0.1, "terms.icnce": 0})
    assert list(changed.terms) == ["nce", "ictm", "dcl"]
    assert (changed.terms["dcl"].temperature, changed.terms["dcl"].weight) == (2, 0.1)
    assert changed.terms["ictm"] == tncse.terms["ictm"].model_copy(update={"weight": 0.1})
    with pytest.raises(SettingsError, match="terms.dcl.temprature.*terms.dcl.temperature"):
        tncse.changed({"terms.dcl.temprature": 2})


class Margin(TermConfig):
    weight: float = 0.25
    margin: float = 2.0


class Mine(SimCSE):
    @term(Margin)
    def apart(self, outputs, step):
        return self.distance(outputs) - self.terms["apart"].margin

    def distance(self, outputs):
        a, b = outputs.sentence
        return (a - b).square().sum(-1).mean()


@pytest.mark.parametrize("kind", [Mine, type("Heir", (Mine,), {})])
def test_a_marked_method_is_a_term_with_its_configuration(towers, batch, kind):
    """Prevents an unmarked method from being offered, a weight that is not applied, and a term
    that a subclass loses."""
    assert kind.own_terms == {"apart": Margin}
    config = kind.Config(method="simcse", terms=["nce", "apart"])
    changed = config.changed({"terms.apart.margin": 4, "terms.apart": 1})
    for settings, expected in ((config, -0.5), (changed, -4.0)):  # equal views: 0.25 * (0 - 2)
        losses = kind.build(settings, towers[:1]).eval().losses(batch, HEADS)
        torch.testing.assert_close(losses["apart"].item(), expected)
    with pytest.raises(SettingsError, match="unknown term 'apart'"):
        terms_of(["apart"])


def test_imsimcse_is_its_two_losses_weighted(towers, batch):
    """Prevents lambda from being lost, and a clean pass of the second view's text."""
    method = build("imsimcse", towers, head="none")
    other = {**batch, "input_ids": batch["input_ids"].clone()}
    other["input_ids"][4:, 1] = 7  # as after a round trip: the second views are other texts
    a, b = method.encoder(**other).unflatten(0, (2, -1))
    losses = method.losses(other, HEADS)
    assert list(losses) == ["off_info", "dcl"]
    torch.testing.assert_close(losses["off_info"], off_dropout_info_nce(a, b, a))
    torch.testing.assert_close(losses["dcl"], 0.1 * dimension_contrast(a, b))
    assert not torch.isclose(losses["off_info"], off_dropout_info_nce(a, b, b))


def test_the_clean_pass_disturbs_nothing(towers, batch):
    """Prevents the dropout-free pass from drawing random numbers, from having dropout, and from
    being a constant."""
    outputs = []
    for name in ("simcse", "imsimcse"):
        method = build(name, towers, dropout=0.3, head="none").train()
        torch.manual_seed(1)
        outputs.append((method(batch), torch.rand(1)))
        assert method.encoder.training
    (one, after_one), (two, after_two) = outputs
    torch.testing.assert_close(one.sentence, two.sentence)
    assert torch.equal(after_one, after_two)
    first = {name: rows[:4] for name, rows in batch.items()}
    torch.testing.assert_close(two.clean[0], method.eval().encoder(**first))
    assert two.clean.requires_grad


@pytest.mark.parametrize("size", [20, 5])
def test_a_group_size_that_does_not_divide_the_features_is_refused(small_pretrained, batch, size):
    """Prevents one group of 32 features in the place of groups of 20, and a message about a number
    of groups, which nobody gave."""
    terms = {"whitened": {"group_size": size}}
    method = build("simcse", [small_pretrained], terms=terms)
    message = rf"^terms.whitened.group_size={size} .* 32 features; use one of 1, 2, 4, 8, 16, 32$"
    with pytest.raises(SettingsError, match=message):
        method.losses(batch, HEADS)


@pytest.mark.parametrize("noise_on", ["positives", "negatives"])
@pytest.mark.parametrize("noise", ["more", "less"])
@pytest.mark.parametrize("noisy_views", [1, 2])
def test_the_noise_study_is_a_loop_over_pairs(towers, batch, noise_on, noise, noisy_views):
    """Prevents noise on the wrong pairs or views, and a mean of one pass."""
    split = {"noise": noise, "noise_on": noise_on, "noise_passes": 3, "noisy_views": noisy_views}
    method = build("simcse_noise", towers, terms={"split": split}, dropout=0.3).train()
    torch.manual_seed(0)
    outputs = method(batch)
    plain, changed = outputs.sentence, outputs.extra
    a, b = changed if noise_on == "positives" else plain
    c, d = changed if noise_on == "negatives" else plain
    total = 0.0
    for i in range(4):
        positive = torch.exp(torch.cosine_similarity(a[i], b[i], dim=0) / 0.05)
        pairs = (torch.cosine_similarity(c[i], d[j], dim=0) / 0.05 for j in range(4) if j != i)
        total = total - torch.log(positive / (positive + sum(map(torch.exp, pairs)))) / 4
    torch.testing.assert_close(method.compare(outputs, HEADS)["split"], total)
    if noise == "more":
        moved = (changed - plain).abs().amax((1, 2)) > 0
        assert moved.tolist() == [noisy_views == 2, True]


def test_split_info_nce_with_one_pair_is_info_nce():
    """Prevents duplicates from being negatives in one of the two forms."""
    torch.manual_seed(0)
    a, b = torch.randn(2, 6, 8, dtype=torch.float64)
    ids = torch.tensor([1, 2, 1, 3, 4, 5])
    split = split_info_nce((a, b), (a, b), ids=ids)
    torch.testing.assert_close(split, info_nce(a, b, ids=ids), atol=1e-10, rtol=0)
