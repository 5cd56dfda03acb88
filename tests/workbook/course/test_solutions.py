"""Every solution notebook is executed, with trainings of a moment, and every check says "right"."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

SOLUTIONS = Path(__file__).resolve().parents[3] / "notebooks" / "solutions"
QUICK = {
    "sentences": 300,
    "dev_pairs": 40,
    "steps": 2,
    "eval_every": 2,
    "towers.steps": 2,
    "synthetic_pairs": 200,
}


@pytest.mark.slow
def test_every_solution_is_right(tmp_path):
    """Prevents a solution that its own check refuses, and one that no longer runs."""
    paths = sorted(SOLUTIONS.glob("*.ipynb"))
    given = [part for name, value in QUICK.items() for part in ("-p", f"{name}={value}")]
    command = ["-m", "cselab", "run", *map(str, paths), "--outputs", str(tmp_path)]
    options = ["--name", "solutions", "--jobs", "2", *given]
    done = subprocess.run(
        [sys.executable, *command, *options], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for path in paths:
        notebook = nbformat.read(tmp_path / "runs" / "solutions" / path.name, as_version=4)
        verdicts = [
            (cell.source, output.data["text/plain"])
            for cell in notebook.cells
            for output in cell.get("outputs", [])
            if "course.check(" in cell.source and "text/plain" in output.get("data", {})
        ]
        checks = sum(cell.source.count("course.check(") for cell in notebook.cells)
        assert len(verdicts) == checks > 0, path.name
        wrong = [text for _, text in verdicts if ": right." not in text]
        assert not wrong, f"{path.name}: {wrong}"
