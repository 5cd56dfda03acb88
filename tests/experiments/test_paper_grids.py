"""The papers' tables as grids (grids/paper): each run has the settings that its paper prints."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cselab.experiments.grid import Run, expand, read_grid
from cselab.experiments.tasks import open_cache
from cselab.methods import MethodConfig
from cselab.methods.nodes import TrainedConfig
from cselab.study import papers

FOLDER = Path(__file__).parents[2] / "grids" / "paper"
GRIDS = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
BERT, ROBERTA = "google-bert/bert-base-uncased", "FacebookAI/roberta-base"

SIMCSE = {"learning_rate": 3e-5, "batch_size": 64, "max_length": 32, "eval_every": 125}
"""SimCSE, Table D.1 and section 4; the peers that are built on its script; ImSimCSE section 5.1."""
DIFFCSE = {**SIMCSE, "learning_rate": 7e-6, "epochs": 2}
"""Its script."""
TOWER = {**SIMCSE, "eval_every": 100}
"""TNCSE supplement: STS-B dev every hundred steps."""
STAGE_2 = {**TOWER, "learning_rate": 1e-6, "max_length": 64, "decay": "constant"}
STUDENT = {**TOWER, "learning_rate": 1e-5, "decay": "constant"}
UC_STUDENT = {**STUDENT, "learning_rate": 1.5e-5}
DECODER = {"learning_rate": 2e-4, "batch_size": 64, "max_length": 64, "epochs": 3}
"""BeLLM section 4, which searches the batch from 16 to 128; epochs and length: its code."""
STAGE_1 = {**DECODER, "batch_size": 256, "max_length": 60, "warmup": 80}
"""BeLLM's released first stage."""
SCHEDULES = {
    "diffcse": DIFFCSE,
    "tncse": STAGE_2,
    "jtcse": STAGE_2,
    **dict.fromkeys(("edfse_d", "tncse_d", "jtcse_d"), STUDENT),
    **dict.fromkeys(("rankcse_uc_d", "tncse_uc_d", "uc_d"), UC_STUDENT),
}
"""By method; all others have SimCSE's."""
PEERS = ("simcse", "esimcse", "diffcse", "infocse", "whitenedcse", "pcl", "sncse", "promptbert")
"""Trained on Wikipedia alone where they stand beside the twins in JTCSE Tables I and XI."""
LARGE = {"simcse": 1e-5, "imsimcse": 8e-6}
RATES = {  # TNCSE supplement, Table I-1: (backbone, pivot)
    (BERT, "fr"): 1.5e-5,
    (BERT, "ru"): 2e-5,
    (ROBERTA, "nl"): 1.5e-5,
    (ROBERTA, "zh"): 1.25e-5,
}
ROBERTA_PLANS = {  # the same table, and SimCSE's Table D.1
    **dict.fromkeys(("edfse_d", "tncse_d", "jtcse_d"), {"batch_size": 256}),  # noqa: RUF024
    **dict.fromkeys(("rankcse_uc_d", "tncse_uc_d", "uc_d"), {"batch_size": 128}),  # noqa: RUF024
    "simcse": {"learning_rate": 1e-5, "batch_size": 512},
}


@pytest.fixture(scope="module")
def grids() -> dict[str, list[Run]]:
    return {name: expand(read_grid(path)) for name, path in GRIDS.items()}


def trained(node: MethodConfig) -> Iterator[TrainedConfig]:
    for part in node.parts:
        yield from trained(part)
    if isinstance(node, TrainedConfig):
        yield node


def expected(grid: str, label: str, node: TrainedConfig) -> dict[str, object]:
    """The schedule that the paper of a grid prints for a node; the twins of Table 3 have the
    baselines' defaults."""
    backbone = getattr(node, "backbone", "")
    if node.method.startswith("bellm"):
        plan = STAGE_1 if "angle" in node.terms else DECODER
        batch = {"batch_size": int(label.split()[-1])} if grid == "bellm-batch" else {}
        return {**plan, **batch}
    plan = SCHEDULES.get(node.method, SIMCSE)
    if "large" in backbone:
        return {**plan, "learning_rate": LARGE[node.method]}
    if node.trips and not (grid == "tncse-3-twins" and label.startswith("two of")):
        rate = RATES.get((backbone, node.trips.pivot), 1.5e-5)  # EDFSE's others are as the first
        return {**TOWER, "learning_rate": rate}
    if backbone == ROBERTA:
        return {**plan, **ROBERTA_PLANS.get(node.method, {})}
    return plan


@pytest.mark.parametrize("name", GRIDS)
def test_every_training_has_the_schedule_of_its_paper(name, grids):
    """Prevents a recipe that, at the papers' size, is another experiment: steps of a short
    training, a weight or temperature of another text, a rate of another row."""
    for run in grids[name]:
        assert run.config.profile == "paper"
        for node in trained(run.config.method):
            plan = node.schedule
            if name == "tncse-rates":
                wanted_rate = expected(name, run.label, node)["learning_rate"]
                plan = plan.model_copy(update={"learning_rate": wanted_rate})
            wanted = {"epochs": 1, "steps": None, "decay": "linear", "warmup": 0, "bf16": True}
            wanted |= expected(name, run.label, node)
            assert {key: getattr(plan, key) for key in wanted} == wanted, (run.label, node.method)
            assert getattr(node, "temperature", 0.05) == 0.05
            if not name.startswith("bellm"):
                assert node.seed == 42
            assert all(term.weight == 1 for term in node.terms.values()) or not node.starts


@pytest.mark.parametrize("name", GRIDS)
def test_every_run_reads_the_papers_text_and_tests(name, grids, tmp_path):
    """Prevents a folder's corpus, a sample of it, or a shipped model under the papers' rows, and
    terabytes of checkpoints."""
    for run in grids[name]:
        data = run.config.data
        assert (data.hub, data.sentences, data.dev_task) == (True, None, "")
        assert set(data.corpus) <= {"wiki1m", "sickr", "nli"}
        if not name.startswith(("imsimcse", "bellm")) and name != "sickr":
            method = getattr(run.config.method, "finished", run.config.method).method
            quoted = method in PEERS and name in ("tncse-jtcse-main", "jtcse-11-pooling")
            assert data.corpus == (("wiki1m",) if quoted else ("wiki1m", "sickr"))  # JTCSE IV-A
        text = "senteval" if "sts" in run.measures and not data.tasks else "raw"
        assert data.sts_text == text
        assert open_cache(run.config, tmp_path).save_every == 2000  # not at each evaluation
        for place, value, _ in run.config.method.walk():
            if place[-1] in ("backbone", "decoder"):
                assert "/" in value
            if place[-1] == "translator":
                assert value == "opus-mt"


def values(runs: list[Run], field: str) -> set:
    return {getattr(r.config.method, field) for r in runs if hasattr(r.config.method, field)}


def test_the_ablations_have_every_row_of_their_tables(grids):
    """Prevents a table of which a row is missing: CAELs, subsets of terms, LayerNorms, poolings, M,
    hyperparameters."""
    printed = {v.removeprefix("cael=") for v in papers.rows("jtcse", "IX").variant}
    assert {str(n) for n in values(grids["jtcse-9-caels"], "caels") - {0}} == printed - {"w/o"}
    for method, paper, table in (("jtcse", "jtcse", "X"), ("tncse", "tncse", "4")):
        rows = {v.replace("ictn", "ictm").split(" ")[0] for v in papers.rows(paper, table).variant}
        runs = [run for run in grids["terms"] if run.method in (method, "sum")]
        assert {"+".join(getattr(run.config.method, "terms", ["none"])) for run in runs} == rows
    for method in ("tncse", "jtcse"):
        norms = [run for run in grids["layer-norms"] if run.method == method]
        on_cls = [n for n in norms if n.config.method.terms["ictm"].measured_on == "cls"]
        assert values(on_cls, "layer_norms_removed") == set(range(7))
    nodes = [run.config.method for run in grids["jtcse-11-pooling"]]
    assert len({(node.finished.method, node.pooling) for node in nodes}) == 11 * 4
    terms = [run.config.method.terms for run in grids["imsimcse-2-barlow"]]
    assert {t["barlow"].artificial_rows for t in terms if "barlow" in t} == {0, 100, 300, 704}
    searched = {run.label for run in grids["imsimcse-5-search"]}
    for row in papers.rows("imsimcse", "5").variant:
        name = row.replace("lambda", "λ").replace("tau_dcl", "τ_DCL").replace("=", " = ")
        name = name.replace("m = 1", "m = 1.0") if name == "m = 1" else name
        assert name in searched or name == "τ_DCL = 5"  # the row "ImSimCSE"
    assert len(grids["imsimcse-1-noise"]) == 5
    opened = {"none", "last", "all", "addition"}
    assert values(grids["bellm-4-layers"], "bidirectional") == opened
    assert values(grids["bellm-4-layers"], "lora_rank") == {32}
    assert len(grids["sickr"]) == 14
    sick = {run.method for run in grids["sickr"]}
    assert sick == {name.lower() for name in papers.rows("jtcse", "VIII").model}


def test_the_finished_checkpoints_are_those_that_the_papers_name(grids):
    """Prevents an outsider or a teacher trained here, or one that follows the twin's backbone."""
    outsiders = {
        (part.method, part.backbone)
        for run in grids["tncse-jtcse-main"]
        for node in (run.config.method, *run.config.method.parts)
        if (part := getattr(node, "outsider", None))
    }
    assert outsiders == {("untrained", "ffgcc/InfoCSE-bert-base")}
    teachers = {
        tuple(teacher.backbone for teacher in node.teachers)
        for runs in grids.values()
        for run in runs
        for node in trained(run.config.method)
        if node.method == "rankcse"
    }
    names = ("bert-{}-uncased", "roberta-{}")
    hub = "princeton-nlp/unsup-simcse-"
    assert teachers == {tuple(hub + n.format(size) for size in ("base", "large")) for n in names}
