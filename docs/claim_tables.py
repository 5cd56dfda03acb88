"""The tables of the claims: two grids a text, what they agree on, and the first edition's."""

from functools import cache

import pandas
from result_paths import REFERENCE
from result_rows import CONTRASTS
from result_values import gain, rows_of
from scipy.stats import t

from cselab.evaluation import seeds_for_width
from cselab.reporting import recorded
from cselab.reporting.claims import (
    CONTRADICTED,
    EQUAL,
    MARGIN,
    NO_EFFECT,
    NO_RUNS,
    SMALLER,
    SUPPORTED,
    VERDICTS,
    check_claims,
    read_claims,
    shown_claims,
)
from cselab.reporting.recorded import store
from cselab.reporting.tables import read_tables
from cselab.sweep.grid import parse_seeds, read_grid

CLAIMS = REFERENCE / "claims.toml"
GRIDS = tuple(recorded.CLAIMS.values())
HEADS = {grid: head for head, grid in recorded.CLAIMS.items()}
"""What a grid is called: "real text, as tuned here"."""
TEXTS = ("synthetic", "real")
LEVEL = 0.05
SETTLED = (SUPPORTED, NO_EFFECT, CONTRADICTED, EQUAL)


@cache
def declared_runs(name: str) -> set[tuple[str, int]]:
    """Label and seed of every run of a grid; all its rows have the seeds at its top."""
    seeds = parse_seeds(read_grid(REFERENCE / "grids" / f"{name}.toml")["seeds"])
    return {(label, seed) for label in recorded.methods(name) for seed in seeds}


@cache
def checked(grid: str) -> pandas.DataFrame:
    """The claims, held against a grid's runs."""
    return check_claims(rows_of(grid), read_claims(CLAIMS))


def claims() -> pandas.DataFrame:
    """A row a claim: the paper's gap, and difference and verdict in each grid; whether both grids
    of a text agree, if both are settled."""
    table = pandas.DataFrame(index=[claim.claim for claim in read_claims(CLAIMS)])
    for text in TEXTS:
        of_text = [grid for grid in GRIDS if grid.startswith(text)]
        for grid in of_text:
            found, shown = checked(grid), shown_claims(checked(grid))
            table["paper"] = shown.paper
            table[HEADS[grid]] = [
                f"{_starred(row)} ({text})".replace(" ()", "")
                for row, text in zip(found.itertuples(), shown.here, strict=True)
            ]
        one, two = (checked(grid).verdict.replace(SMALLER, SUPPORTED) for grid in of_text)
        settled = one.isin(SETTLED) & two.isin(SETTLED)
        table[f"{text} text, agree"] = [
            ("yes" if same else "no") if sure else ""
            for same, sure in zip(one == two, settled, strict=True)
        ]
    return table


def agreement(text: str) -> str:
    """How many of the claims that both grids of a text settle have the same verdict in both."""
    found = claims()[f"{text} text, agree"]
    return f"{(found == 'yes').sum()} of the {(found != '').sum()}"


def counts() -> pandas.DataFrame:
    """The number of claims with each verdict, grid by grid, and how many of those that are
    supported or contradicted have a *."""
    columns = {grid: checked(grid).verdict.value_counts() for grid in GRIDS}
    table = pandas.DataFrame(columns).fillna(0).astype(int).astype(str)
    table = table.reindex([verdict for verdict in VERDICTS if verdict in table.index])
    table.loc["supported or contradicted, with a *"] = {grid: starred(grid) for grid in table}
    return table


def starred(grid: str) -> str:
    """How many of a grid's claims that are supported or contradicted have a *: "8 of 21"."""
    found = checked(grid)
    found = found[found.verdict.isin([SUPPORTED, SMALLER, CONTRADICTED])]
    return f"{(found.p_holm < LEVEL).sum()} of {len(found)}"


def no_captions(grid: str) -> pandas.DataFrame:
    """The claims of a grid on real text that have another verdict if the test pairs that are
    captions, like the training text, are left out."""
    claims = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"]
    without = [claim.model_copy(update={"measure": "no captions"}) for claim in claims]
    parts = {"all pairs": claims, "no captions": without}
    found = {part: check_claims(rows_of(grid), given) for part, given in parts.items()}
    table = pandas.DataFrame()
    for part, rows in found.items():
        shown = shown_claims(rows)
        table[part] = shown.here + " " + shown["95 % interval"] + ": " + shown.verdict
    one, two = found.values()
    return table[(one.verdict != two.verdict).to_numpy()]


def contrasts() -> pandas.DataFrame:
    """The front page's table: two rows of a grid, their difference in each, and the verdict of the
    claim about them, if there is one."""
    rows = []
    for finding, better, than in CONTRASTS:
        row = {"A": better, "B": than}
        for grid in GRIDS:
            verdicts = [_starred(claim) for claim in _about(grid, better, than).itertuples()]
            row[HEADS[grid]] = ": ".join([str(gain(grid, better, than)), *verdicts])
        gaps = _about(GRIDS[0], better, than).gap.dropna()
        row["the paper"] = "".join(map("{:+.2f}".format, gaps))
        rows.append({**row, "finding": str(finding)})
    return pandas.DataFrame(rows).set_index("A")


def scores(grid: str) -> pandas.DataFrame:
    """The test averages of every row of a grid, from high to low."""
    found = read_tables(store(grid))
    order = found.numbers["scores"].sort_values("average", ascending=False).index
    return found.texts["scores"].loc[order, ["average", "sd", "seeds"]]


def evidence(grid: str) -> pandas.DataFrame:
    """Everything a grid says about the claims."""
    return shown_claims(checked(grid))


def earlier() -> pandas.DataFrame:
    """The first edition's verdicts, by the rule of then."""
    table = pandas.DataFrame()
    for text in TEXTS:
        found = first_edition(text)
        table["paper"] = found.gap.map(lambda gap: "" if pandas.isna(gap) else f"{gap:+.2f}")
        ran = found.difference.notna()
        here = found.difference.map("{:+.2f}".format).where(ran, "")
        table[f"{text} text"] = (found.verdict + " (" + here + ")").str.replace(
            " ()", "", regex=False
        )
        table[f"{text} text: seeds"] = found.seeds.map(str)
    return table.rename_axis(None)


def changes(text: str) -> pandas.DataFrame:
    """The claims whose verdict on a text is another one than the first edition's, in a grid of the
    text at least; "supported" and "supported, smaller" count as one."""
    table = pandas.DataFrame({"first edition": first_edition(text).verdict})
    settled = table["first edition"].where(lambda verdict: verdict.isin([SUPPORTED, CONTRADICTED]))
    differs = pandas.Series(False, table.index)
    for grid in GRIDS:
        if grid.startswith(text):
            now = checked(grid).set_index("claim").verdict
            table[HEADS[grid].removeprefix(f"{text} text, ")] = now
            now = now.replace(SMALLER, SUPPORTED)
            now_settled = now.where(now.isin([SUPPORTED, CONTRADICTED]))
            differs |= (settled.fillna("") != now_settled.fillna("")) & (now != NO_RUNS)
    return table[differs & (table["first edition"] != NO_RUNS)].rename_axis(None)


def small_gaps() -> int:
    """The number of claims whose printed gap is below the margin."""
    claims = read_claims(CLAIMS)
    return sum(claim.gap is not None and claim.gap < claim.margin for claim in claims)


def power() -> str:
    """How many seeds the margin needs, by the first edition's paired deviations."""
    parts = []
    for text in TEXTS:
        found = first_edition(text)
        found = found[found.measure == "test"].dropna(subset=["low"])
        needed = found.apply(_needed, axis=1)
        seeds = {seed for _, seed in declared_runs(f"{text}-papers")}
        most = needed.quantile(0.8, interpolation="higher")
        parts.append(
            f"half of the claims on {text} text need at most {needed.median():.0f} seeds, and four "
            f"fifths at most {most:.0f} ({len(seeds)} are run)"
        )
    return (
        "For an interval of ± the margin, at the first edition's paired deviations, "
        + "; ".join(parts)
        + ". All rows of a table have the same number."
    )


def power_found(grid: str) -> str:
    """How many of a grid's claims have an interval of ± the margin or less."""
    found = checked(grid).dropna(subset=["seeds_needed"])
    found = found[found.verdict != EQUAL]
    enough = (found.seeds >= found.seeds_needed).sum()
    return f"{enough} of {len(found)} (half need at most {found.seeds_needed.median():.0f} seeds)"


@cache
def first_edition(text: str) -> pandas.DataFrame:
    """The claims as the first edition tested them on a text, by their names."""
    path = REFERENCE / "first-edition" / f"claims-{text}.csv"
    return pandas.read_csv(path, index_col="claim")


def _about(grid: str, better: str, than: str) -> pandas.DataFrame:
    """The claims about two rows' test scores, in a grid: one or none."""
    found = checked(grid)
    return found[(found.better == better) & (found.than == than) & (found.measure == "test")]


def _starred(row) -> str:
    """A row's verdict, with a * if its p is small after Holm's correction."""
    return f"{row.verdict}{'*' if row.p_holm < LEVEL else ''}"


def _needed(row: pandas.Series) -> int:
    half = (row.high - row.low) / 2
    return seeds_for_width(half * row.seeds**0.5 / t.ppf(0.975, row.seeds - 1), MARGIN)
