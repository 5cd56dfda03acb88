"""Training in several processes: each computes the loss with the negatives of all processes."""

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from accelerate import PartialState
from jaxtyping import Shaped
from torch import Tensor

TIMEOUT = timedelta(days=1)
"""Timeout of the process group: one may translate or encode a corpus while others wait."""


def join_process_group(device: torch.device) -> torch.device:
    """Join the processes of `accelerate launch` or `torchrun`; returns this process's device."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return device
    return PartialState(cpu=device.type == "cpu", timeout=TIMEOUT).device


def rank_and_world() -> tuple[int, int]:
    """Rank of this process and number of processes; (0, 1) outside a process group."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


def gather_sentences(part: Shaped[Tensor, "..."], *, axis: int) -> Shaped[Tensor, "..."]:
    """Concatenate the parts of all processes along `axis`, in rank order; their sizes may differ.

    Only the part of this process has a graph. Every process computes the loss of the whole batch,
    and the gradient of its sentences. DDP averages the gradients of the processes, but their sum is
    needed, so multiply the loss by the number of processes before `backward`.
    """
    rank, world = rank_and_world()
    if world == 1:
        return part
    rows = part.detach().movedim(axis, 0).contiguous()
    sizes = [torch.zeros(1, dtype=torch.int64, device=rows.device) for _ in range(world)]
    dist.all_gather(sizes, torch.tensor([len(rows)], device=rows.device))
    longest = int(torch.cat(sizes).max())
    padded = torch.cat([rows, rows.new_zeros(longest - len(rows), *rows.shape[1:])])
    parts = [torch.empty_like(padded) for _ in range(world)]
    dist.all_gather(parts, padded)
    parts = [one[: int(size)].movedim(0, axis) for one, size in zip(parts, sizes, strict=True)]
    parts[rank] = part
    return torch.cat(parts, dim=axis)


def from_first_process(value: Any) -> Any:
    """Broadcast the first process's value, such as a score or path that all must agree on."""
    if rank_and_world()[1] == 1:
        return value
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


def wait_for_all() -> None:
    """Wait until every process has called this."""
    if rank_and_world()[1] > 1:
        dist.barrier()
