"""The lists of packages (pyproject.toml, environment.yml) say the same."""

import re
import tomllib
from pathlib import Path

import yaml

import cselab

ROOT = Path(__file__).resolve().parents[1]
CONDA_NAMES = {"pytorch": "torch"}


def _split(requirement: str) -> tuple[str, str]:
    name, bound = re.fullmatch(r"([A-Za-z0-9_.-]+)(.*)", requirement).groups()
    return CONDA_NAMES.get(name, name).lower(), bound


def _pyproject() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_conda_and_pip_name_the_same_packages_and_bounds():
    """Prevents a conda user from getting another set of packages than a pip user."""
    listed = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    by_pip = next(entry["pip"] for entry in listed if isinstance(entry, dict))
    assert "-e .[dev,real]" in by_pip
    conda = {entry for entry in listed if isinstance(entry, str)}
    conda |= {entry for entry in by_pip if entry[0] != "-"}
    conda = dict(_split(entry) for entry in conda - {"pip"})
    assert conda.pop("python") == _pyproject()["requires-python"]
    assert conda == dict(_split(entry) for entry in _pyproject()["dependencies"])


def test_the_citation_and_the_changes_name_this_version():
    """Prevents a release whose citation, or whose list of changes, is another version's."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    released = f"## {cselab.__version__} – {citation['date-released']}"
    assert citation["version"] == cselab.__version__
    assert released in (ROOT / "CHANGELOG.md").read_text().splitlines()
