"""Test for fast bfloat16: a CPU without it multiplies four hundred times slower than in float32."""

import functools
import time

import torch

SIZE, TOO_SLOW = 256, 10
"""Rows of the timed square product, and the largest ratio of its time to that in float32."""


@functools.cache
def has_bfloat16(device: str) -> bool:
    """Whether `device` ("cpu", "cuda", "mps") multiplies in bfloat16 about as fast as in float32.

    torch knows this of a GPU. On a CPU, a product is timed in both precisions, for at most a third
    of a second: names of capabilities differ between architectures.
    """
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    threads = torch.get_num_threads()
    # several threads would wait for each other on a busy machine, longer than the product takes
    torch.set_num_threads(1)
    try:
        float32, bfloat16 = (
            _seconds(torch.ones(SIZE, SIZE, dtype=kind, device=device))
            for kind in (torch.float32, torch.bfloat16)
        )
    finally:
        torch.set_num_threads(threads)
    return bfloat16 < TOO_SLOW * float32


def has_native_bfloat16(device: str) -> bool:
    """Whether `device` has matrix units for bfloat16; nothing is timed, so that the answer, on
    which keys depend, is the same on every call.

    AVX-512's instructions alone do not count: with them a step of SimCSE took 1.5 times as long as
    in float32.
    """
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device == "cpu" and bool(torch.cpu.get_capabilities().get("amx_bf16"))


def _seconds(matrix: torch.Tensor) -> float:
    """Time of one product, the shortest of five."""
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        (matrix @ matrix)[0, 0].item()
        seconds.append(time.perf_counter() - started)
    return min(seconds)
