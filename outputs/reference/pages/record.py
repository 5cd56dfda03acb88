"""Record a sweep's store: `python outputs/reference/pages/record.py STORE GRID`.

Its finished runs become outputs/reference/results/GRID.sqlite; their scores on resamples of the
test pairs, if it has the measure "resamples", GRID-resamples.parquet, a tenth of their size.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pandas
from result_values import REFERENCE

from cselab.experiments.measures import RESAMPLED
from cselab.experiments.store import Store


def main(source: Path, grid: str) -> None:
    """Write the two files anew, from all finished runs of the sweep's store."""
    path = REFERENCE / "results" / f"{grid}.sqlite"
    path.unlink(missing_ok=True)
    store, resamples = Store(path), []
    for result in Store(source).results(Store(source).done()):
        kept = [row for row in result.rows if row[0] not in RESAMPLED.values()]
        resamples += [(result.key, *row) for row in result.rows if row not in kept]
        store.add(replace(result, rows=kept))
    if not resamples:
        return
    table = pandas.DataFrame(resamples, columns=["key", "measure", "task", "value", "n"])
    table = table.astype({"value": "float32", "key": "category", "measure": "category"})
    table.to_parquet(path.with_name(f"{grid}-resamples.parquet"), compression="zstd")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
