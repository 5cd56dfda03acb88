"""Whether bfloat16 is worth asking for: a processor without it multiplies four hundred times slower than in float32."""

import functools
import time

import torch

SIZE, TOO_SLOW = 256, 10
"""Rows of the square product that is timed, and how many times longer than in float32 it may take."""


@functools.cache
def has_bfloat16(device: str) -> bool:
    """Whether `device` ("cpu", "cuda", "mps") multiplies matrices in bfloat16 at a speed of the order of float32's.

    On a GPU torch knows. On a processor a product of 256 x 256 is timed in both, a third of a second at worst: capabilities have other
    names on every architecture, and those with a bfloat16 that is emulated well are served too.
    """
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several would wait for each other on a busy machine, longer than the product takes
    try:
        wide, narrow = (
            _seconds(torch.ones(SIZE, SIZE, dtype=kind, device=device)) for kind in (torch.float32, torch.bfloat16)
        )
    finally:
        torch.set_num_threads(threads)
    return narrow < TOO_SLOW * wide


def _seconds(matrix: torch.Tensor) -> float:
    """Of one product, the best of five."""
    taken = []
    for _ in range(5):
        started = time.perf_counter()
        (matrix @ matrix)[0, 0].item()
        taken.append(time.perf_counter() - started)
    return min(taken)
