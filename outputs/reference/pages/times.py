"""The running times that notebooks print: `python outputs/reference/pages/times.py RUN` reads a
finished run of the workbook, one notebook at a time, and writes them to
outputs/reference/times.json.

Memory is kept as it is; so are the times of notebooks that were not run, if the machine is the
same. A new notebook needs an entry, written by hand.
"""

import json
import sys
from pathlib import Path

TIMES = Path(__file__).resolve().parents[1] / "times.json"


def as_range(seconds: float) -> str:
    """From the measured time to twice as long, for slower machines, in minutes."""
    least, most = round(seconds / 60), round(seconds / 30)
    if most <= 1:
        return "a minute" if least else "under a minute"
    return f"{max(least, 1)} to {most} minutes"


def main(run: Path) -> None:
    """Write the times of a run of the default workbook; one that failed keeps its time, where
    all times are of one machine."""
    record = json.loads((run / "run.json").read_text())
    if profile := record["given"].get("profile"):
        sys.exit(f"{run} is a run of profile {profile}; expected none")
    times = json.loads(TIMES.read_text())
    row = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    done = {stem for stem, outcome in record["outcomes"].items() if not outcome["failure"]}
    if row["hardware"] != times["machine"] and (kept := times["notebooks"].keys() - done):
        sys.exit(f"{row['hardware']} is another machine; time {', '.join(sorted(kept))} there too")
    for stem in done & times["notebooks"].keys():
        times["notebooks"][stem]["time"] = as_range(record["outcomes"][stem]["seconds"])
    times["machine"] = row["hardware"]
    TIMES.write_text(json.dumps(times, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
