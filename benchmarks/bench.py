"""Benchmarks of cselab and its peers: `make bench`.

Or run `python benchmarks/bench.py [--device cuda] [--only a,b]`. cselab and the peer are timed
alternately in one run. `least`, `median` and `most` are of the single ratios, `times` is the ratio
of their shortest times. Results are written to outputs/reference/benchmarks.json, one entry per
device, with the machine of each benchmark.
"""

import argparse
import json
from pathlib import Path

import growth  # noqa: F401  (each registers its benchmarks)
import inference  # noqa: F401
import torch
import training  # noqa: F401
from timing import BENCHMARKS

from cselab.experiments.environment import environment_stamp
from cselab.paths import replacing

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "outputs" / "reference" / "benchmarks.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    every = ",".join(sorted(BENCHMARKS))
    parser.add_argument("--only", default=every, help="letters of benchmarks, e.g. a,c")
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if unknown := set(arguments.only.split(",")) - BENCHMARKS.keys():
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {every}")
    device, path = torch.device(arguments.device), arguments.results
    results = json.loads(path.read_text()) if path.is_file() else {}
    entry = results.setdefault(device.type, {"figures": {}, "machines": {}})
    machine = {**environment_stamp(device), "threads": torch.get_num_threads()}
    for key in arguments.only.split(","):
        print(f"{key}: {BENCHMARKS[key].__doc__.splitlines()[0]}", flush=True)
        entry["machines"][key] = machine
        measured = BENCHMARKS[key](device)
        # a figure that the benchmark no longer gives would stand under another machine's name
        others = {n: f for n, f in entry["figures"].items() if f["benchmark"] != key}
        entry["figures"] = others | {n: {"benchmark": key, **f} for n, f in measured.items()}
        for name, figures in measured.items():
            print(f"   {name}: {figures}", flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as work:
            work.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
