"""Which versions of the library made the recorded rows."""

import pandas

from cselab.reporting.recorded import store
from cselab.reporting.rows import read_rows

STORES = ("synthetic", "baselines-synthetic", "real", "baselines-real", "real-transfer")
"""Those of the first edition: all of this edition's are of one version."""


def sources() -> pandas.DataFrame:
    """Count the rows of each store by the versions of the library's source that made their runs.

    A row whose seeds are of several versions is mixed, and named.
    """
    table = {}
    for name in STORES:
        runs = read_rows(store(name))[["label", "seed", "source"]].drop_duplicates()
        made = runs.groupby("label", sort=False).apply(versions, include_groups=False)
        for versions_of_row, labels in made.groupby(made, sort=False).groups.items():
            mixed = "; ".join(labels) if " + " in versions_of_row else ""
            table[f"{name}: {versions_of_row}"] = [str(len(labels)), mixed]
    return pandas.DataFrame.from_dict(table, orient="index", columns=["rows", "mixed rows"])


def versions(runs: pandas.DataFrame) -> str:
    """Name the versions of one row's runs: "5c130b7 (seeds 1-5) + 2ccf47c (seeds 6-11)"."""
    seeds = runs.groupby("source").seed.agg(["min", "max", "size"]).sort_values("min")
    no_gaps = seeds["max"] - seeds["min"] + 1 == seeds["size"]
    assert no_gaps.all(), "the seeds of a version have gaps"
    rows = seeds.itertuples()
    return " + ".join(f"{source[:7]} (seeds {low}-{high})" for source, low, high, _ in rows)
