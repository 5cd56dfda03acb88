"""Large batches on small memory: cached gradients (GradCache, Gao et al. 2021, arXiv 2101.06983).

The loss needs the vectors of all sentences at once, but their graphs only one chunk at a time.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.methods import Batch, Vectors


def cached_backward(
    encode: Callable[[Batch], Vectors],
    loss_of: Callable[[Vectors], Float[Tensor, ""]],
    batch: Batch,
    *,
    chunk: int,
    views: int = 2,
    unsynced: Callable[[], AbstractContextManager] = nullcontext,
) -> Float[Tensor, ""]:
    """Adds the gradient of `loss_of(encode(batch))` to the parameters, `chunk` sentences at a time; returns the loss.

    Vectors are computed without a graph, the loss and its gradient for them follow, and each chunk is computed again, now
    with a graph and with the random numbers (dropout) of its first time, and takes its part of that gradient.

    batch: tensors of views * N rows, view-major, or of N. unsynced: what the chunks but the last run in (DDP's `no_sync`).
    """
    parts = list(_chunks(batch, chunk, views))
    device = next(iter(batch.values())).device
    moments, cached = [], []
    with torch.no_grad():
        for part in parts:
            moments.append(_random_state(device))
            cached.append(encode(part))
    vectors = {name: torch.cat([part[name] for part in cached], dim=1).requires_grad_() for name in cached[0]}
    loss = loss_of(vectors)
    loss.backward()
    start = 0
    for number, (part, moment) in enumerate(zip(parts, moments, strict=True), 1):
        with nullcontext() if number == len(parts) else unsynced(), _replayed(moment, device):
            again = encode(part)
            stop = start + next(iter(again.values())).shape[1]
            trained = [name for name in again if again[name].requires_grad]  # a teacher's vectors are not
            gradients = [vectors[name].grad[:, start:stop] for name in trained]
            torch.autograd.backward([again[name] for name in trained], gradients)
            start = stop
    return loss.detach()


def _chunks(batch: Batch, chunk: int, views: int) -> Iterator[Batch]:
    """Each with all views of its sentences, and what is one row a sentence (a teacher's vectors)."""
    sentences = len(batch["input_ids"]) // views
    for start in range(0, sentences, chunk):
        part = slice(start, start + chunk)
        yield {
            name: rows[part] if len(rows) == sentences else rows.unflatten(0, (views, -1))[:, part].flatten(0, 1)
            for name, rows in batch.items()
        }


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    return torch.get_rng_state(), torch.cuda.get_rng_state(device) if device.type == "cuda" else None


@contextmanager
def _replayed(moment: tuple[Tensor, Tensor | None], device: torch.device) -> Iterator[None]:
    cpu, cuda = moment
    with torch.random.fork_rng(devices=[device] if cuda is not None else []):
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)
        yield
