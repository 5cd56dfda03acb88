"""Peak speed of this machine, to compare a training with."""

import functools
import time

import torch


@functools.cache
def matmul_peak(device: str, dtype: torch.dtype, *, most_seconds: float = 0.3) -> float:
    """Peak FLOP/s of this machine ("cpu", "cuda" or "mps"), in products of growing matrices.

    A size is tried only if it will end within `most_seconds` of the start: in bfloat16 on a
    processor without it, a product of 2048 x 2048 takes a minute.
    """
    began, peak, size, last = time.perf_counter(), 0.0, 256, 0.0
    while 4 * 8 * last < most_seconds - (time.perf_counter() - began):
        a = torch.randn(size, size, device=device).to(dtype)
        (a @ a)[0, 0].item()  # the first one of a size allocates
        times = []
        for _ in range(3):
            started = time.perf_counter()
            (a @ a)[0, 0].item()
            times.append(time.perf_counter() - started)
        last = min(times)
        peak = max(peak, 2 * size**3 / last)
        size = min(2 * size, 8192)
    return peak
