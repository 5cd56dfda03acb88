"""The cells of the solution notebooks run, with trainings of a moment; all checks are right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOLUTIONS = Path(__file__).resolve().parents[3] / "notebooks" / "solutions"
PROGRAM = """
import json, pathlib, sys
from cselab.workbook import course

QUICK = {"sentences": 300, "dev_pairs": 40, "synthetic_pairs": 200}
QUICK |= {"steps": 2, "eval_every": 2, "towers.steps": 2}
check, verdicts = course.check, []
course.check = lambda *a, **b: verdicts.append(check(*a, **b))
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.ipynb")):
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    parameters, *sources = ("".join(cell["source"]) for cell in cells)
    names, before = {"__name__": "__main__"}, len(verdicts)
    exec(parameters, names)
    names["settings"] = QUICK
    for source in sources:
        exec(compile(source, path.stem, "exec"), names)
    checks = sum(source.count("course.check(") for source in sources)
    assert len(verdicts) - before == checks > 0, path.name
assert all(verdicts), [verdict for verdict in verdicts if not verdict]
"""


@pytest.mark.slow
def test_every_solution_is_right(tmp_path):
    """Prevents a solution that its own check refuses, and one that no longer runs."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CSELAB")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(SOLUTIONS)],
        env={**kept, "CSELAB_OUTPUTS": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
