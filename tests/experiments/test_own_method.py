"""A researcher's own method: fifteen lines in a file that is in no package."""

import subprocess
import sys

import pytest

from cselab.experiments.store import Store

METHOD = """
from cselab.evaluation import alignment, uniformity
from cselab.methods import Terms, register, term
from cselab.methods.simcse import SimCSE


@register("mine")
class AlignUniform(SimCSE):
    class Config(SimCSE.Config):
        terms: Terms = {"align": 10, "uniform": 1}

    @term
    def align(self, outputs, step):
        return alignment(*outputs.sentence)

    @term
    def uniform(self, outputs, step):
        return sum(uniformity(view, t=2) for view in outputs.sentence) / 2
"""
QUICK = {
    "sentences": 60,
    "dev_pairs": 12,
    "synthetic_pairs": 40,
    "triplets": 10,
    "device": "cpu",
    "steps": 2,
    "batch_size": 8,
    "eval_every": 2,
}


def options(backbone: str) -> list[str]:
    settings = {**QUICK, "backbone": backbone}
    return [part for name, value in settings.items() for part in ("-p", f"{name}={value}")]


@pytest.mark.slow
def test_a_sweep_on_two_workers_and_its_report(tmp_path, small_backbone):
    """Prevents workers that do not have the method, or the file beside it, a file that is read and
    not run, a key without its source, a report without an interval against a baseline, and runs
    that are done again after an edited comment."""
    file = tmp_path / "my_method.py"
    file.write_text("from half import HALF\n" + METHOD.replace("/ 2", "* HALF"))
    (tmp_path / "half.py").write_text("HALF = 1 / 2")

    def cselab(*arguments: str) -> str:
        command = [sys.executable, "-m", "cselab", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=400)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def sweep() -> str:
        methods = ["-m", "my_method.py", "-m", "simcse", "--seeds", "1-3"]
        place = ["--store", "s.sqlite", "--outputs", "o", "--workers", "2"]
        return cselab("sweep", *methods, *place, *options(small_backbone))

    assert "6 of 6 runs" in sweep()
    cselab("report", "--store", "s.sqlite", "--against", "simcse", "--folder", "report")
    (row,) = (
        line
        for line in (tmp_path / "report" / "report.md").read_text().splitlines()
        if line.startswith("| mine |") and "[" in line
    )
    assert row.count("[") == 1  # the interval of the paired difference
    file.write_text(file.read_text().replace("    @term", "    # a comment\n    @term", 1))
    assert "6 of them in the store before" in sweep()
    (tmp_path / "half.py").write_text("HALF = 1 / 3")
    assert "3 of them in the store before" in sweep()
    assert len(Store(tmp_path / "s.sqlite").runs()) == 9
