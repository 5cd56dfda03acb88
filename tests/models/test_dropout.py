"""Fast dropout drops what torch's drops: as many, anywhere, the mean kept, the gradient through
what stayed."""

import pytest
import torch

from cselab.models import dropout, load_backbone
from cselab.models.dropout import FastDropout


@pytest.mark.parametrize("p", [0.1, 0.5, 0.00025])
@pytest.mark.parametrize("shape", [(3, 5, 7), (400, 1001)])
def test_the_share_dropped_the_mean_and_the_gradient_are_dropouts(p, shape):
    """Prevents a share of the wrong side, a scale that moves the mean, and a mask that the gradient
    does not see."""
    torch.manual_seed(0)
    x = torch.ones(shape, requires_grad=True)
    y = FastDropout(p).train()(x)
    y.sum().backward()
    kept = y != 0
    share = 1 - kept.double().mean().item()
    assert share == pytest.approx(p, abs=5 * (p / x.numel()) ** 0.5 + 1e-5)
    torch.testing.assert_close(y[kept], torch.full_like(y[kept], 1 / (1 - p)), rtol=1e-4, atol=0)
    torch.testing.assert_close(x.grad, y)


def test_neighbouring_elements_are_dropped_independently():
    """Prevents the four elements of one draw from falling together."""
    torch.manual_seed(0)
    dropped = (FastDropout(0.5).train()(torch.ones(250_000, 4)) == 0).double()
    together = torch.corrcoef(dropped.T) - torch.eye(4)
    assert together.abs().max() < 0.01


def test_dropout_follows_the_seed_and_is_off_in_evaluation():
    """Prevents masks that a resumed run cannot draw again, and noise in embeddings."""
    layer, x = FastDropout(0.3).train(), torch.randn(50, 9)
    torch.manual_seed(4)
    first = layer(x)
    torch.manual_seed(4)
    assert torch.equal(layer(x), first)
    assert not torch.equal(layer(x), first)
    assert torch.equal(layer.eval()(x), x)
    assert torch.equal(FastDropout(0.0).train()(x), x)
    assert FastDropout(0.3).train()(x.double()).dtype == torch.float64


def attended(mask: torch.Tensor | None, p: float) -> torch.Tensor:
    """(B, L, h, L): the identity as values gives the attention itself."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 4, 40, 16)
    values = torch.eye(40).expand(3, 4, 40, 40)
    module = torch.nn.Module()
    module.is_causal = False
    return dropout.attention(module, query, key, values, mask, dropout=p, scaling=0.25)[0]


@pytest.mark.parametrize("padded", [True, False])
def test_attention_is_the_usual_one_with_some_of_it_dropped(padded):
    """Prevents attention to padding in training, a scale forgotten, and dropout before the
    softmax."""
    mask = (torch.arange(40) < torch.tensor([40, 30, 20])[:, None])[:, None, None, :].expand(
        3, 1, 40, 40
    )
    mask = mask if padded else None
    whole, thinned = attended(mask, 0.0), attended(mask, 0.25)
    kept = thinned != 0
    torch.testing.assert_close(thinned[kept], whole[kept] / 0.75)
    assert 1 - kept[whole != 0].double().mean().item() == pytest.approx(0.25, abs=0.02)
    if padded:
        assert not kept[1, ..., 30:].any()


def test_a_loaded_backbone_has_fast_dropout_and_saves_without_it(make_tower, tmp_path):
    """Prevents a backbone with torch's slow dropout, and a saved one that other libraries cannot
    open."""
    make_tower(1).save_pretrained(tmp_path / "tower")
    model = load_backbone(tmp_path / "tower", dropout=0.2)
    layers = [m for m in model.modules() if isinstance(m, torch.nn.Dropout)]
    assert {type(layer) for layer in layers} == {FastDropout}
    assert {layer.p for layer in layers} == {0.2}
    assert not any(layer.training for layer in layers)
    assert model.config._attn_implementation == dropout.ATTENTION
    model.save_pretrained(tmp_path / "again")
    # others do not know it
    assert dropout.ATTENTION not in (tmp_path / "again" / "config.json").read_text()
