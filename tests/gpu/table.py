"""Rows of study.py as a Markdown table: mean and spread over seeds, and the paired difference from a baseline.

python tests/gpu/table.py study-1.jsonl study-2.jsonl … [--against SimCSE] [--only "BeLLM*"] >> SYSTEMS.md
"""

import argparse
import json
from fnmatch import fnmatch
from pathlib import Path

import pandas

from cselab.evaluation import compare_seeds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--against", default="SimCSE")
    parser.add_argument(
        "--only", nargs="*", default=["*"], help="names of systems, * and ? as in a shell; all by default"
    )
    given = parser.parse_args()
    rows = pandas.DataFrame([json.loads(line) for path in given.results for line in path.read_text().splitlines()])
    kept = rows.method.map(lambda name: name == given.against or any(fnmatch(name, only) for only in given.only))
    print(table(rows[kept], given.against))


def table(rows: pandas.DataFrame, against: str) -> str:
    """One line a method, in the order of the study."""
    tasks = [c for c in rows.columns if c.startswith(("STS", "SICK", "World"))]
    averages = rows.pivot_table(index="seed", columns="method", values="average")
    header = ["method", *(tasks if len(tasks) > 1 else []), "average", "sd", "seeds", f"− {against}", "95 % interval"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for method in dict.fromkeys(rows.method):
        mine = rows[rows.method == method]
        cells = [f"{mine[task].mean():.1f}" for task in tasks] if len(tasks) > 1 else []
        cells += [f"{mine.average.mean():.2f}", f"{mine.average.std():.2f}", str(len(mine))]
        both = averages[[method, against]].dropna() if method != against else pandas.DataFrame()
        if len(both) > 2:
            difference = compare_seeds(both[method], both[against])
            cells += [f"{difference.mean:+.2f}", f"[{difference.low:+.2f}, {difference.high:+.2f}]"]
        else:
            cells += ["", ""]
        lines.append("| " + " | ".join([method, *cells]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
