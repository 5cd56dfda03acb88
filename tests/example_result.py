"""A finished run of a sweep, for tests of stores and reports."""

from cselab.experiments.store import Result

RESULT = Result(
    key="k1",
    label="simcse",
    method="simcse",
    seed=1,
    profile="tiny",
    settings={"seed": 1, "data": {"corpus": [], "sentences": 100, "nli": [], "triplets": 9}},
    source="s",
    data="d",
    seconds=2.0,
    worker="w",
    finished="2026-01-01T00:00:00",
    environment={"torch": "2"},
    rows=[("test", "average", 61.5, 10), ("dev", "Synthetic", 60.0, 5)],
)
