"""Record a sweep's store: `python outputs/reference/pages/record.py STORE GRID`.

Its finished runs become outputs/reference/results/GRID.sqlite; their scores on resamples of the
test pairs, if it has the measure "resamples", GRID-resamples.parquet, a tenth of their size. A
sweep goes on from a copy of the first file; the resamples of its runs stay in the second.
"""

import sys
from dataclasses import replace
from pathlib import Path

import pandas
from result_values import REFERENCE

from cselab.experiments.measures import RESAMPLED
from cselab.experiments.store import Store


def main(source: Path, grid: str, folder: Path = REFERENCE / "results") -> None:
    """Write the two files anew, from all finished runs of the sweep's store."""
    path = folder / f"{grid}.sqlite"
    beside, store = path.with_name(f"{grid}-resamples.parquet"), Store(source)
    found = store.results(store.done())
    path.unlink(missing_ok=True)
    recorded, resamples = Store(path), []
    for result in found:
        parts: dict[bool, list] = {False: [], True: []}
        for row in result.rows:
            parts[row[0] in RESAMPLED.values()].append(row)
        resamples += [(result.key, *row) for row in parts[True]]
        recorded.add(replace(result, rows=parts[False]))
    table = pandas.DataFrame(resamples, columns=["key", "measure", "task", "value", "n"])
    if beside.is_file():
        before = pandas.read_parquet(beside)
        of_found = before.key.isin({result.key for result in found} - set(table.key))
        table = pandas.concat([before[of_found], table])
    if len(table):
        table.astype({"value": "float32"}).to_parquet(beside, compression="zstd", index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
