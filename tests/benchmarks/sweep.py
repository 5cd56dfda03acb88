"""How a sweep grows with its workers: `python tests/benchmarks/sweep.py [--repeats 2]`, results into outputs/reference/sweep.json.

Eight runs of the tiny profile (SimCSE and JTCSE, four seeds, towers included), each time from nothing, on 1, 2 and 4 workers of one
thread, and on one worker of four threads. Efficiency is time on one worker / (workers x threads x time); `command` includes the start
of Python and of the cluster, `runs` does not.
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

from cselab.environment import environment_stamp

TARGET = Path(__file__).resolve().parents[2] / "outputs" / "reference" / "sweep.json"


def seconds(workers: int, threads: int) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="cselab-sweep-"))
    started = time.perf_counter()
    command = ["sweep", "-m", "simcse", "-m", "jtcse", "--seeds", "1-4", "--workers", str(workers), "--threads", str(threads),
               "--store", folder / "s.sqlite", "--outputs", folder]  # fmt: skip
    out = subprocess.run([sys.executable, "-m", "cselab", *command], check=True, capture_output=True, text=True).stdout
    whole = time.perf_counter() - started
    shutil.rmtree(folder)
    minutes, rest = re.search(r"8 of 8 runs, \d at a time, (\d+):(\d+)", out).groups()
    return {"runs": 60 * int(minutes) + int(rest), "command": round(whole)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1, help="of all, one after the other; the best counts")
    given = parser.parse_args()
    found: dict[tuple[int, int], list[dict[str, float]]] = {}
    for _ in range(given.repeats):
        for workers, threads in ((1, 1), (2, 1), (4, 1), (1, 4)):
            found.setdefault((workers, threads), []).append(seconds(workers, threads))
            print(workers, threads, found[workers, threads][-1], flush=True)
    import torch

    result = {"environment": environment_stamp(torch.device("cpu")), "seconds": {}, "efficiency": {}}
    for (workers, threads), times in found.items():
        name = f"{workers} x {threads}"
        result["seconds"][name] = times
        best, alone = (
            {what: min(t[what] for t in some) for what in ("runs", "command")} for some in (times, found[1, 1])
        )
        result["efficiency"][name] = {what: round(alone[what] / (workers * threads * best[what]), 3) for what in best}
    TARGET.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result["efficiency"], indent=1))


if __name__ == "__main__":
    main()
