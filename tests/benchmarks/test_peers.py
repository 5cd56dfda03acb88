"""The peers of the benchmarks compute what they are compared with."""

import datasets
import pytest
import torch
from peers import LoopTwin, ReleasedTwin
from timing import TINY, new_method, step_flops, stock_tower
from training import PAPER, RELEASED

from cselab.methods import StepContext
from cselab.models import load_tokenizer
from cselab.models.dropout import dropout_rate

HEADS = StepContext(seed=0, step=0, coin=True)

SENTENCES = ["A man plays a guitar.", "The dog sleeps.", "Rain fell all day.", "She reads a book."]


@pytest.mark.parametrize(("twin", "losses"), [(ReleasedTwin, RELEASED), (LoopTwin, PAPER)])
def test_a_peer_has_the_loss_that_it_is_timed_against(twin, losses):
    """Prevents a ratio of two different losses."""
    cpu, tokenizer = torch.device("cpu"), load_tokenizer(TINY)
    towers = [stock_tower(cpu, "eager") for _ in range(2)]
    torch.manual_seed(0)
    with torch.no_grad():  # equal towers would have no norm term
        for parameter in towers[1].parameters():
            parameter.add_(0.5 * parameter.std(unbiased=False) * torch.randn_like(parameter))
    peer = twin(*towers, tokenizer).eval()
    method = new_method("tncse", **losses)
    for ours, theirs in zip(method.towers.values(), towers, strict=True):
        ours.load_state_dict(theirs.state_dict())
    batch = tokenizer(SENTENCES * 2, padding=True, return_tensors="pt", return_token_type_ids=False)
    with dropout_rate(method, 0.0), torch.no_grad():
        found = method.losses(dict(batch), HEADS)
        expected = peer.loss(peer.batch(SENTENCES, cpu))
    assert found["ictm"] > 1e-3
    torch.testing.assert_close(sum(found.values()), expected, rtol=1e-4, atol=1e-5)


def test_flops_of_a_step_by_hand():
    """Prevents a count of one view, of the forward pass alone, or of a whole batch."""
    method, rows = new_method("simcse", dropout=0.0), [[2, 7, 8, 9, 3]] * 16
    found = step_flops(method, datasets.Dataset.from_dict({"input_ids": rows}), torch.device("cpu"))
    config, length = method.encoder.backbone.config, 5
    d, inner = config.hidden_size, config.intermediate_size
    layer = 2 * length * (4 * d * d + 2 * d * inner) + 4 * length * length * d
    # of the last layer, keys and values of all tokens, and the rest of [CLS] alone
    last = 4 * length * (d * d + d) + 4 * (d * d + d * inner)
    expected = 3 * 2 * ((config.num_hidden_layers - 1) * layer + last)
    assert found == pytest.approx(expected, rel=1e-6)
