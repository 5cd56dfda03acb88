"""Comparison of methods over seeds, each with one baseline."""

import numpy as np
import pandas

from cselab.errors import DataError, suggest
from cselab.evaluation.significance import compare_seeds

COLUMNS = [
    "average",
    "sd",
    "seeds",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
    "power",
    "seeds_needed",
]


def compare_methods(rows: pandas.DataFrame, against: str) -> pandas.DataFrame:
    """Table of methods: average, standard deviation, number of seeds, and paired difference.

    The difference is from `against`, over common seeds: mean, 95 % t interval, p of the paired t
    test, p after Holm's correction for all methods of the table, power, and the number of seeds
    that a true difference of this size needs (`compare_seeds`). NaN with fewer than three common
    seeds.

    Args:
        rows: Columns method, seed, average.
        against: Method that the others are compared with.

    Returns:
        One row per method, in the order of `rows`; columns COLUMNS.

    Raises:
        DataError: If `against` has no rows.

    Examples:
        >>> import pandas
        >>> from cselab.evaluation import compare_methods
        >>> averages = {"simcse": [70.0, 71.0, 70.5], "tncse": [72.0, 72.5, 73.0]}
        >>> rows = [(name, i, x) for name, xs in averages.items() for i, x in enumerate(xs)]
        >>> runs = pandas.DataFrame(rows, columns=["method", "seed", "average"])
        >>> table = compare_methods(runs, "simcse")
        >>> table.loc["tncse", ["difference", "p_holm", "power"]].round(2).to_dict()
        {'difference': 2.0, 'p_holm': 0.02, 'power': 0.91}
    """
    if against not in set(rows.method):
        raise DataError(
            f"no rows of {against!r} to compare with; {suggest(against, set(rows.method))}"
        )
    averages, table = rows.pivot_table(index="seed", columns="method", values="average"), {}
    for method in dict.fromkeys(rows.method):
        scores = averages[method].dropna()
        table[method] = {"average": scores.mean(), "sd": scores.std(), "seeds": len(scores)}
        both = averages[[method, against]].dropna() if method != against else pandas.DataFrame()
        if len(both) > 2:
            result = compare_seeds(both[method], both[against])
            table[method] |= {
                "difference": result.mean,
                "low": result.low,
                "high": result.high,
                "p": result.p,
                "power": result.power,
                "seeds_needed": result.seeds_needed,
            }
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
