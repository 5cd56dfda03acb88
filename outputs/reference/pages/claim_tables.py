"""Tables of the claims: two grids a text, and the claims on which they agree."""

from functools import cache

import pandas
from result_values import REFERENCE, TEXTS, floors, rows_of

from cselab.experiments.grid import parse_seeds, read_grid
from cselab.study import recorded
from cselab.study.claims import (
    BETTER,
    EQUAL,
    LESS,
    NO_DIFFERENCE,
    NO_RUNS,
    VERDICTS,
    WORSE,
    check_claims,
    confirmed,
    read_claims,
    shown_claims,
)
from cselab.study.tables import read_tables

CLAIMS = REFERENCE / "claims.toml"
GRIDS = tuple(recorded.CLAIMS.values())
HEADS = {grid: head for head, grid in recorded.CLAIMS.items()}
"""Titles of the grids: "real text, as tuned here"."""
LEVEL = 0.05
SETTLED = (BETTER, NO_DIFFERENCE, WORSE, EQUAL)


@cache
def declared_runs(name: str) -> set[tuple[str, int]]:
    """Label and seed of every run of a grid; all its rows have the seeds at its top."""
    seeds = parse_seeds(read_grid(REFERENCE / "grids" / f"{name}.toml")["seeds"])
    return {(label, seed) for label in recorded.methods(name) for seed in seeds}


@cache
def checked(grid: str) -> pandas.DataFrame:
    """Check the claims against a grid's runs."""
    return check_claims(rows_of(grid), read_claims(CLAIMS))


def claims() -> pandas.DataFrame:
    """A row a claim: the paper's gap, and difference and verdict in each grid; whether both grids
    of a text agree, if both are settled."""
    table = pandas.DataFrame(index=[claim.claim for claim in read_claims(CLAIMS)])
    for text in TEXTS:
        grids = [grid for grid in GRIDS if grid.startswith(text)]
        for grid in grids:
            rows, shown = checked(grid), shown_claims(checked(grid))
            table["paper"] = shown.paper
            table[HEADS[grid]] = [
                marked(row) if row.verdict == NO_RUNS else f"{marked(row)} ({difference})"
                for row, difference in zip(rows.itertuples(), shown.here, strict=True)
            ]
        one, two = (checked(grid).verdict.replace(LESS, BETTER) for grid in grids)
        settled = one.isin(SETTLED) & two.isin(SETTLED)
        table[f"{text} text, agree"] = [
            ("yes" if same else "no") if sure else ""
            for same, sure in zip(one == two, settled, strict=True)
        ]
    return table


def counts() -> pandas.DataFrame:
    """Number of claims with each verdict, grid by grid; how many of those that decide confirm what
    the paper claims, and how many differences have a *."""
    columns = {grid: checked(grid).verdict.value_counts() for grid in GRIDS}
    table = pandas.DataFrame(columns).fillna(0).astype(int).astype(str)
    table = table.reindex([verdict for verdict in VERDICTS if verdict in table.index])
    table.loc["as the paper claims"] = {grid: as_claimed(grid) for grid in table}
    table.loc["better or worse, with a *"] = {grid: starred(grid) for grid in table}
    return table


def as_claimed(grid: str) -> str:
    """Number of a grid's verdicts that are what the paper claims, of those that decide."""
    rows = zip(checked(grid).claims, checked(grid).verdict, strict=True)
    found = [found for found in (confirmed(*row) for row in rows) if found is not None]
    return f"{sum(found)} of {len(found)}"


def starred(grid: str) -> str:
    """Number of a grid's claims, better or worse, that have a *: "8 of 21"."""
    rows = checked(grid)
    rows = rows[rows.verdict.isin([BETTER, LESS, WORSE])]
    return f"{(rows.p_holm < LEVEL).sum()} of {len(rows)}"


def no_captions(grid: str) -> pandas.DataFrame:
    """The claims of a grid on real text that have another verdict if the test pairs that are
    captions, like the training text, are left out."""
    claims = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"]
    without = [claim.model_copy(update={"measure": "no captions"}) for claim in claims]
    parts = {"all pairs": claims, "no captions": without}
    rows = {part: check_claims(rows_of(grid), some) for part, some in parts.items()}
    shown = {part: shown_claims(some) for part, some in rows.items()}
    table = pandas.DataFrame(
        {
            part: cells.here + " " + cells["95 % interval"] + ": " + cells.verdict
            for part, cells in shown.items()
        }
    )
    return table[(rows["all pairs"].verdict != rows["no captions"].verdict).to_numpy()]


def scores(grid: str) -> pandas.DataFrame:
    """Test averages of every row of a grid, and of the floors, from high to low."""
    found = [read_tables(recorded.store(name)) for name in (grid, floors(grid))]
    numbers, texts = (
        pandas.concat([getattr(tables, kind)["scores"] for tables in found])
        for kind in ("numbers", "texts")
    )
    order = numbers[~numbers.index.duplicated()].sort_values("average", ascending=False).index
    return texts[~texts.index.duplicated()].loc[order, ["average", "sd", "seeds"]]


def evidence(grid: str) -> pandas.DataFrame:
    """Everything a grid says about the claims."""
    return shown_claims(checked(grid))


def small_gaps() -> int:
    """Number of claims whose printed gap is below the margin."""
    claims = read_claims(CLAIMS)
    return sum(claim.gap is not None and claim.gap < claim.margin for claim in claims)


def power(grid: str) -> str:
    """Number of a grid's claims whose interval is ± the margin or less, and the seeds that half of
    them need for it."""
    rows = checked(grid).dropna(subset=["seeds_needed"])
    rows = rows[rows.verdict != EQUAL]
    enough = (rows.seeds >= rows.seeds_needed).sum()
    return f"{enough} of {len(rows)} (half need at most {rows.seeds_needed.median():.0f} seeds)"


def marked(row) -> str:
    """A row's verdict, with a * if its p is small after Holm's correction."""
    return f"{row.verdict}{'*' if row.p_holm < LEVEL else ''}"
