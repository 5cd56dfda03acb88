"""A lab whose trainings take a moment."""

import pytest
from quick import QUICK, forget_imports

import cselab
from cselab.experiments import PROFILES


@pytest.fixture
def open_lab(tmp_path, monkeypatch, small_backbone):
    """`open_lab(**settings)`: of the profile "quick", on a random backbone of four layers."""
    forget_imports()
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    monkeypatch.setitem(PROFILES, "quick", QUICK)
    usual = {"profile": "quick", "backbone": small_backbone, "device": "cpu", "seed": 3}
    usual["outputs"] = tmp_path / "outputs"
    return lambda **settings: cselab.open_lab("test", **{**usual, **settings})


@pytest.fixture
def lab(open_lab):
    """The same without further settings."""
    return open_lab()
