"""Comparison of methods over seeds, each with one baseline."""

import numpy as np
import pandas

from cselab.errors import DataError, suggest
from cselab.evaluation.significance import compare_seeds

TESTED = ["low", "high", "p", "power", "seeds_needed"]
COLUMNS = ["average", "sd", "seeds", "difference", *TESTED[:3], "p_holm", *TESTED[3:]]


def compare_methods(rows: pandas.DataFrame, against: str) -> pandas.DataFrame:
    """Table of methods, one a row: average, sd, number of seeds, and paired difference.

    The difference is from `against`, over common seeds, as in `compare_seeds`, with p also after
    Holm's correction for all methods of the table; NaN with fewer than three common seeds.

    Args:
        rows: Columns method, seed, average.

    Raises:
        DataError: If `against` has no rows.
    """
    if against not in set(rows.method):
        near = suggest(against, set(rows.method))
        raise DataError(f"no rows of {against!r} to compare with; {near}")
    averages, table = rows.pivot_table(index="seed", columns="method", values="average"), {}
    for method in dict.fromkeys(rows.method):
        scores = averages[method].dropna()
        table[method] = {"average": scores.mean(), "sd": scores.std(), "seeds": len(scores)}
        both = averages[[method, against]].dropna() if method != against else pandas.DataFrame()
        if len(both) > 2:
            result = compare_seeds(both[method], both[against])
            table[method] |= {"difference": result.mean}
            table[method] |= {name: getattr(result, name) for name in TESTED}
    frame = pandas.DataFrame.from_dict(table, orient="index", columns=COLUMNS)
    frame = frame.astype({"seeds": int})
    tested = frame.p.dropna()
    frame.loc[tested.index, "p_holm"] = holm(tested.to_numpy(dtype=float))
    return frame.astype({name: float for name in COLUMNS if name != "seeds"})


def holm(p: np.ndarray) -> np.ndarray:
    """Holm's step-down correction of p values, (n,), which controls the family-wise error rate."""
    order = np.argsort(p)
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(steps, 1)
    return corrected
