"""The built packages work outside the repository."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the sdist and the wheel."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def cselab(built, tmp_path_factory):
    """Runs `cselab` of the unpacked wheel, in a folder of a stranger."""
    library, home = tmp_path_factory.mktemp("library"), tmp_path_factory.mktemp("home")
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        wheel.extractall(library)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CSELAB_")}

    def run(*words: str, folder: Path = home, module: str = "cselab") -> str:
        found = subprocess.run(
            [sys.executable, "-m", module, *words] if module else [sys.executable, *words],
            cwd=folder,
            env={**kept, "PYTHONPATH": str(library)},
            capture_output=True,
            text=True,
        )
        assert found.returncode == 0, (found.stdout + found.stderr)[-2000:]
        return found.stdout

    return run


@pytest.mark.slow  # builds, executes a notebook
def test_the_wheel_encodes_reports_and_runs_notebooks(cselab):
    """Prevents a package that looks for files of the repository."""
    code = "import cselab; print(cselab.__file__, cselab.load('tiny-bert').encode(['a']).shape)"
    where, shape = cselab("-c", code, module="").strip().split(" ", 1)
    assert str(ROOT) not in where
    assert shape == "torch.Size([1, 192])"
    assert "16 notebooks" in cselab("init", "study")
    settings = ("steps=2", "sentences=200", "dev_pairs=12", "synthetic_pairs=40")
    quick = [word for setting in settings for word in ("-p", setting)]
    folder = Path(cselab("-c", "import os; print(os.getcwd())", module="").strip()) / "study"
    cselab("run", "02", *quick, "-p", "towers.steps=2", folder=folder)
    assert list(folder.glob("outputs/runs/*/02_twin_pretraining.html"))
    store = Path(where).parent / "_reference" / "results" / "real-climb.sqlite"
    cselab("report", "--store", str(store), "--folder", "report")
    grids = folder / "outputs" / "reference" / "grids"
    assert "SimCSE" in cselab(
        "sweep", str(grids / "synthetic-papers.toml"), "--dry-run", folder=folder
    )


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(built, tmp_path):
    """Prevents a source archive that lacks data or notebooks."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    one, two = (zipfile.ZipFile(next(folder.glob("*.whl"))) for folder in (built, tmp_path))
    assert sorted(one.namelist()) == sorted(two.namelist())
