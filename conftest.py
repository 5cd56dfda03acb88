"""The examples in docstrings: `pytest --doctest-modules cselab` runs them."""

import os

# before cselab is imported: synthetic text and a small backbone are quick, and their truth is known
os.environ["CSELAB_PROFILE"] = "tiny"

import pytest

collect_ignore_glob = ["*conftest.py"]
"""These have no examples, and share a name."""


@pytest.fixture(autouse=True)
def _an_example_has_its_own_outputs(request, monkeypatch, tmp_path):
    """No data folder, and what an example trains or writes is gone after it."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("CSELAB_OUTPUTS", str(tmp_path / "outputs"))
        monkeypatch.delenv("CSELAB_DATA", raising=False)
