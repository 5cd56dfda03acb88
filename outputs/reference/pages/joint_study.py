"""The study of joint training (outputs/reference/joint.toml): its table and its answer.

A claim has a verdict when all runs of its rows are there, and a * when all claims have one.
"""

from functools import cache

import pandas
from result_values import REFERENCE

from cselab.experiments.grid import expand, read_grid
from cselab.study.claims import (
    BETTER,
    EQUAL,
    LESS,
    NO_DIFFERENCE,
    UNDECIDED,
    WORSE,
    check_claims,
    read_claims,
)
from cselab.study.comparable import comparable_scores

RESULTS = REFERENCE / "results"
STARTS = {"english": "English start (B)", "captions": "plain-bert, captions (A)"}
"""The grids of the study by the heads of their columns."""
WORDS = {
    EQUAL: "changes nothing, for dev kept the start",
    BETTER: "helps",
    LESS: "helps, less than in the paper,",
    NO_DIFFERENCE: "changes nothing that matters",
    WORSE: "hurts",
    UNDECIDED: "is not settled",
}
QUESTIONS = {
    "Joint training": ("JTCSE", "continued alone"),
    "Cross-attention": ("JTCSE", "TNCSE"),
    "Training on without anything joint": ("continued alone", "sum"),
}
"""What the answer says, by the rows whose difference it reads."""
HEADS = {"none": "from towers without a head", "mlp_train_only": "from towers with SimCSE's head"}


@cache
def declared(grid: str) -> dict[str, set[int]]:
    """Seeds of each label of a grid."""
    seeds: dict[str, set[int]] = {}
    for run in expand(read_grid(REFERENCE / "grids" / f"{grid}.toml")):
        seeds.setdefault(run.label, set()).add(run.seed)
    return seeds


@cache
def rows(grid: str) -> pandas.DataFrame:
    """Scores of a grid's recorded runs, with those on resamples of the test pairs; none before its
    first run."""
    path = RESULTS / f"{grid}.sqlite"
    if not path.is_file():
        return pandas.DataFrame(columns=["label", "seed", "measure", "task", "value", "method"])
    scores = comparable_scores(path)
    resamples = pandas.read_parquet(path.with_name(f"{grid}-resamples.parquet"))
    known = scores[["key", "label", "seed", "method"]].drop_duplicates()
    return pandas.concat([scores, resamples.merge(known, on="key")], ignore_index=True)


@cache
def complete(grid: str) -> set[str]:
    """Labels of which all runs are recorded."""
    have = rows(grid).groupby("label").seed.agg(set)
    return {label for label, seeds in declared(grid).items() if seeds <= have.get(label, set())}


@cache
def checked(grid: str, measure: str = "test") -> pandas.DataFrame:
    """The claims of the study whose runs are all there, checked, by name."""
    claims = [
        claim.model_copy(update={"measure": measure})
        for claim in read_claims(REFERENCE / "joint.toml")
        if {claim.better, claim.than, *(claim.minus or ())} <= complete(grid)
    ]
    return check_claims(rows(grid), claims).set_index("claim", drop=False)


def progress(grid: str) -> str:
    """Number of a grid's runs that are recorded: "24 of 197"."""
    runs = {(label, seed) for label, seeds in declared(grid).items() for seed in seeds}
    done = set(zip(rows(grid).label, rows(grid).seed, strict=True))
    return f"{len(runs & done)} of {len(runs)}"


def table() -> pandas.DataFrame:
    """A row a claim: the paper's gap, and the difference with its interval and verdict."""
    claims = read_claims(REFERENCE / "joint.toml")
    found = pandas.DataFrame(index=[claim.claim for claim in claims])
    gaps = ["" if claim.gap is None else f"{claim.gap:+.2f}" for claim in claims]
    found["the paper"] = [
        f"{gap} (no gain)" if gap and claim.claims == "none" else gap
        for claim, gap in zip(claims, gaps, strict=True)
    ]
    for grid, head in STARTS.items():
        for measure, suffix in (("test", ""), ("no captions", ", no captions")):
            done = checked(grid, measure)
            family = len(done) == len(claims)  # Holm's correction is over all
            cells = {row.claim: _cell(row, family) for _, row in done.iterrows()}
            found[f"{head}{suffix}"] = [cells.get(claim.claim, "") for claim in claims]
    return found


def _cell(row: pandas.Series, family: bool) -> str:
    star = "*" if family and row.p_holm < 0.05 else ""
    return f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]: {row.verdict}{star}"


def scores() -> pandas.DataFrame:
    """Mean and spread of the test average of every complete row, from high to low, by start."""
    columns = {}
    for grid, head in STARTS.items():
        found = rows(grid).query("measure == 'test' and task == 'average'")
        of = found[found.label.isin(complete(grid))].groupby("label").value
        columns[head] = of.mean()
        columns[f"{head}, sd"] = of.std()
        columns[f"{head}, seeds"] = of.size()
    found = pandas.DataFrame(columns).sort_values(STARTS["english"], ascending=False)
    forms = {name: "{:.0f}" if name.endswith("seeds") else "{:.2f}" for name in found}
    return found.apply(
        lambda column: column.map(lambda x: "" if pandas.isna(x) else forms[column.name].format(x))
    )


def curves(grid: str) -> pandas.DataFrame:
    """Mean dev score of each complete row by step, and how often dev kept the start, step 0."""
    found = rows(grid).query("measure == 'dev curve'")
    found = found[found.label.isin(complete(grid))]
    if found.empty:
        return pandas.DataFrame(columns=["step 0"])
    found = found.assign(step=found.task.astype(int))
    shown = found.pivot_table(index="label", columns="step", values="value")
    runs = found.assign(trained=found.step > 0).pivot_table(
        index=["label", "seed"], columns="trained", values="value", aggfunc="max"
    )
    kept = runs.gt(runs[True], axis=0)[False].groupby("label").agg(["sum", "size"])
    shown = shown.map(lambda x: "" if pandas.isna(x) else f"{x:.2f}").rename(
        columns="step {}".format
    )
    return shown.assign(
        **{"step 0 kept": kept["sum"].astype(str) + " of " + kept["size"].astype(str)}
    )


def answer() -> str:
    """What the study says of each question, or how far it is."""
    done = checked("english")
    pairs = [(f"{a} ({h})", f"{b} ({h})") for a, b in QUESTIONS.values() for h in HEADS]
    ready = {(row.better, row.than): row for row in done.itertuples() if row.minus is None}
    if not all(pair in ready for pair in pairs):
        return (
            f"{progress('english')} runs from an English start (B) and {progress('captions')} from "
            "captions (A) are recorded. A row gets its verdict after its last seed."
        )
    sentences = []
    for question, (better, than) in QUESTIONS.items():
        parts = []
        for head, where in HEADS.items():
            row = ready[f"{better} ({head})", f"{than} ({head})"]
            numbers = f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]"
            parts.append(f"{WORDS.get(row.verdict, row.verdict)} {where} ({numbers})")
        sentences.append(f"{question} {', and '.join(parts)}.")
    return " ".join(sentences)
