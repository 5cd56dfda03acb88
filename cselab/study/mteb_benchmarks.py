"""The papers' zero-shot tables as lists of mteb's tasks."""

import functools
from dataclasses import dataclass
from typing import Any

import pandas

from cselab.errors import SettingsError, suggest
from cselab.study import papers

LEFT_OUT = {
    "ContractNLIInclusionOfVerbally": "ConveyedInformationLegalBench",
    "ContractNLIPermissibleAcquirement": "OfSimilarInformationLegalBench",
    "ContractNLIPermissibleDevelopment": "OfSimilarInformationLegalBench",
    "OPP115InternationalAndSpecific": "AudiencesLegalBench",
}
"""What JTCSE's Table II leaves out of mteb's names, before the suffix."""
MTEB_NAMES = {
    "PolEmo2": "PolEmo2.0-IN",  # the table does not say whether IN or OUT
    "CMedQAv1": "CMedQAv1-reranking",
    "CMedQAv2": "CMedQAv2-reranking",
    "STS17": "STS17/en-en",
    "STS22": "STS22.v2/en",  # the cells are those of Table V's STS22.v2, en
    "STSBM": "STSBenchmarkMultilingualSTS/en",
}
"""Other names that the tables shorten, with mteb's."""
FULL_NAMES = {
    *("AllegroReviews", "KLUE-TC", "SentimentAnalysisHindi", "TNews"),
    *("AskUbuntuDupQuestions", "SciDocsRR", "StackOverflowDupQuestions"),
    *("BUCC", "BUCC.v2", "Tatoeba"),
}
"""Names that JTCSE's tables print in full, without the suffix of their kind."""


@dataclass(frozen=True)
class PaperTable:
    """A table of zero-shot scores.

    Attributes:
        papers: Keys of `papers.PAPERS` that print a part of it, under one number.
        average: The printed average's name.
        suffix: Suffix that mteb's names have and the printed ones lack.
        metric: Metric of mteb; None for its main score.
        only: The printed columns that belong here; none for all.
    """

    papers: tuple[str, ...]
    number: str
    average: str
    suffix: str = ""
    metric: str | None = None
    only: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Paper and number: "JTCSE, Table II"."""
        return f"{papers.PAPERS[self.papers[0]]}, Table {self.number}"

    @functools.cached_property
    def cells(self) -> pandas.DataFrame:
        """The printed cells of BERT-base."""
        cells = pandas.concat([papers.rows(paper, self.number) for paper in self.papers])
        cells = cells[cells.backbone == "bert-base"]
        return cells[cells.task.isin((*self.only, self.average))] if self.only else cells

    @property
    def tasks(self) -> dict[str, str]:
        """mteb's task, or task/subset, by printed name."""
        printed = [name for name in dict.fromkeys(self.cells.task) if name != self.average]
        return {name: self._mteb_name(name) for name in printed}

    def _mteb_name(self, printed: str) -> str:
        whole = printed.endswith(self.suffix) or printed in FULL_NAMES
        full = printed if whole else f"{printed}{LEFT_OUT.get(printed, '')}{self.suffix}"
        return MTEB_NAMES.get(printed, full)


_JTCSE, _TNCSE = ("jtcse",), ("tncse-supplement",)
TABLES = {
    "jtcse-sts": PaperTable(_JTCSE, "I", "avg3", only=("STS17", "STS22", "STSBM")),
    "jtcse-classification": PaperTable(_JTCSE, "II", "avg45", "Classification"),
    "jtcse-reranking": PaperTable(_JTCSE, "III", "avg14", "Reranking"),
    "jtcse-bitext": PaperTable(_JTCSE, "IV", "avg15", "BitextMining"),
    "jtcse-sts22": PaperTable(("jtcse", "jtcse-readme"), "V", "avg18"),
    "tncse-sts17": PaperTable(_TNCSE, "IV-1", "STS17/avg11"),
    "tncse-sts22": PaperTable(_TNCSE, "IV-2", "STS22/avg18"),
    "tncse-classification": PaperTable(_TNCSE, "IV-3", "classification/avg30"),
    "tncse-retrieval": PaperTable(_TNCSE, "IV-4", "retrieval/avg30", metric="map_at_10"),
    "tncse-reranking": PaperTable(_TNCSE, "IV-5", "reranking/avg9"),
}
"""Tables that name their tasks. TNCSE's Table 2 is the averages of the five of its supplement."""
SUPPLEMENT = tuple(name for name in TABLES if name.startswith("tncse-"))
GROUPS = {"tncse-zero-shot": SUPPLEMENT, "jtcse-retrieval": ("tncse-retrieval",)}
"""Benchmarks of other tables' tasks. JTCSE's Table VII has 45 retrieval tasks and does not say
which; TNCSE's 30 stand for them."""
OFFLINE = "offline"


def benchmark_tasks(name: str) -> list[str]:
    """Names of a benchmark's tasks, as `find_tasks` takes them; "task/subset" of a part of a task.

    Args:
        name: Name of TABLES, GROUPS or mteb ("MTEB(eng, v2)"), or "offline".

    Raises:
        SettingsError: With the nearest name, for an unknown benchmark.
    """
    if name == OFFLINE:
        from cselab.evaluation.mteb_data import FEEDS

        return list(FEEDS)
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
