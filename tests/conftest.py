"""Shared fixtures: where the real evaluation data is, and small random models."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The real evaluation data: CSELAB_DATA, or ../shared/data beside the project; skipped where there is none."""
    for candidate in (os.environ.get("CSELAB_DATA"), ROOT.parent / "shared" / "data"):
        if candidate and (Path(candidate) / "sts" / "stsb-dev.tsv.gz").is_file():
            return Path(candidate)
    pytest.skip("no evaluation data: set CSELAB_DATA to a folder that holds sts/stsb-dev.tsv.gz")
