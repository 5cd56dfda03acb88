"""The tables of the project's recorded studies, from their stores: `python tests/reference/results.py` fills RESULTS.md and the README;
with `--figures` it draws theirs too, in a browser.

A table stands between `<!-- table: KIND [TEXT] [NAME] -->` and `<!-- end -->`; what is between them is written anew, no more.
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

import pandas
import plotly.graph_objects as go
from pictures import draw

from cselab import reported
from cselab.data.sts import STS7
from cselab.evaluation import compare_methods
from cselab.recorded import TEXTS, store, there, trained
from cselab.sweep.claims import NO_RUNS, check_claims, read_claims, shown_claims
from cselab.sweep.grid import expand, read_grid
from cselab.sweep.tables import PAPERS, Tables, markdown, printed_averages, read_tables
from cselab.views.figures import energy_chart, name_rows
from cselab.views.theme import PALETTE, use_theme

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "outputs" / "reference"
CLAIMS = REFERENCE / "claims.toml"
PRINTED = {
    "untrained (first_last)": "BERT-base", "SimCSE": "SimCSE", "off-dropout": "ImSimCSE (+Off-Info)", "SimCSE + DCL": "ImSimCSE (+DCL)",
    "ImSimCSE": "ImSimCSE", "EDFSE (4 pivots)": "EDFSE", "TNCSE": "TNCSE", "JTCSE, parallel": "JTCSE", "EDFSE D": "EDFSE D",
    "TNCSE D": "TNCSE D", "JTCSE D": "JTCSE D", "JTCSE UC": "JTCSE+UC", "JTCSE UC D": "JTCSE+UC D", "whitened (cls)": "BERT-whitening",
    "first-last average": "BERT-base", **PAPERS,
}  # fmt: skip
"""Labels of the main table and of the baselines' by their rows in JTCSE's Table I or ImSimCSE's Table 3."""
HEADLINE = [
    "untrained (cls)", "SimCSE", "ImSimCSE", "DCL alone", "SimCSE, I + II", "EDFSE (4 pivots)", "TNCSE", "JTCSE, parallel", "TNCSE D",
    "JTCSE D", "SimCSE, supervised",
]  # fmt: skip
SHOWN = ["average", "sd", "seeds", "dev", "difference", "95 % interval", "p (Holm)", "seeds for 80 % power"]
STUDIES = {
    "losses": ("SimCSE, I + II", ["SimCSE, I + II, 260 steps", "JTCSE: *", "JTCSE, parallel"]),
    "caels": ("JTCSE, parallel", ["JTCSE, * CAELs, *", "TNCSE"]),
    "norms": ("JTCSE, h^L, 0 without LayerNorm", ["JTCSE, h^L, *", "JTCSE, parallel"]),
    "released": ("JTCSE, parallel", ["JTCSE, released *"]),
    "released-tower": ("off-dropout", ["off-dropout, released"]),
    "pooling": ("SimCSE", ["SimCSE, mean", "SimCSE, first_last", "SimCSE, last_two", "SimCSE, pooler"]),
    "noise": ("SimCSE", ["more noise, *", "less noise, *"]),
    "rank": ("SimCSE", ["SimCSE + Barlow, *"]),
    "round-trips": ("tower, round trips twice", ["tower, round trips *"]),
    "text": ("SimCSE", ["SimCSE with *", "SimCSE, a third *"]),
    "text-twin": ("JTCSE, parallel", ["JTCSE with *", "JTCSE, a third *"]),
    "terms": ("SimCSE, τ = 0.05", ["off-dropout", "SimCSE + DCL", "ImSimCSE", "TNCSE, one tower"]),
    "terms-3e-05": ("SimCSE, τ = 0.05, rate 3e-05", ["off-dropout", "SimCSE + DCL", "TNCSE, one tower"]),
    "terms-0.0001": ("SimCSE, τ = 0.05, rate 0.0001", ["ImSimCSE"]),
    "knobs": ("ImSimCSE", ["ImSimCSE, m = *", "ImSimCSE, pos_ratio = *", "ImSimCSE, off_info,*", "ImSimCSE, τ = *", "off-dropout"]),
    "together": ("JTCSE, parallel", ["JTCSE + DCL", "JTCSE, off-dropout*", "TNCSE", "TNCSE + DCL"]),
    "bellm-mean": ("BeLLM none, mean", ["BeLLM *, mean"]),
    "bellm-last": ("BeLLM none, last_token", ["BeLLM *, last_token"]),
}  # fmt: skip
"""By name: the row that others are compared with, and these."""


@cache
def declared(grid: str) -> list[str]:
    """Labels of a grid, in its order."""
    return list(dict.fromkeys(run.label for run in expand(read_grid(REFERENCE / "grids" / grid), ROOT / "notebooks")))


@cache
def everything(text: str) -> Tables:
    return read_tables(store(text), claims=CLAIMS)


@cache
def compared(text: str, against: str, only: tuple[str, ...]) -> Tables:
    return read_tables(store(text), against=against, only=only)


def ordered(table: pandas.DataFrame, labels: list[str]) -> pandas.DataFrame:
    return table.reindex([label for label in labels if label in table.index])


def main_table(text: str) -> pandas.DataFrame:
    labels = declared(f"{text}.toml")
    table = ordered(compared(text, "SimCSE", tuple(labels)).texts["scores"], labels)[SHOWN]
    return table.assign(**{"paper's BERT-base": [printed(label) for label in table.index]})


def printed(label: str) -> str:
    return f"{printed_averages()[PRINTED[label]]:.2f}" if label in PRINTED else ""


def headline() -> pandas.DataFrame:
    """Mean and spread on either text and the difference from SimCSE, of the rows that a reader looks for first."""
    table = pandas.DataFrame(index=HEADLINE)
    for text in there():
        found = main_table(text).reindex(HEADLINE)
        table[f"{text}: mean ± sd"] = found.average + " ± " + found.sd
        table[f"{text}: − SimCSE"] = (found.difference + " " + found["95 % interval"]).str.strip()
    return table.assign(**{"paper's BERT-base": [printed(label) for label in HEADLINE]})


def means(text: str, name: str) -> pandas.DataFrame:
    """Phenomena or geometry of the main table's rows."""
    labels = declared(f"{text}.toml")
    return ordered(compared(text, "SimCSE", tuple(labels)).texts[name], labels)


def transfer(text: str) -> pandas.DataFrame:
    """Accuracy on the transfer tasks, and the average's difference from SimCSE, of runs measured by nothing else."""
    tables = read_tables(store(f"{text}-transfer"), against="SimCSE")
    found, texts = compare_methods(averages(tables, "transfer"), "SimCSE"), tables.texts["transfer"]
    found = found.reindex(texts.index)
    texts["sd"], texts["seeds"] = found.sd.map("{:.2f}".format), found.seeds.map(str)
    texts["average − SimCSE"] = differences(found)
    return ordered(texts, declared(f"{text}.toml"))


def averages(tables: Tables, measure: str) -> pandas.DataFrame:
    """Rows for `compare_methods`: a run's average over the tasks of one measure."""
    rows = tables.rows.rename(columns={"label": "method", "value": "average"})
    return rows[(rows.measure == measure) & (rows.task == "average")][["method", "seed", "average"]]


def differences(found: pandas.DataFrame) -> list[str]:
    """Differences of `compare_methods` with their intervals."""
    return [
        f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]" if pandas.notna(row.difference) else ""
        for row in found.itertuples()
    ]


def sums(text: str) -> pandas.DataFrame:
    """What a second tower is worth, added without further training, objective by objective; and JTCSE beside the sum."""
    labels = declared(f"{text}.toml")
    rows = averages(compared(text, "SimCSE", tuple(labels)), "test")
    return second_towers(rows, summed(labels, ", I + II"), "JTCSE, parallel")


def fair(text: str) -> pandas.DataFrame:
    """The same of the papers' baselines, by one budget, beside TNCSE's Table 3, which JTCSE prints again."""
    pairs = {"simcse": "towers"} | summed(declared(f"baselines-{text}.toml"), "_towers")
    table = second_towers(averages(baseline_tables(text), "test"), pairs, "jtcse")
    two = reported.rows("tncse", "3").query("variant == 'dual encoder'").set_index("model").value
    one = printed_averages()
    for name in pairs:
        model = PRINTED[name]
        table.loc[name, "paper: second one's worth"] = f"{two[model] - one[model]:+.2f}"
        table.loc[name, "paper: JTCSE − the sum"] = f"{one['JTCSE'] - two[model]:+.2f}"
    return table


def summed(labels: list[str], suffix: str) -> dict[str, str]:
    """Methods of one tower by their labels, each with the label of its sum, which ends in `suffix`."""
    return {label.removesuffix(suffix): label for label in labels if label.endswith(suffix)}


def second_towers(rows: pandas.DataFrame, pairs: dict[str, str], twin: str) -> pandas.DataFrame:
    """Of each method (its label, and that of the sum of two of its towers): both scores, and the twin's difference from the sum."""
    table = {}
    for one, both in pairs.items():
        found = compare_methods(rows[rows.method.isin([one, both])], one)
        joint = compare_methods(rows[rows.method.isin([both, twin])], both)
        scores = found.average.map("{:.2f}".format)
        table[one] = [*scores[[one, both]], differences(found.loc[[both]])[0], differences(joint.loc[[twin]])[0]]
    return pandas.DataFrame.from_dict(
        table, orient="index", columns=["one tower", "two, summed", "the second one's worth", "JTCSE − the sum"]
    )


def study(text: str, name: str) -> pandas.DataFrame:
    return of_study(text, name).texts["scores"][SHOWN]


@cache
def of_study(text: str, name: str) -> Tables:
    """Over the seeds that all its rows have: those that stand in the main table too have more."""
    against, only = STUDIES[name]
    seeds = compared(text, against, tuple(only)).rows.groupby("label").seed.agg(set)
    return read_tables(store(text), against=against, only=only, seeds=set.intersection(*seeds))


def verdicts() -> pandas.DataFrame:
    """A row a claim: the paper's gap, and what either text says of it."""
    table = pandas.DataFrame(index=[claim.claim for claim in read_claims(CLAIMS)])
    for text in there():
        found = everything(text).texts["claims"]
        table["paper"] = found.paper
        table[f"{text}: here"] = (found.here + " " + found["95 % interval"]).str.strip()
        table[f"{text}: verdict"] = found.verdict
    return table


def evidence(text: str) -> pandas.DataFrame:
    return everything(text).texts["claims"]


def counts() -> pandas.DataFrame:
    """How many claims have which verdict."""
    columns = {text: everything(text).numbers["claims"].verdict.value_counts() for text in there()}
    table = pandas.DataFrame(columns).fillna(0).astype(int).astype(str)
    return table.reindex(
        [name for name in ("held", "reversed", "not seen", "under-powered", "no runs") if name in table.index]
    )


def captions(text: str, name: str = "") -> pandas.DataFrame:
    """The main table's rows, or a study's, over all pairs of the seven tasks, and over those of six that are no captions."""
    labels = declared(f"{text}.toml")
    found = of_study(text, name) if name else compared(text, "SimCSE", tuple(labels))
    table = {}
    for part, measure in {"all pairs": "test", "no captions": "no captions"}.items():
        scores = compare_methods(averages(found, measure), found.against)
        table[part] = scores.average.map("{:.2f}".format)
        table[f"{part}: − {found.against}"] = differences(scores)
    return ordered(pandas.DataFrame(table), list(found.texts["scores"].index) if name else labels)


def changed(text: str) -> pandas.DataFrame:
    """Claims whose verdict is another one without captions."""
    claims = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"]
    without = [claim.model_copy(update={"measure": "no captions"}) for claim in claims]
    found = {
        name: shown_claims(check_claims(everything(text).rows, some))
        for name, some in {"all pairs": claims, "no captions": without}.items()
    }
    table = pandas.concat(
        {
            f"{name}: {column}": some[column]
            for name, some in found.items()
            for column in ("here", "95 % interval", "verdict")
        },
        axis=1,
    )
    return table[table["all pairs: verdict"] != table["no captions: verdict"]]


@cache
def baseline_tables(text: str) -> Tables:
    return read_tables(store(f"baselines-{text}"), against="simcse")


def baselines(text: str) -> pandas.DataFrame:
    """Every method of the grid of baselines, with what a step of its training costs (`tests/benchmarks/bench.py --only g`)."""
    labels = declared(f"baselines-{text}.toml")
    table = ordered(baseline_tables(text).texts["scores"], labels)
    costs = json.loads((REFERENCE / "benchmarks.json").read_text())["cpu"]["figures"]
    costs = {name.removesuffix(" step"): cost for name, cost in costs.items() if cost["benchmark"] == "g"}
    base = 64 / min(cost["peer_s"] for cost in costs.values())  # SimCSE's; ratios hold from run to run, seconds do not
    shares = {"simcse": 1.0, **{name: cost["times"] for name, cost in costs.items()}}
    speeds = {name: f"{share * base:.0f} ({share:.2f})" for name, share in shares.items()}
    table["sentences/s"] = [speeds.get(name, "") for name in table.index]
    table["paper's BERT-base"] = [printed(name) for name in table.index]
    return table[[*(task for task in STS7 if task in table), *SHOWN, "sentences/s", "paper's BERT-base"]]


def orders() -> pandas.DataFrame:
    """Do methods that are trained come in one order here and in the papers? Spearman over those that the papers print."""
    averages = {text: baseline_tables(text).numbers["scores"].average for text in TEXTS}
    table = pandas.DataFrame(averages).drop(["flow", "whitened", "first-last average"])
    table["papers"] = table.index.map(PRINTED).map(printed_averages())
    found = table.dropna().corr(method="spearman")
    return found.map("{:+.2f}".format).rename(columns={"papers": f"papers ({len(table.dropna())} methods)"})


STORES = ("world", "baselines-world", "real", "baselines-real", "real-transfer")


def sources() -> pandas.DataFrame:
    """Count the rows of each store by the versions of the library's source that made their runs.

    A row whose seeds are of several versions is mixed, and named.
    """
    table = {}
    for name in STORES:
        runs = read_tables(store(name)).rows[["label", "seed", "source"]].drop_duplicates()
        made = runs.groupby("label", sort=False).apply(versions, include_groups=False)
        for versions_of_row, labels in made.groupby(made, sort=False).groups.items():
            mixed = "; ".join(labels) if " + " in versions_of_row else ""
            table[f"{name}: {versions_of_row}"] = [str(len(labels)), mixed]
    return pandas.DataFrame.from_dict(table, orient="index", columns=["rows", "mixed rows"])


def versions(runs: pandas.DataFrame) -> str:
    """Name the versions of one row's runs: "5c130b7 (seeds 1-5) + 2ccf47c (seeds 6-11)"."""
    seeds = runs.groupby("source").seed.agg(["min", "max", "size"]).sort_values("min")
    no_gaps = seeds["max"] - seeds["min"] + 1 == seeds["size"]
    assert no_gaps.all(), "the seeds of a version have gaps"
    rows = seeds.itertuples()
    return " + ".join(f"{source[:7]} (seeds {low}-{high})" for source, low, high, _ in rows)


KINDS = {
    "headline": headline, "verdicts": verdicts, "counts": counts, "main": main_table, "means": means, "study": study, "evidence": evidence,
    "baselines": baselines, "orders": orders, "captions": captions, "changed": changed,
    "transfer": transfer, "sums": sums, "fair": fair, "sources": sources,
}  # fmt: skip


def filled(page: str) -> str:
    """The page with its tables written anew. Raises KeyError for a marker of an unknown kind."""

    def fill(found: re.Match) -> str:
        kind, *given = found[1].split()
        return f"<!-- table: {found[1]} -->\n\n{markdown(KINDS[kind](*given))}\n\n<!-- end -->"

    return re.sub(r"<!-- table: (.+?) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


def claims_figure() -> go.Figure:
    """Claims of scores: what the paper prints, and our difference on either text with its interval; beyond the axis: at its edge."""
    claims, edge = [claim for claim in read_claims(CLAIMS) if claim.measure == "test"], 6
    names, figure = [claim.claim for claim in claims], go.Figure()
    for place, (text, colour) in enumerate(zip(there(), PALETTE, strict=False)):
        found = everything(text).numbers["claims"]
        shown = found[(found.measure == "test") & (found.verdict != NO_RUNS)]
        x = shown.difference.clip(-edge, edge)
        figure.add_scatter(
            x=x, y=[names.index(claim) + 0.22 * place for claim in shown.claim], mode="markers+text", name=f"{text}: 95 % interval",
            text=[f"→ {value:.1f}" if value > edge else "" for value in shown.difference], textposition="middle right",
            textfont=dict(color=colour),
            marker=dict(color=colour, size=8, symbol=("circle", "diamond")[place]),
            error_x=dict(array=shown.high.clip(-edge, edge) - x, arrayminus=x - shown.low.clip(-edge, edge), thickness=1.5),
        )  # fmt: skip
    printed = [(place, claim.gap) for place, claim in enumerate(claims) if claim.gap is not None]
    figure.add_scatter(
        x=[min(gap, edge) for _, gap in printed], y=[place + 0.1 for place, _ in printed], mode="markers+text", name="the paper's gap",
        text=[f"→ {gap:.1f}" if gap > edge else "" for _, gap in printed], textposition="middle right",
        marker=dict(color="#000", symbol="line-ns-open", size=14),
    )  # fmt: skip
    figure.add_vline(x=0, line=dict(color="#888", dash="dot"))
    name_rows(figure, names)
    figure.update_xaxes(range=[-edge - 0.3, edge + 2], tickvals=list(range(-edge, edge + 1)))
    return figure.update_layout(
        xaxis_title="points of Spearman × 100 in the direction of the claim", height=200 + 28 * len(names), width=1080
    )


PAGES = (REFERENCE / "RESULTS.md", ROOT / "README.md")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if "--figures" in sys.argv:
        use_theme()
        energies = {f"energy-{text}": energy_chart(trained(text)) for text in there()}
        draw({"claims": claims_figure(), **energies}, REFERENCE / "figures")
