"""Methods that remember: the queue, the momentum encoder, ESimCSE and IS-CSE."""

from dataclasses import replace

import pytest
import torch
from build_method import build
from method_helpers import HEADS

from cselab.errors import SettingsError
from cselab.losses import info_nce
from cselab.methods.baselines.memory import Momentum, Queue

SAME = ("same", "same")  # the text itself, so that an anchor's vector is known


def test_the_queue_holds_the_last_rows_in_order():
    """Prevents a queue that drops the newest, and one that a resumed run finds empty."""
    queue = Queue(5, 1)
    assert queue.rows().shape == (0, 1)
    for start in (0, 2, 4, 6):
        queue.add(torch.tensor([[start], [start + 1.0]]))
    assert queue.rows()[:, 0].tolist() == [3, 4, 5, 6, 7]
    again = Queue(5, 1)
    again.load_state_dict(queue.state_dict())  # as a checkpoint does
    assert torch.equal(again.rows(), queue.rows())


def test_the_momentum_encoder_follows_slowly_and_takes_no_gradient():
    """Prevents the two weights of the mean from changing places."""
    fast = torch.nn.Linear(2, 2)
    slow = Momentum(fast, 0.9)
    before = slow.copy.weight.clone()
    with torch.no_grad():
        fast.weight.add_(1.0)
    slow.update(fast)
    torch.testing.assert_close(slow.copy.weight, 0.9 * before + 0.1 * fast.weight)
    assert not any(p.requires_grad for p in slow.parameters())


def test_esimcse_meets_the_last_two_and_a_half_batches(towers, batch):
    """Prevents a queue with the batch's own vectors, of the trained encoder, or of another
    length."""
    method = build("esimcse", towers, batch_size=4, augment=SAME).train()
    first = method(batch)
    without = method.compare(first, HEADS)["queue"]
    torch.testing.assert_close(without, info_nce(*first.sentence))  # nothing is queued yet
    for _ in range(3):
        method.after_step(first)
    assert len(method.last.rows()) == 10
    torch.testing.assert_close(method.last.rows()[-4:], first.extra[0])
    expected = info_nce(*first.sentence, more_negatives=method.last.rows())
    torch.testing.assert_close(method.compare(first, HEADS)["queue"], expected)
    assert not first.extra.requires_grad


def test_esimcse_queues_what_its_head_makes(towers, batch):
    """Prevents anchors after the head that meet negatives before it: two spaces in one loss."""
    method = build("esimcse", towers, head="mlp_train_only", augment=SAME)
    outputs = method(batch)
    torch.testing.assert_close(outputs.extra[0], outputs.sentence[0].detach())
    before = method.momentum.copy.head[0].bias.clone()
    with torch.no_grad():
        method.head[0].bias.add_(1.0)
    method.after_step(outputs)
    torch.testing.assert_close(method.momentum.copy.head[0].bias, before + 0.005)


def test_iscse_smooths_over_its_nearest_memories(towers, batch):
    """Against a loop; prevents neighbours by inner product, weights that do not add to 1, and
    smoothing before there is a memory."""
    method = build("iscse", towers, neighbours=2, attention=3, warm_up=10)
    outputs = method(batch)
    a, b = outputs.sentence
    torch.testing.assert_close(method.over_neighbours(b), b)
    lengths = torch.tensor([[1.0], [50.0], [1.0], [1.0], [1.0], [1.0]])
    method.memory.add(torch.randn(6, 32) * lengths)
    expected = []
    for row in b:
        cosines = torch.cosine_similarity(row[None], method.memory.rows())
        near = sorted(range(6), key=lambda i: -cosines[i])[:2]
        group = torch.stack([row, *(method.memory.rows()[i] for i in near)])
        scores = torch.cosine_similarity(row[None], group).mul(3).exp()
        expected.append((scores / scores.sum()) @ group)
    torch.testing.assert_close(method.over_neighbours(b), torch.stack(expected))
    half = method.compare(outputs, replace(HEADS, step=5))["smoothed"]
    torch.testing.assert_close(half, 0.1 * 0.5 * info_nce(a, torch.stack(expected)))
    method.after_step(outputs)
    torch.testing.assert_close(method.memory.rows()[-4:], b)


def test_a_memory_is_never_too_small(towers, batch):
    """Prevents a share of a batch that rounds down to a queue of no rows, and a run in which
    nothing is ever smoothed."""
    method = build("esimcse", towers, batch_size=4, queue_batches=0.1)
    outputs = method(batch)
    method.after_step(outputs)
    torch.testing.assert_close(method.last.rows(), outputs.extra[0][-1:])
    with pytest.raises(SettingsError, match="^neighbours=8 of a memory of 4 vectors"):
        build("iscse", towers, memory=4)
    build("iscse", towers, memory=4, neighbours=4)
