"""The running times that notebooks print: `python docs/times.py RUN` reads a finished run of the
workbook and writes them to outputs/reference/times.json.

Memory, the times of the other profiles and of notebooks that were not run are kept as they are.
"""

import json
import sys
from pathlib import Path

TIMES = Path(__file__).resolve().parents[1] / "outputs" / "reference" / "times.json"


def main(run: Path) -> None:
    times = json.loads(TIMES.read_text())
    outcomes = json.loads((run / "run.json").read_text())["outcomes"]
    for stem, outcome in outcomes.items():
        seconds = outcome["seconds"]
        minutes = f"{seconds / 60:.1f} minutes"
        times["notebooks"][stem]["tiny"]["time"] = (
            minutes if seconds >= 90 else f"{10 * round(seconds / 10)} s"
        )
    row = json.loads((run / "results.jsonl").read_text().splitlines()[0])
    times["machine"] = row["hardware"]
    TIMES.write_text(json.dumps(times, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
