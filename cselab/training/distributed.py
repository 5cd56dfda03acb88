"""Several processes, one batch: every process sees the vectors of all sentences, so none of its negatives is missing."""

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from jaxtyping import Shaped
from torch import Tensor

PATIENCE = timedelta(days=1)
"""That processes wait for one another: the first may translate a corpus meanwhile."""


def join(device: torch.device) -> torch.device:
    """The device of this process; one of several that `accelerate launch` or `torchrun` has started joins their group."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    return PartialState(cpu=device.type == "cpu", timeout=PATIENCE).device


def rank_and_world() -> tuple[int, int]:
    """This process's number and how many there are; (0, 1) outside a process group."""
    return (dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1)


def gather_sentences(part: Shaped[Tensor, "..."], *, axis: int) -> Shaped[Tensor, "..."]:
    """The parts of all processes along `axis`, in rank order; they may differ in size there.

    The own part keeps its graph, the others' are constants. Every process then computes the loss of the whole batch,
    and its gradient for its own sentences. DDP takes the mean of the processes' gradients where the sum is meant:
    multiply the loss by the number of processes before `backward`.
    """
    rank, world = rank_and_world()
    if world == 1:
        return part
    own = part.detach().movedim(axis, 0).contiguous()
    sizes = [torch.zeros(1, dtype=torch.int64, device=own.device) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([len(own)], device=own.device))
    longest = int(torch.cat(sizes).max())
    padded = torch.cat([own, own.new_zeros(longest - len(own), *own.shape[1:])])
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    parts = [rows[: int(size)].movedim(0, axis) for rows, size in zip(parts, sizes, strict=True)]
    parts[rank] = part
    return torch.cat(parts, dim=axis)


def from_first(value: Any) -> Any:
    """What the first process has: a score that all must agree on, a path."""
    if rank_and_world()[1] == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


def wait() -> None:
    """Until every process is here."""
    if rank_and_world()[1] > 1:
        dist.barrier()
