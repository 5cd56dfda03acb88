"""The papers' zero-shot tables as lists of mteb's tasks."""

import functools
from dataclasses import dataclass
from typing import Any

import pandas

from cselab.errors import SettingsError, suggest
from cselab.study import papers

MTEB_NAMES = {
    "ContractNLIInclusionOfVerbally": (
        "ContractNLIInclusionOfVerballyConveyedInformationLegalBenchClassification"
    ),
    "ContractNLIPermissibleAcquirement": (
        "ContractNLIPermissibleAcquirementOfSimilarInformationLegalBenchClassification"
    ),
    "ContractNLIPermissibleDevelopment": (
        "ContractNLIPermissibleDevelopmentOfSimilarInformationLegalBenchClassification"
    ),
    "OPP115InternationalAndSpecific": (
        "OPP115InternationalAndSpecificAudiencesLegalBenchClassification"
    ),
    "PolEmo2": "PolEmo2.0-IN",  # the table does not say whether IN or OUT
    "CMedQAv1": "CMedQAv1-reranking",
    "CMedQAv2": "CMedQAv2-reranking",
    "STS17": "STS17/en-en",
    "STS22": "STS22.v2/en",  # the cells are those of Table V's STS22.v2, en
    "STSBM": "STSBenchmarkMultilingualSTS/en",
}
"""Names that the tables shorten, with mteb's."""
FULL_NAMES = (
    "AllegroReviews",
    "KLUE-TC",
    "SentimentAnalysisHindi",
    "TNews",
    "AskUbuntuDupQuestions",
    "SciDocsRR",
    "StackOverflowDupQuestions",
    "BUCC",
    "BUCC.v2",
    "Tatoeba",
)
"""Names that JTCSE's tables print in full, without the suffix of their kind."""


@dataclass(frozen=True)
class PaperTable:
    """A table of zero-shot scores.

    Attributes:
        sources: Paper and number of each printed part.
        average: The printed average's name.
        suffix: Suffix that mteb's names have and the printed ones lack.
        metric: Metric of mteb; None for its main score.
        only: The printed columns that belong here; none for all.
    """

    title: str
    sources: tuple[tuple[str, str], ...]
    average: str
    suffix: str = ""
    metric: str | None = None
    only: tuple[str, ...] = ()

    @functools.cached_property
    def cells(self) -> pandas.DataFrame:
        """The printed cells of BERT-base."""
        cells = pandas.concat([papers.rows(*source) for source in self.sources])
        cells = cells[cells.backbone == "bert-base"]
        return cells[cells.task.isin((*self.only, self.average))] if self.only else cells

    @property
    def tasks(self) -> dict[str, str]:
        """mteb's task, or task/subset, by printed name."""
        printed = [name for name in dict.fromkeys(self.cells.task) if name != self.average]
        return {name: self._mteb_name(name) for name in printed}

    def _mteb_name(self, printed: str) -> str:
        whole = printed.endswith(self.suffix) or printed in FULL_NAMES
        return MTEB_NAMES.get(printed, printed if whole else f"{printed}{self.suffix}")


TABLES = {
    "jtcse-sts": PaperTable(
        "JTCSE, Table I, right", (("jtcse", "I"),), "avg3", only=("STS17", "STS22", "STSBM")
    ),
    "jtcse-classification": PaperTable(
        "JTCSE, Table II", (("jtcse", "II"),), "avg45", "Classification"
    ),
    "jtcse-reranking": PaperTable("JTCSE, Table III", (("jtcse", "III"),), "avg14", "Reranking"),
    "jtcse-bitext": PaperTable("JTCSE, Table IV", (("jtcse", "IV"),), "avg15", "BitextMining"),
    "jtcse-sts22": PaperTable("JTCSE, Table V", (("jtcse", "V"), ("jtcse-readme", "V")), "avg18"),
    "tncse-sts17": PaperTable(
        "TNCSE, supplement IV-1", (("tncse-supplement", "IV-1"),), "STS17/avg11"
    ),
    "tncse-sts22": PaperTable(
        "TNCSE, supplement IV-2", (("tncse-supplement", "IV-2"),), "STS22/avg18"
    ),
    "tncse-classification": PaperTable(
        "TNCSE, supplement IV-3", (("tncse-supplement", "IV-3"),), "classification/avg30"
    ),
    "tncse-retrieval": PaperTable(
        "TNCSE, supplement IV-4",
        (("tncse-supplement", "IV-4"),),
        "retrieval/avg30",
        metric="map_at_10",
    ),
    "tncse-reranking": PaperTable(
        "TNCSE, supplement IV-5", (("tncse-supplement", "IV-5"),), "reranking/avg9"
    ),
}
"""Tables that name their tasks. TNCSE's Table 2 is the averages of the five of its supplement."""
GROUPS = {
    "tncse-zero-shot": tuple(name for name in TABLES if name.startswith("tncse-")),
    "jtcse-retrieval": ("tncse-retrieval",),
}
"""Benchmarks of other tables' tasks. JTCSE's Table VII has 45 retrieval tasks and does not say
which; TNCSE's 30 stand for them."""
OFFLINE = "offline"


def benchmark_tasks(name: str) -> list[str]:
    """Names of a benchmark's tasks, as `find_tasks` takes them.

    "task/subset" is of a task that the benchmark has in part.

    Args:
        name: Name of TABLES, GROUPS or mteb ("MTEB(eng, v2)"), or "offline".

    Raises:
        SettingsError: With the nearest name, for an unknown benchmark.

    Examples:
        >>> from cselab.study.mteb_benchmarks import benchmark_tasks
        >>> benchmark_tasks("jtcse-sts")
        ['STS17/en-en', 'STS22.v2/en', 'STSBenchmarkMultilingualSTS/en']
    """
    if name == OFFLINE:
        from cselab.evaluation.mteb_data import LOCAL_TASKS

        return list(LOCAL_TASKS)
    if name in TABLES or name in GROUPS:
        tables = [TABLES[part] for part in GROUPS.get(name, (name,))]
        return list(dict.fromkeys(task for table in tables for task in table.tasks.values()))
    import mteb

    known = {benchmark.name: benchmark for benchmark in mteb.get_benchmarks()}
    if name not in known:
        ours = [*TABLES, *GROUPS, OFFLINE]
        near = suggest(name, [*ours, *known]).partition("valid:")[0]
        raise SettingsError(
            f"unknown benchmark {name!r}; {near}valid: {', '.join(ours)}, and mteb's, as "
            "'MTEB(eng, v2)'"
        )
    return [name for task in known[name].tasks for name in _parts(task)]


def _parts(task: Any) -> list[str]:
    """A task of a benchmark by its name, or by the subsets that the benchmark has."""
    name, chosen = task.metadata.name, getattr(task, "hf_subsets", None)
    if chosen is None or set(chosen) == set(task.metadata.hf_subsets):
        return [name]
    return [f"{name}/{subset}" for subset in chosen]
