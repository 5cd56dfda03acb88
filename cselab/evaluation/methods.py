"""Methods beside one another over seeds, each against one baseline."""

import numpy as np
import pandas

from cselab.errors import DataError, suggest
from cselab.evaluation.significance import compare_seeds

COLUMNS = ["average", "sd", "seeds", "difference", "low", "high", "p", "p_holm", "power", "seeds_needed"]


def compare_methods(rows: pandas.DataFrame, against: str) -> pandas.DataFrame:
    """Methods (rows, in their order) by average, sd over seeds, number of seeds, and the paired difference from `against`: mean, 95 % t
    interval, p of the sign-flip permutation test, the same after Holm's correction for all methods of the table, power, and how many
    seeds a true difference of this size would take (`compare_seeds`). Differences are NaN with fewer than three common seeds.

    rows: columns method, seed, average. Raises DataError where `against` has no rows.
    """
    if against not in set(rows.method):
        raise DataError(f"no rows of {against!r} to compare with; {suggest(against, set(rows.method))}")
    averages, table = rows.pivot_table(index="seed", columns="method", values="average"), {}
    for method in dict.fromkeys(rows.method):
        mine = averages[method].dropna()
        table[method] = {"average": mine.mean(), "sd": mine.std(), "seeds": len(mine)}
        both = averages[[method, against]].dropna() if method != against else pandas.DataFrame()
        if len(both) > 2:
            found = compare_seeds(both[method], both[against])
            table[method] |= {
                "difference": found.mean, "low": found.low, "high": found.high, "p": found.p_permutation,
                "power": found.power, "seeds_needed": found.seeds_needed,
            }  # fmt: skip
    frame = pandas.DataFrame.from_dict(table, orient="index", columns=COLUMNS).astype({"seeds": int})
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame.astype({name: float for name in COLUMNS if name != "seeds"})


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction: p values, (n,), so that the chance of any false one among all stays below the level."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1)
    return corrected
