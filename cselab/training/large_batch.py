"""Large batches in little memory by cached gradients (GradCache)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from cselab.methods import Batch, Outputs


def cached_backward(
    encode: Callable[[Batch], Outputs],
    loss_of: Callable[[Outputs], Float[Tensor, ""]],
    batch: Batch,
    *,
    chunk: int,
    views: int = 2,
    unsynced: Callable[[], AbstractContextManager] = nullcontext,
) -> Float[Tensor, ""]:
    """Add the gradient of `loss_of(encode(batch))` to the parameters.

    Gao et al. 2021, https://arxiv.org/abs/2101.06983. First, the vectors are computed without a
    graph, then the loss, which is returned, and its gradient for the vectors. Then each chunk is
    computed again with a graph, with the same random numbers (dropout), and receives its part.

    Args:
        batch: Tensors of views * N rows, view-major, or of N rows.
        chunk: Number of sentences whose graph is kept at a time.
        unsynced: A context manager for all chunks except the last (DDP's `no_sync`).
    """
    parts = list(_chunks(batch, chunk, views))
    device = next(iter(batch.values())).device
    states, cached = [], []
    with torch.no_grad():
        for part in parts:
            states.append(_random_state(device))
            cached.append(encode(part))
    tensors = [part.tensors() for part in cached]
    outputs = {
        name: torch.cat([part[name] for part in tensors], dim=1).requires_grad_()
        for name in tensors[0]
    }
    loss = loss_of(replace(cached[0], **outputs))
    loss.backward()
    start = 0
    for number, (part, state) in enumerate(zip(parts, states, strict=True), 1):
        synced = nullcontext() if number == len(parts) else unsynced()
        with synced, _with_random_state(state, device):
            again = encode(part).tensors()
            stop = start + next(iter(again.values())).shape[1]
            # a teacher's vectors have no graph, those that no term reads no gradient
            read = (name for name in again if outputs[name].grad is not None)
            trained = [name for name in read if again[name].requires_grad]
            gradients = [outputs[name].grad[:, start:stop] for name in trained]
            torch.autograd.backward([again[name] for name in trained], gradients)
            start = stop
    return loss.detach()


def _chunks(batch: Batch, chunk: int, views: int) -> Iterator[Batch]:
    """Chunks of sentences, with all views and with single rows (a teacher's vectors)."""
    sentences = len(batch["input_ids"]) // views

    def rows_of(rows: Tensor, part: slice) -> Tensor:
        if len(rows) == sentences:
            return rows[part]
        return rows.unflatten(0, (views, -1))[:, part].flatten(0, 1)

    for start in range(0, sentences, chunk):
        part = slice(start, start + chunk)
        yield {name: rows_of(rows, part) for name, rows in batch.items()}


def _random_state(device: torch.device) -> tuple[Tensor, Tensor | None]:
    """State of the random generators of the CPU and, if in use, of the GPU."""
    cuda = torch.cuda.get_rng_state(device) if device.type == "cuda" else None
    return torch.get_rng_state(), cuda


@contextmanager
def _with_random_state(state: tuple[Tensor, Tensor | None], device: torch.device) -> Iterator[None]:
    cpu, cuda = state
    with torch.random.fork_rng(devices=[device] if cuda is not None else []):
        torch.set_rng_state(cpu)
        if cuda is not None:
            torch.cuda.set_rng_state(cuda, device)
        yield
