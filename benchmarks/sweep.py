"""Measure how a sweep scales with its workers; writes outputs/reference/sweep.json.

Run `python benchmarks/sweep.py [--repeats 2]`. Eight runs of the tiny profile (SimCSE and JTCSE,
four seeds, towers included), each time with an empty cache, on 1, 2 and 4 workers of one thread and
on one worker of four threads. Efficiency is the time on one worker / (workers x threads x time);
`command` includes the start of Python and of the cluster, `runs` does not.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cselab.experiments.environment import environment_stamp

TARGET = Path(__file__).resolve().parents[1] / "outputs" / "reference" / "sweep.json"


def seconds(workers: int, threads: int) -> dict[str, float]:
    """Time of one sweep: of its runs, and of the whole command."""
    folder = Path(tempfile.mkdtemp(prefix="cselab-sweep-"))
    started = time.perf_counter()
    options = {
        "--seeds": "1-4",
        "--workers": workers,
        "--threads": threads,
        "--store": folder / "s.sqlite",
        "--outputs": folder,
    }
    arguments = [str(word) for option in options.items() for word in option]
    program = [sys.executable, "-m", "cselab", "sweep", "-m", "simcse", "-m", "jtcse", *arguments]
    out = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    total = time.perf_counter() - started
    shutil.rmtree(folder)
    minutes, rest = re.search(r"8 of 8 runs, \d at a time, (\d+):(\d+)", out).groups()
    return {"runs": 60 * int(minutes) + int(rest), "command": round(total)}


def shortest(times: list[dict[str, float]]) -> dict[str, float]:
    """The shortest times over repetitions."""
    return {part: min(one[part] for one in times) for part in ("runs", "command")}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--repeats", type=int, default=1, help="of all measurements; the shortest times count"
    )
    arguments = parser.parse_args()
    measured: dict[tuple[int, int], list[dict[str, float]]] = {}
    for _ in range(arguments.repeats):
        for workers, threads in ((1, 1), (2, 1), (4, 1), (1, 4)):
            measured.setdefault((workers, threads), []).append(seconds(workers, threads))
            print(workers, threads, measured[workers, threads][-1], flush=True)
    import torch

    result = {
        "environment": environment_stamp(torch.device("cpu")),
        "seconds": {},
        "efficiency": {},
    }
    alone = shortest(measured[1, 1])
    for (workers, threads), times in measured.items():
        name, best = f"{workers} x {threads}", shortest(times)
        result["seconds"][name] = times
        result["efficiency"][name] = {
            part: round(alone[part] / (workers * threads * best[part]), 3) for part in best
        }
    TARGET.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["efficiency"], indent=1))


if __name__ == "__main__":
    main()
