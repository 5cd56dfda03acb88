"""Sentences of a notebook that depend on its numbers."""

import json
from collections.abc import Mapping

import pandas
from IPython.display import Markdown

from cselab.evaluation import PairComparison, SeedComparison, StsReport
from cselab.experiments import Lab, Trained
from cselab.methods import MethodConfig
from cselab.paths import shipped
from cselab.study import recorded
from cselab.study.texts import markdown


def tests(lab: Lab) -> str:
    """What a verdict is on: the one test, or the average of all.

    Args:
        lab: Whose tests they are.

    Examples:
        >>> from cselab.workbook.course import tests
        >>> from cselab.experiments import open_lab
        >>> tests(open_lab("x"))
        'Synthetic'
    """
    names = lab.data.test_tasks
    return names[0] if len(names) == 1 else f"the average of {len(names)} tests"


def relation(found: PairComparison | SeedComparison, other: str) -> str:
    """How a score stands to another one's: above, below or not distinguishable, with the interval.

    Args:
        found: The difference.
        other: Name of what it is from.

    Examples:
        >>> from cselab.workbook.course import relation
        >>> from cselab.evaluation import PairComparison
        >>> relation(PairComparison(2.0, 1.5, 2.5, 0.001), "SimCSE")
        '2.0 points above SimCSE (95 % interval 1.5 to 2.5)'
    """
    difference = found.mean if isinstance(found, SeedComparison) else found.difference
    return _relation(difference, found.low, found.high, other, digits=1)


def recorded_relation(label: str, other: str) -> str:
    """How a recorded method stands to another one over seeds: a list, one line a store.

    Args:
        label: Label of recorded runs.
        other: Label of the runs that it is compared with.

    Returns:
        Markdown.

    Raises:
        DataError: For a label without recorded runs, with the nearest.

    Examples:
        >>> from cselab.workbook.course import recorded_relation
        >>> print(recorded_relation("TNCSE", "SimCSE"))  # doctest: +ELLIPSIS
        - synthetic text, as the papers set it: TNCSE is ... SimCSE (...95 % interval ...)
        ...
    """
    lines = []
    for text, table in recorded.tables(other, [label]).items():
        if label in table.index:
            row = table.loc[label]
            words = _relation(row.difference, row.low, row.high, other, digits=2)
            lines.append(f"- {text}: {label} is {words}")
    return "\n".join(lines)


def recorded_differences(tables: Mapping[str, pandas.DataFrame]) -> str:
    """The differences of `recorded.tables` with their intervals: a row a label, a column a store.

    Args:
        tables: Results of `evaluation.compare_methods` by name of the text.

    Returns:
        A table in Markdown.

    Examples:
        >>> import pandas
        >>> from cselab.workbook.course import recorded_differences
        >>> table = pandas.DataFrame({"difference": [1.5], "low": [1.0], "high": [2.0]}, ["TNCSE"])
        >>> print(recorded_differences({"synthetic text": table}))
        | | synthetic text |
        |---|---|
        | TNCSE | +1.50 [+1.00, +2.00] |
    """
    cells = {
        text: {
            name: f"{row.difference:+.2f} [{row.low:+.2f}, {row.high:+.2f}]"
            for name, row in table.dropna(subset="difference").iterrows()
        }
        for text, table in tables.items()
    }
    labels = dict.fromkeys(label for column in cells.values() for label in column)
    return markdown(pandas.DataFrame(cells, labels).fillna(""))


def _relation(difference: float, low: float, high: float, other: str, digits: int) -> str:
    interval = f"95 % interval {low:.{digits}f} to {high:.{digits}f}"
    if low <= 0 <= high:
        return f"not distinguishable from {other} ({difference:+.{digits}f} points, {interval})"
    side = "above" if difference > 0 else "below"
    return f"{abs(difference):.{digits}f} points {side} {other} ({interval})"


def reveal(text: str) -> Markdown:
    """A folded answer to a "predict" question.

    Args:
        text: Markdown, equations included.

    Examples:
        >>> from cselab.workbook.course import reveal
        >>> "Compare with your prediction" in reveal("It falls.").data
        True
    """
    return Markdown(
        f"<details><summary>Compare with your prediction</summary>\n\n{text}\n\n</details>"
    )


def guide(lab: Lab) -> Markdown:
    """What the lab's notebook takes in each profile, and how to run it at full size.

    Args:
        lab: The lab of a notebook of this project.

    Examples:
        >>> from cselab.workbook.course import guide
        >>> from cselab.experiments import open_lab
        >>> "cselab run 03 -p profile=paper" in guide(open_lab("03_jtcse_training")).data
        True
    """
    times = json.loads((shipped("reference") / "times.json").read_text())
    notebook = times["notebooks"].get(lab.notebook)
    number = lab.notebook[:2] if lab.notebook[0].isdigit() else lab.notebook
    took = ""  # a new notebook has no entry yet
    if notebook:
        tiny, small, paper = (notebook[profile] for profile in ("tiny", "small", "paper"))
        took = (
            f"**Running time.** Profile `tiny`: {tiny['time']} in a run of the whole workbook "
            f"({times['machine']}), {tiny['memory']} of memory. Run alone, it also does the "
            f"trainings that it shares with earlier notebooks. `small`: {small['time']}. `paper`, "
            f"on a GPU: {paper['time']}, {paper['memory']} (both estimated).\n\n"
        )
    return Markdown(
        f"{took}"
        '**At full size**, with a GPU and the hub, set `profile = "paper"` in the parameters cell, '
        "or in a terminal\n\n"
        f"```sh\ncselab run {number} -p profile=paper\n```\n\n"
        "With real text of your own and without the hub: "
        f"`cselab run {number} -p profile=small -p data_dir=~/data`."
    )


def compare_with_recorded(lab: Lab, trained: Mapping[str, tuple[StsReport, Trained]]) -> Markdown:
    """A box: the scores of this page beside those of the recorded runs, and why they differ.

    Args:
        lab: The lab of the page.
        trained: Test report and training, by the label of the recorded runs.

    Examples:
        >>> import cselab
        >>> from cselab.workbook.course import compare_with_recorded
        >>> from cselab.experiments import Trained, open_lab
        >>> lab = open_lab("x", sentences=50, synthetic_pairs=20)
        >>> tower = Trained(cselab.load("tiny-bert"), lab.config("simcse"))  # stands for a training
        >>> report = lab.evaluate({"SimCSE": tower})["SimCSE"]
        >>> box = compare_with_recorded(lab, {"SimCSE": (report, tower)})
        >>> "with one seed, on 50 sentences" in box.data
        True
    """
    text = "real" if lab.data.has_real_data else "synthetic"
    grid = f"{text}-papers"
    tables = recorded.tables(next(iter(trained)), list(trained), {text: grid})
    found, configs = tables[text], recorded.methods(grid)
    shown = {label: trained[label] for label in trained if label in found.index}
    lines = [
        f"| {label} | {report.average:.1f} | {of.config.value_at(('schedule', 'steps'))} | "
        f"{found.average[label]:.1f} ± {found.sd[label]:.1f} | "
        f"{configs[label].value_at(('schedule', 'steps'))} | "
        f"{found.seeds[label]} |"
        for label, (report, of) in shown.items()
    ]
    settings: dict[tuple[str, object, object], list[str]] = {}
    for label, (_, of) in shown.items():
        for difference in _different(of.config, configs[label]):
            settings.setdefault(difference, []).append(label)
    listed = [
        f"\n- `{path}`: {here} here, {there} there ({', '.join(labels)})"
        for (path, here, there), labels in settings.items()
    ]
    differ = "Settings that differ:" + "".join(listed) if listed else "All settings are equal."
    return Markdown(
        "| | this page | steps | recorded, as the papers set it: mean ± sd | steps | seeds |\n"
        "|---|---|---|---|---|---|\n" + "\n".join(lines) + "\n\n"
        f"**Why they differ.** This page trains with one seed, on {len(lab.data.text):,} "
        "sentences, for the steps in the table; the recorded numbers are means over their seeds. "
        f"It chooses checkpoints on {len(lab.data.dev_pairs):,} dev pairs, the recorded runs on "
        f"all. The text is {text} in both. {differ}"
    )


def _different(here: MethodConfig, there: MethodConfig) -> list[tuple[str, object, object]]:
    """Paths and values that differ, but for the length of a training and its arithmetic; None:
    this side has no such setting."""
    one, two = ({".".join(p): value for p, value, _ in of.leaves()} for of in (here, there))
    beside = ("seed", "schedule.steps", "schedule.eval_every", "schedule.bf16")
    return [
        (path, one.get(path), two.get(path))
        for path in dict.fromkeys([*one, *two])
        if one.get(path) != two.get(path) and not path.endswith(beside)
    ]
