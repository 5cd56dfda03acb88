"""Tables of the claims: two grids a text, and the claims on which they agree."""

from functools import cache

import pandas
from result_values import CONTRASTS, REFERENCE, TEXTS, gain, rows_of

from cselab.experiments.grid import parse_seeds, read_grid
from cselab.study import recorded
from cselab.study.claims import (
    CONTRADICTED,
    EQUAL,
    NO_EFFECT,
    NO_RUNS,
    SMALLER,
    SUPPORTED,
    VERDICTS,
    check_claims,
    read_claims,
    shown_claims,
)
from cselab.study.tables import read_tables

CLAIMS = REFERENCE / "claims.toml"
GRIDS = tuple(recorded.CLAIMS.values())
HEADS = {grid: head for head, grid in recorded.CLAIMS.items()}
"""Titles of the grids: "real text, as tuned here"."""
LEVEL = 0.05
SETTLED = (SUPPORTED, NO_EFFECT, CONTRADICTED, EQUAL)


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
                _starred(row) if row.verdict == NO_RUNS else f"{_starred(row)} ({difference})"
                for row, difference in zip(rows.itertuples(), shown.here, strict=True)
            ]
        one, two = (checked(grid).verdict.replace(SMALLER, SUPPORTED) for grid in grids)
        settled = one.isin(SETTLED) & two.isin(SETTLED)
        table[f"{text} text, agree"] = [
            ("yes" if same else "no") if sure else ""
            for same, sure in zip(one == two, settled, strict=True)
        ]
    return table


def agreement(text: str) -> str:
    """Number of claims with the same verdict in both grids of a text, of those both settle."""
    agree = claims()[f"{text} text, agree"]
    return f"{(agree == 'yes').sum()} of the {(agree != '').sum()}"


def counts() -> pandas.DataFrame:
    """Number of claims with each verdict, grid by grid, and how many of those that are supported or
    contradicted have a *."""
    columns = {grid: checked(grid).verdict.value_counts() for grid in GRIDS}
    table = pandas.DataFrame(columns).fillna(0).astype(int).astype(str)
    table = table.reindex([verdict for verdict in VERDICTS if verdict in table.index])
    table.loc["supported or contradicted, with a *"] = {grid: starred(grid) for grid in table}
    return table


def starred(grid: str) -> str:
    """Number of a grid's supported or contradicted claims that have a *: "8 of 21"."""
    rows = checked(grid)
    rows = rows[rows.verdict.isin([SUPPORTED, SMALLER, CONTRADICTED])]
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


def contrasts() -> pandas.DataFrame:
    """The front page's table: two rows of a grid, their difference in each, and the verdict of the
    claim about them, if there is one."""
    rows = []
    for finding, better, than in CONTRASTS:
        row = {"A": better, "B": than}
        for grid in GRIDS:
            verdicts = [_starred(claim) for claim in _about(grid, better, than).itertuples()]
            row[HEADS[grid]] = ": ".join([gain(grid, better, than), *verdicts])
        gaps = _about(GRIDS[0], better, than).gap.dropna()
        row["the paper"] = "".join(map("{:+.2f}".format, gaps))
        rows.append({**row, "finding": str(finding)})
    return pandas.DataFrame(rows).set_index("A")


def scores(grid: str) -> pandas.DataFrame:
    """Test averages of every row of a grid, from high to low."""
    tables = read_tables(recorded.store(grid))
    order = tables.numbers["scores"].sort_values("average", ascending=False).index
    return tables.texts["scores"].loc[order, ["average", "sd", "seeds"]]


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


def _about(grid: str, better: str, than: str) -> pandas.DataFrame:
    """The claims about two rows' test scores, in a grid: one or none."""
    rows = checked(grid)
    return rows[(rows.better == better) & (rows.than == than) & (rows.measure == "test")]


def _starred(row) -> str:
    """A row's verdict, with a * if its p is small after Holm's correction."""
    return f"{row.verdict}{'*' if row.p_holm < LEVEL else ''}"
