"""mteb with its own data, from the simulated hub."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
TINY = Path(__file__).resolve().parents[2] / "data" / "backbones" / "tiny-bert"


def test_mteb_loads_its_own_data_and_a_task_without_any_stops_nothing(hub, tmp_path):
    """Prevents --hub from reading a folder's pairs, and one data set that does not load from
    ending a run of fifty."""
    options = ["--hub", "--task", "SciFact", "--task", "STS16", "--outputs", str(tmp_path)]
    hub.requests.clear()
    done = subprocess.run(
        [sys.executable, "-m", "cselab", "mteb", str(TINY), *options],
        env=hub.environment,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert any("mteb/sts16-sts" in request for request in hub.requests)
    (path,) = tmp_path.rglob("STS16.json")
    assert path.parent.name.endswith("-hub")
    assert len(json.loads(path.read_text())["dataset_revision"]) == 40  # mteb's own, not ours
    left_out, scored = done.stdout.splitlines()[:2]
    assert left_out.startswith("SciFact: left out: mteb/scifact does not load (")
    assert scored.startswith("STS16: cosine_spearman ")
