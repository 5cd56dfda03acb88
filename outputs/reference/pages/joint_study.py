"""The study of joint training (outputs/reference/joint.toml): its table and its answer.

A claim has a verdict when all runs of its rows are there, and a * when all claims have one.
"""

from functools import cache

import pandas
from claim_tables import marked
from result_values import REFERENCE

from cselab.experiments.grid import expand, read_grid
from cselab.study.claims import (
    BETTER,
    EQUAL,
    LESS,
    NO_DIFFERENCE,
    NO_RUNS,
    UNDECIDED,
    WORSE,
    check_claims,
    read_claims,
    shown_claims,
)
from cselab.study.comparable import comparable_scores
from cselab.study.texts import as_texts
from cselab.workbook.course import interval

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
def recorded(grid: str) -> pandas.DataFrame:
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
def rows(grid: str) -> pandas.DataFrame:
    """The recorded scores of the labels of which all runs are there."""
    found = recorded(grid)
    have = found.groupby("label").seed.agg(set)
    complete = {label for label, seeds in declared(grid).items() if seeds <= have.get(label, set())}
    return found[found.label.isin(complete)]


@cache
def checked(grid: str, measure: str = "test") -> pandas.DataFrame:
    """The claims of the study, checked against complete rows, by name."""
    claims = read_claims(REFERENCE / "joint.toml")
    claims = [claim.model_copy(update={"measure": measure}) for claim in claims]
    return check_claims(rows(grid), claims).set_index("claim", drop=False)


def progress(grid: str) -> str:
    """Number of a grid's runs that are recorded: "24 of 197"."""
    runs = {(label, seed) for label, seeds in declared(grid).items() for seed in seeds}
    found = recorded(grid)
    return f"{len(runs.intersection(zip(found.label, found.seed, strict=True)))} of {len(runs)}"


def table() -> pandas.DataFrame:
    """A row a claim: the paper's gap, and the difference with its interval and verdict."""
    found = {"the paper": shown_claims(checked("english")).paper}
    for grid, head in STARTS.items():
        for measure, suffix in (("test", ""), ("no captions", ", no captions")):
            done = checked(grid, measure)
            whole = NO_RUNS not in set(done.verdict)  # Holm's correction is over all claims
            found[head + suffix] = pandas.Series(
                {
                    row.claim: f"{interval(row)}: {marked(row) if whole else row.verdict}"
                    for _, row in done[done.verdict != NO_RUNS].iterrows()
                },
                dtype=str,
            )
    return pandas.DataFrame(found).reindex(checked("english").index).rename_axis(None).fillna("")


def scores() -> pandas.DataFrame:
    """Mean and spread of the test average of every complete row, from high to low, by start."""
    columns = {}
    for grid, head in STARTS.items():
        of = rows(grid).query("measure == 'test' and task == 'average'").groupby("label").value
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
    if found.empty:
        return pandas.DataFrame(columns=["step 0"])
    found, run = found.assign(step=found.task.astype(int)), ["label", "seed"]
    start = found[found.step == 0].groupby(run).value.max()
    trained = found[found.step > 0].groupby(run).value.max()
    kept = (start > trained).groupby("label").agg(["sum", "size"]).astype(str)
    table = found.pivot_table(index="label", columns="step", values="value")
    table = as_texts(table.rename(columns="step {}".format), 2)
    return table.assign(**{"step 0 kept": kept["sum"] + " of " + kept["size"]})


def answer() -> str:
    """What the study says of each question, or how far it is."""
    done = checked("english")
    done = done[done.verdict != NO_RUNS]
    pairs = [(f"{a} ({h})", f"{b} ({h})") for a, b in QUESTIONS.values() for h in HEADS]
    ready = {(row.better, row.than): row for _, row in done.iterrows() if row.minus is None}
    if not ready.keys() >= set(pairs):
        return (
            f"{progress('english')} runs from an English start (B) and {progress('captions')} from "
            "captions (A) are recorded. A row gets its verdict after its last seed."
        )
    sentences = []
    for question, (better, than) in QUESTIONS.items():
        parts = []
        for head, where in HEADS.items():
            row = ready[f"{better} ({head})", f"{than} ({head})"]
            parts.append(f"{WORDS[row.verdict]} {where} ({interval(row)})")
        sentences.append(f"{question} {', and '.join(parts)}.")
    return " ".join(sentences)
