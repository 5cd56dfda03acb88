"""Sentences of a notebook that depend on its numbers."""

import json
from collections.abc import Iterable, Mapping

import pandas
from IPython.display import Markdown

from cselab.evaluation.significance import PairComparison, SeedComparison, compare_averages
from cselab.evaluation.sts import StsReport
from cselab.experiments import Lab
from cselab.paths import shipped
from cselab.study import recorded


def tests(lab: Lab) -> str:
    """Name of the one test, or "the average of n tests".

    Examples:
        >>> from cselab.workbook.course import tests
        >>> from cselab.experiments import open_lab
        >>> tests(open_lab("x", profile="tiny"))
        'the synthetic STS test'
    """
    names = lab.data.test_tasks
    if list(names) == ["Synthetic"]:
        return "the synthetic STS test"
    return names[0] if len(names) == 1 else f"the average of {len(names)} tests"


def relation(found: PairComparison | SeedComparison, other: str) -> str:
    """Relation of a score to that of `other`: above, below or not distinguishable.

    Examples:
        >>> from cselab.workbook.course import relation
        >>> from cselab.evaluation import PairComparison
        >>> relation(PairComparison(-2.0, -2.5, -1.5, 0.001), "SimCSE")
        '2.0 points below SimCSE (95 % interval 1.5 to 2.5)'
        >>> relation(PairComparison(-0.01, -0.03, 0.02, 0.5), "SimCSE")
        'not distinguishable from SimCSE (−0.010 points, 95 % interval −0.030 to +0.020)'
    """
    difference = found.mean if isinstance(found, SeedComparison) else found.difference
    return _relation(difference, found.low, found.high, other, digits=1)


def compared(
    reports: Mapping[str, StsReport], one: str, other: str, *, name: str | None = None
) -> str:
    """The sentence "`one` is … points above `other`", by test pairs; `name` stands for `other`."""
    found = compare_averages(reports[one], reports[other])
    return f"{one} is {relation(found, name or other)}"


def comparisons(
    lab: Lab, reports: Mapping[str, StsReport], pairs: Iterable[tuple[str, str]], **options: str
) -> str:
    """A list in Markdown, one line of `compared` a pair, after the name of the lab's tests."""
    lines = [f"- {compared(reports, *pair, **options)}" for pair in pairs]
    return "\n".join([f"On {tests(lab)}:\n", *lines])


def signed(value: float, digits: int = 1) -> str:
    """A difference with its sign; zero has none.

    Examples:
        >>> from cselab.workbook.course import signed
        >>> signed(-1.25), signed(0.5), signed(-0.04)
        ('−1.2', '+0.5', '0.0')
    """
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text.replace("-", "−")


def by_sign(found: PairComparison | SeedComparison, above: str, neither: str, below: str) -> str:
    """The sentence that is true of a difference: its interval is above zero, holds it, or is below.

    Examples:
        >>> from cselab.workbook.course import by_sign
        >>> from cselab.evaluation import PairComparison
        >>> found = PairComparison(0.2, -0.1, 0.5, 0.2)
        >>> by_sign(found, "It helps.", "No effect found.", "It hurts.")
        'No effect found.'
    """
    return {1: above, 0: neither, -1: below}[_sign(found)]


def _sign(found: PairComparison | SeedComparison | pandas.Series) -> int:
    return int(found.low > 0) - int(found.high < 0)


def referee(live: PairComparison, against: str, label: str) -> str:
    """Whether the recorded runs of `label` minus `against` agree with this page's, and which of
    them to believe.

    Raises:
        DataError: For a label without recorded runs, with the nearest.

    Examples:
        >>> from cselab.workbook.course import referee
        >>> from cselab.evaluation import PairComparison
        >>> referee(PairComparison(0.0, -0.1, 0.1, 1.0), "SimCSE", "TNCSE")[:34]
        'The recorded runs find a differenc'
    """
    tables = recorded.tables(against, [label])
    rows = {text: table.loc[label] for text, table in tables.items() if label in table.index}
    other = {text: row for text, row in rows.items() if _sign(row) != _sign(live)}
    if not other:
        alike = "agree with this page in sign" if _sign(live) else "find no difference either"
        return f"The recorded runs {alike}."
    found = "find a difference" if not _sign(live) else "do not find the same"
    if not any(map(_sign, other.values())):
        found = "find no such difference"
    listed = "; ".join(f"{text}: {interval(row)}" for text, row in other.items())
    return (
        f"The recorded runs {found} ({listed}). They are over "
        f"{min(row.seeds for row in other.values()):.0f} or more seeds, this page is one: for the "
        "method, believe them, on their text and backbone; for this text, more seeds have to tell."
    )


def recorded_relation(label: str, other: str) -> str:
    """Relation of a recorded method to another one over seeds: a list, one line a store.

    Raises:
        DataError: For a label without recorded runs, with the nearest.

    Examples:
        >>> from cselab.workbook.course import recorded_relation
        >>> print(recorded_relation("TNCSE", "SimCSE"))  # doctest: +ELLIPSIS
        - synthetic text, as the papers set it: TNCSE is ... SimCSE (...95 % interval ...)
        ...
    """
    rows = {
        text: table.loc[label]
        for text, table in recorded.tables(other, [label]).items()
        if label in table.index
    }
    return "\n".join(
        f"- {text}: {label} is {_relation(row.difference, row.low, row.high, other, digits=2)}"
        for text, row in rows.items()
    )


def interval(row: pandas.Series, digits: int = 2) -> str:
    """A difference with its interval, of a row of `evaluation.compare_methods`.

    Examples:
        >>> import pandas
        >>> from cselab.workbook.course import interval
        >>> interval(pandas.Series({"difference": 1.5, "low": 1.0, "high": 2.0}))
        '+1.50 [+1.00, +2.00]'
    """
    difference, low, high = (signed(row[part], digits) for part in ("difference", "low", "high"))
    return f"{difference} [{low}, {high}]"


def listed(values: Mapping[str, float] | pandas.Series, form: str = ".1f", unit: str = "") -> str:
    """Names with their numbers, in one line.

    Examples:
        >>> from cselab.workbook.course import listed
        >>> listed({"SimCSE": 70.12, "TNCSE": 71}), listed({"fr": 0.25}, ".0%")
        ('SimCSE 70.1, TNCSE 71.0', 'fr 25%')
    """
    return ", ".join(f"{name} {value:{form}}{unit}" for name, value in values.items())


def _relation(difference: float, low: float, high: float, other: str, digits: int) -> str:
    if max(abs(low), abs(high)) < 0.1:
        digits = 3
    if low <= 0 <= high:
        points, least, most = (signed(x, digits) for x in (difference, low, high))
        return (
            f"not distinguishable from {other} ({points} points, 95 % interval {least} to {most})"
        )
    side = "above" if difference > 0 else "below"
    near, far = sorted((abs(low), abs(high)))
    return (
        f"{abs(difference):.{digits}f} points {side} {other} "
        f"(95 % interval {near:.{digits}f} to {far:.{digits}f})"
    )


def notice(conclusion: str, numbers: str = "") -> Markdown:
    """A "What to notice": one or two sentences, and the numbers behind them, folded."""
    folded = f"\n\n{_folded('The numbers', numbers)}" if numbers else ""
    return Markdown(f"**What to notice.** {conclusion}{folded}")


def reveal(text: str) -> Markdown:
    """A folded answer to a "predict" question, in Markdown with equations.

    Examples:
        >>> from cselab.workbook.course import reveal
        >>> "Compare with your prediction" in reveal("It falls.").data
        True
    """
    return Markdown(_folded("Compare with your prediction", text))


def verdict(text: str) -> Markdown:
    """The end of a notebook: what a reader should take away, in one sentence."""
    return Markdown(f"**In one sentence.** {text}")


def _folded(summary: str, text: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{text}\n\n</details>"


def guide(lab: Lab) -> Markdown:
    """The lab's text, tests and time, folded, and how to run its notebook at full size.

    Examples:
        >>> from cselab.workbook.course import guide
        >>> from cselab.experiments import open_lab
        >>> "cselab run 03 -p profile=paper" in guide(open_lab("03_jtcse_training")).data
        True
    """
    times = json.loads((shipped("reference") / "times.json").read_text())
    number = lab.notebook[:2] if lab.notebook[0].isdigit() else lab.notebook
    took = ""  # a new notebook has no entry yet
    if notebook := times["notebooks"].get(lab.notebook):
        took = (
            f"**Running time.** As it is: {notebook['time']} ({times['machine']}), "
            f"{notebook['memory']} of memory. Run alone, it also does the trainings that it shares "
            "with earlier notebooks. For the papers' size, `cselab sweep -m jtcse -p profile=paper "
            "--dry-run` estimates the hours of a training.\n\n"
        )
    if lab.config("simcse").backbone == "minilm-mlm":
        took += (
            "**The backbone.** `minilm-mlm` is a sentence encoder that has forgotten its sentence "
            "space, so that it starts where BERT-base does in the papers. Its weights once saw a "
            "billion supervised pairs: compare methods here, not scores with the papers' "
            "*unsupervised* ones.\n\n"
        )
    data = lab.data
    read = (
        f"**Text and tests.** {len(data.text):,} sentences from {data.text.source}; checkpoints "
        f"are selected on {data.dev_name}, scores are of {', '.join(data.test_tasks)}.\n\n"
    )
    return Markdown(
        _folded(
            f"Set-up: profile {lab.profile}, text, times, full size",
            f"{read}{took}"
            '**At full size**, with a GPU and the hub, set `profile = "paper"` in the parameters '
            "cell, or in a terminal\n\n"
            f"```sh\ncselab run {number} -p profile=paper\n```\n\n"
            "With real text of your own and without the hub: "
            f"`cselab run {number} -p profile=small -p data_dir=~/data`.",
        )
    )
