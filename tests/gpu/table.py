"""Rows of study.py as a Markdown table: mean and spread over seeds, and the paired difference from a baseline.

python tests/gpu/table.py study-1.jsonl study-2.jsonl … [--against SimCSE] [--only "BeLLM*"] >> SYSTEMS.md
"""

import argparse
import json
from pathlib import Path

import pandas

from cselab.evaluation import compare_methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--against", default="SimCSE")
    parser.add_argument(
        "--only", nargs="*", default=["*"], help="names of systems, * and ? as in a shell; all by default"
    )
    given = parser.parse_args()
    rows = pandas.DataFrame([json.loads(line) for path in given.results for line in path.read_text().splitlines()])
    print(table(rows, given.against, given.only))


def table(rows: pandas.DataFrame, against: str, only: list[str]) -> str:
    """One line a method, in the order of the study."""
    tasks = [c for c in rows.columns if c.startswith(("STS", "SICK", "World"))]
    tasks = tasks if len(tasks) > 1 else []
    header = ["method", *tasks, "average", "sd", "seeds", f"− {against}", "95 % interval"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for method, found in compare_methods(rows, against, only).iterrows():
        mine = rows[rows.method == method]
        cells = [
            *(f"{mine[task].mean():.1f}" for task in tasks),
            f"{found.average:.2f}",
            f"{found.sd:.2f}",
            f"{found.seeds:.0f}",
        ]
        known = not pandas.isna(found.difference)
        cells += [f"{found.difference:+.2f}", f"[{found.low:+.2f}, {found.high:+.2f}]"] if known else ["", ""]
        lines.append("| " + " | ".join([method, *cells]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
