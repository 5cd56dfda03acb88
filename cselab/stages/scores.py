"""Scores: an encoder on the lab's tests, phenomenon by phenomenon, seed by seed; and its geometry."""

from collections.abc import Callable, Iterable, Mapping

import pandas
import torch

from cselab.evaluation import StsReport, alignment, score_data, uniformity
from cselab.lab import Lab
from cselab.progress import progress_bar
from cselab.stages.text import dev_pairs, test_data, world_pairs
from cselab.stages.training import Encode


def score(lab: Lab, encode: Encode) -> StsReport:
    """Scores of `encode` on the lab's test tasks."""
    return score_data(encode, test_data(lab))


def evaluate(lab: Lab, method: str, encode: Encode) -> StsReport:
    """The same, recorded as rows of the run under the name `method`."""
    report = score(lab, encode)
    lab.record({"method": method, **row} for row in report.to_rows())
    return report


def over_seeds(
    lab: Lab, build: Mapping[str, Callable[[Lab], Encode]], seeds: Iterable[int], known: Mapping[str, StsReport] | None = None
) -> pandas.DataFrame:  # fmt: skip
    """Average test score of each method (columns) trained with each seed (rows); trainings are stages, so an interrupted
    run goes on. `build[method](lab)` trains, or finds, and gives the `encode` of the lab's seed. Scores are recorded, but
    for the lab's own seed, whose row `evaluate` writes. known: reports of the lab's own seed, which are not computed again."""
    seeds, known = list(seeds), known or {}
    with progress_bar("methods × seeds", len(build) * len(seeds), unit="run") as bar:
        table: dict[int, dict[str, float]] = {}
        for seed in seeds:
            for method, encode_of in build.items():
                one = lab.with_settings(seed=seed)
                if seed != lab.settings.seed:
                    report = evaluate(one, method, encode_of(one))
                else:
                    report = known[method] if method in known else score(one, encode_of(one))
                table.setdefault(seed, {})[method] = report.average
                bar.update()
    return pandas.DataFrame.from_dict(table, orient="index").rename_axis("seed")


def comparison(reports: Mapping[str, StsReport]) -> pandas.DataFrame:
    """Methods by tasks: score and 95 % bootstrap interval over pairs."""
    table = {
        name: {task: f"{s.spearman:.1f}  [{s.low:.1f}, {s.high:.1f}]" for task, s in report.tasks.items()}
        | ({"average": f"{report.average:.1f}"} if len(report.tasks) > 1 else {})
        for name, report in reports.items()
    }
    return pandas.DataFrame.from_dict(table, orient="index")


def phenomena(lab: Lab, encode: Encode, report: StsReport) -> Mapping[str, float]:
    """Spearman x100 within each phenomenon of the world's test pairs; read off the encoder's `report` if it has them."""
    if "World" not in report.tasks:
        report = score_data(encode, [world_pairs(lab)])
    return report.tasks["World"].by_subset


def pair_cosines(lab: Lab, encode: Encode) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and gold ratings of the dev pairs."""
    pairs = dev_pairs(lab)
    a, b = encode(pairs.sentences1), encode(pairs.sentences2)
    return torch.cosine_similarity(a, b), torch.as_tensor(pairs.scores)


def geometry(lab: Lab, encode: Encode) -> tuple[float, float]:
    """(uniformity, alignment) on the dev split: alignment over pairs rated above 4, uniformity over all its sentences."""
    pairs = dev_pairs(lab)
    a, b = encode(pairs.sentences1), encode(pairs.sentences2)
    close = torch.as_tensor(pairs.scores) > 4
    return uniformity(torch.cat([a, b])).item(), alignment(a[close], b[close]).item()
