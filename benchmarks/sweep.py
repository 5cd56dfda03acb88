"""Measure how a sweep scales with its workers; writes outputs/reference/sweep.json.

Run `python benchmarks/sweep.py [--repeats 2]`. Sixteen runs of the tiny profile (SimCSE and JTCSE,
eight seeds, towers included), each time with an empty cache, on 1, 2 and 4 workers of one thread,
as far as this machine has cores. Efficiency is the time on one worker / (workers x time); `command`
includes the start of Python and of the cluster, `runs` does not.

The loss of the command is taken apart by processor time, of workers, client and scheduler: `work`
is that of one worker over that of many (below 1: the same work takes longer, for memory and caches
are shared, and each worker imports), `busy` how much of the workers' time it fills, over the same
of one worker (below 1: they wait for shared trainings, and at the end for the last run). Their
product is the efficiency of the command.
"""

import argparse
import json
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cselab.experiments.environment import environment_stamp
from cselab.machine import cpu_count

TARGET = Path(__file__).resolve().parents[1] / "outputs" / "reference" / "sweep.json"
RUNS = 16


def seconds(workers: int) -> dict[str, float]:
    """Time of one sweep: of its runs, of the whole command, and of all its processors."""
    folder = Path(tempfile.mkdtemp(prefix="cselab-sweep-"))
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    options = {
        "--seeds": f"1-{RUNS // 2}",
        "--workers": workers,
        "--threads": 1,
        "--store": folder / "s.sqlite",
        "--outputs": folder,
    }
    arguments = [str(word) for option in options.items() for word in option]
    program = [sys.executable, "-m", "cselab", "sweep", "-m", "simcse", "-m", "jtcse", *arguments]
    out = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    total, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(folder)
    minutes, rest = re.search(rf"{RUNS} of {RUNS} runs, \d at a time, (\d+):(\d+)", out).groups()
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    runs = 60 * int(minutes) + int(rest)
    return {"runs": runs, "command": round(total), "processor": round(processor)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="of all measurements; the shortest times count"
    )
    arguments = parser.parse_args()
    measured: dict[int, list[dict[str, float]]] = {}
    for _ in range(arguments.repeats):
        for workers in (n for n in (1, 2, 4) if n <= cpu_count()):
            measured.setdefault(workers, []).append(seconds(workers))
            print(workers, measured[workers][-1], flush=True)
    import torch

    best = {workers: min(times, key=lambda one: one["runs"]) for workers, times in measured.items()}
    alone = best[1]
    busy = {n: one["processor"] / (n * one["command"]) for n, one in best.items()}
    result = {
        "environment": environment_stamp(torch.device("cpu")),
        "runs": RUNS,
        "seconds": measured,
        "efficiency": {
            workers: {
                "runs": round(alone["runs"] / (workers * one["runs"]), 3),
                "command": round(alone["command"] / (workers * one["command"]), 3),
                "work": round(alone["processor"] / one["processor"], 3),
                "busy": round(busy[workers] / busy[1], 3),
            }
            for workers, one in best.items()
        },
    }
    TARGET.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["efficiency"], indent=1))


if __name__ == "__main__":
    main()
