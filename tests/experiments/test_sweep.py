"""A whole sweep on a small model, on a dask cluster in this process: what runs, what is shared,
what is kept, what is told."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from distributed import Client, LocalCluster, get_worker

from cselab.cli import methods
from cselab.errors import CselabError, DivergenceError
from cselab.experiments import run_data, tasks
from cselab.experiments import sweep as sweep_module
from cselab.experiments.grid import Run, expand, one_run
from cselab.experiments.keys import run_key
from cselab.experiments.measures import MEASURES, Row, measure
from cselab.experiments.run import Setup, configure
from cselab.experiments.run_data import RunData
from cselab.experiments.store import Store
from cselab.experiments.sweep import sweep
from cselab.experiments.tasks import for_this_machine, open_cache, train_and_measure
from cselab.experiments.train import train
from cselab.workbook.headless.runner import find_parameters

SHORT = {"steps": 2, "batch_size": 8, "eval_every": 2}
QUICK = {
    "sentences": 60,
    "dev_pairs": 12,
    "synthetic_pairs": 40,
    "triplets": 10,
    "caels": 2,
    "device": "cpu",
    "measures": ["sts"],
    "towers": SHORT,
    **SHORT,
}


@pytest.fixture(scope="module")
def client():
    options = {"threads_per_worker": 2, "processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture
def runs(small_backbone, monkeypatch):
    for variable in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS", "CSELAB_DATA"):
        monkeypatch.setenv(variable, "")
    return lambda **grid: expand({**QUICK, "backbone": small_backbone, **grid})


def steps_in(outputs: Path) -> list[str]:
    folders = [path for path in (outputs / "steps").iterdir() if path.is_dir()]
    return sorted(path.name.rpartition("-")[0] for path in folders)


def both() -> list[dict]:
    return [{"methods": ["sum"]}, {"methods": ["jtcse"], "caels": [1, 2]}]


def test_a_sweep_trains_what_is_shared_once_and_nothing_twice(client, runs, tmp_path, capsys):
    """Prevents towers that every method of a seed trains for itself, a second sweep that does the
    first one's runs again, and a label changed since that no report finds."""
    store = tmp_path / "s.sqlite"
    board = sweep(client, runs(runs=both(), seeds=[1]), store, tmp_path)
    said = capsys.readouterr().out
    assert board.finished == 3
    assert "[3/3]" in said
    assert "3 of 3 runs, 1 at a time" in said
    twins, trips = ["jtcse", "jtcse"], ["round-trips-fr", "round-trips-ru"]
    assert steps_in(tmp_path) == [*twins, *trips, "simcse-fr", "simcse-ru"]
    again = sweep(client, runs(runs=both(), seeds=[1, 2]), store, tmp_path)
    assert (again.finished, again.reused) == (6, 3)
    found = Store(store).scores()
    assert len(found[found.measure != "dev curve"]) == 6 * 3  # Synthetic, average, dev
    steps = found[found.measure == "dev curve"].groupby("label").task.agg(set)
    assert all({"0", "2"} <= trained for trained in steps)
    assert not found.duplicated(["key", "measure", "task"]).any()
    logs = "".join(path.read_text() for path in (tmp_path / "sweep-logs").iterdir())
    assert "jtcse: computed" in logs
    capsys.readouterr()
    sweep(client, runs(methods="sum", label="towers", seeds=[1, 2]), store, tmp_path)
    assert capsys.readouterr().out.startswith(f"'towers' is in {store} as 'sum', and the report")


@pytest.mark.parametrize(
    "differing",
    [{"methods": "edfse", "beams": [1, 4]}, {"methods": "untrained", "device": ["cpu", "auto"]}],
)
def test_what_no_result_depends_on_makes_no_second_run(client, runs, tmp_path, differing):
    """Prevents one of two labels from being dropped without a word, since a store has one run."""
    with pytest.raises(CselabError, match="are the same run: nothing that they differ in"):
        sweep(client, runs(runs=[differing], seeds=[1]), tmp_path / "s.sqlite", tmp_path)


def test_a_number_that_two_measures_give_is_kept_once(client, runs, tmp_path):
    """Prevents `measures=sts,dev` from failing when all is trained, because both measure dev."""
    store = tmp_path / "s.sqlite"
    grid = runs(methods="untrained", measures=["sts", "dev", "sts"], seeds=[1])
    assert sweep(client, grid, store, tmp_path).finished == 1
    assert sorted(Store(store).scores().measure) == ["dev", "test", "test"]


def test_a_measure_that_fails_costs_no_score(runs, tmp_path, monkeypatch, capsys):
    """Prevents a finished training without a test score because what is measured beside it fails;
    a run of nothing else fails."""

    def fail(data, encoder):
        raise RuntimeError("out of memory\nfor the pairs")

    monkeypatch.setitem(MEASURES, "geometry", fail)
    (run,) = runs(methods="untrained", seeds=[1])
    cache = open_cache(run.config, tmp_path)
    encoder = train(run.config, cache).encoder
    rows = measure(cache.data, encoder, ["geometry", "sts"])
    assert {row.measure for row in rows} == {"test", "dev"}
    said = "geometry is left out (RuntimeError: out of memory for the pairs)"
    assert capsys.readouterr().out.splitlines() == [said]
    with pytest.raises(RuntimeError, match="out of memory"):
        measure(cache.data, encoder, ["geometry"])


def test_a_label_that_the_store_does_not_take_is_said(small_backbone, tmp_path, capsys):
    """Prevents `cselab train --store` from keeping a run under its old label without a word."""
    few = {"backbone": small_backbone, "sentences": 60, "dev_pairs": 12, "synthetic_pairs": 40}
    given = {**few, "device": "cpu", "measures": "dev"}
    for label in ("old", "new"):
        run = one_run("untrained", {**given, "label": label})
        train_and_measure(run, tmp_path, tmp_path / "s.sqlite")
    assert capsys.readouterr().out.endswith("as 'old', and the report calls it so\n")


@pytest.mark.parametrize(
    ("tasks", "without"), [("STS14,SICK-R", {"STS14": 3000, "average": 3000}), ("SICK-R", {})]
)
def test_real_text_is_measured_without_captions_too(runs, data_dir, tmp_path, tasks, without):
    """Prevents a gain on captions alone, whose like the training text may hold, as a result; and
    the mean of no tasks, which is no number, in a store."""
    (run,) = runs(methods=["sif"], data_dir=str(data_dir), tasks=tasks)
    cache = open_cache(run.config, tmp_path)
    rows = measure(cache.data, train(run.config, cache).encoder, run.measures)
    pairs = {row.task: row.n for row in rows if row.measure == "test"}
    assert pairs.items() >= {"SICK-R": 4927}.items()
    assert {row.task: row.n for row in rows if row.measure == "no captions"} == without


def test_what_makes_another_run(runs, tmp_path, monkeypatch):
    """Prevents a stale row after a change of settings, of the data, of what is measured, or of the
    code; and a new run of an encoder that a setting does not concern."""
    changes = ({}, {"max_length": 16}, {"measures": ["sts", "geometry"]}, {"sentences": 50})
    found = [run for change in changes for run in runs(methods=["sif"], **change)]
    caches = [open_cache(run.config, tmp_path) for run in found]
    keys = [run_key(run, cache) for run, cache in zip(found, caches, strict=True)]
    assert len(set(keys)) == 4
    data = [cache.data.fingerprint for cache in caches]
    assert data[0] == data[1] == data[2] != data[3]
    (same,) = runs(methods=["sif"], temperature=0.1)
    assert run_key(same, caches[0]) == keys[0]
    caches[0].data.keys.clear()
    monkeypatch.setattr("cselab.experiments.keys.code_of", lambda kind: "another version")
    assert run_key(found[0], caches[0]) != keys[0]
    caches[0].data.keys.clear()


def test_seeds_read_the_data_once(runs, tmp_path, monkeypatch):
    """Prevents a sweep of many seeds that reads its text anew for each run before the first one
    starts: two minutes for 205 runs."""
    read: list[int] = []
    load = run_data.load_corpus
    monkeypatch.setattr(
        run_data, "load_corpus", lambda *a, **b: (read.append(b["limit"]), load(*a, **b))[1]
    )
    sizes = [{"methods": ["sif"], "sentences": size} for size in (51, 52, 53)]
    given = [run for seed in range(1, 7) for one in sizes for run in runs(**one, seeds=[seed])]
    keys = {run_key(run, open_cache(run.config, tmp_path)) for run in given}
    assert (sorted(read), len(keys)) == ([51, 52, 53], 18)


def test_failures_are_reported_kept_and_tried_again(client, runs, tmp_path, monkeypatch, capsys):
    """Prevents a sweep that stops at its first divergence, retries it in vain, or forgets it."""
    tried = []

    def train_with_errors(run, cache):
        tried.append(run.seed)
        if run.seed == 1:
            raise DivergenceError("the loss is not finite")
        if run.seed == 2 and tried.count(2) < 3:
            raise RuntimeError("a cosmic ray")
        return train(configure("untrained"), cache)

    monkeypatch.setattr(tasks, "train", train_with_errors)
    monkeypatch.setattr(tasks, "measure", lambda *_: [Row("test", "average", 1.0, 1)])
    store, some = tmp_path / "s.sqlite", {"methods": ["sif"], "seeds": [1, 2, 3]}
    board = sweep(client, runs(**some), store, tmp_path, retries=1)
    assert sorted(tried) == [1, 2, 2, 3]
    assert board.finished == 1
    errors = {result.seed: result.error for result in board.failed}
    assert errors[1] == "the loss is not finite"
    assert errors[2].startswith("RuntimeError: a cosmic ray; see ")
    assert "FAILED" in capsys.readouterr().out
    assert set(Store(store).runs().state) == {"failed", "done"}
    again = sweep(client, runs(**some), store, tmp_path, retries=1)
    assert sorted(tried) == [1, 1, 2, 2, 2, 3]
    assert [result.seed for result in again.failed] == [1]


def test_the_log_of_a_shared_training_that_fails_is_named(client, runs, tmp_path, monkeypatch):
    """Prevents a reason that points to the log of a run that never started."""

    def train_node(cache, node):
        print("training", node.round_trips.pivot)
        raise RuntimeError("a cosmic ray")

    monkeypatch.setattr(tasks, "train_node", train_node)
    given = runs(methods=["sum", "jtcse"], seeds=[1])
    board = sweep(client, given, tmp_path / "s.sqlite", tmp_path, retries=0)
    assert len(board.failed) == 2
    for result in board.failed:
        assert result.error.startswith("RuntimeError: a cosmic ray; see ")
        assert Path(result.error.partition("; see ")[2]).read_text().startswith("training ")


def test_what_a_run_lacks_is_said_before_any_run_starts(client, runs, tmp_path):
    """Prevents a night of training that ends at its tests, and one bad run among many found at its
    turn."""
    with pytest.raises(
        CselabError, match=r"^no run was started: caels=5 does not divide .* \(jtcse\)$"
    ):
        sweep(client, runs(methods=["sif", "jtcse"], caels=5), tmp_path / "s.sqlite", tmp_path)
    assert Store(tmp_path / "s.sqlite").runs().empty
    assert not list((tmp_path / "steps").glob("[!.]*"))


def scoring_notebook(path: Path, seeds: str) -> None:
    """A notebook that records a score of one method with each of `seeds`."""
    import nbformat

    cells = [
        nbformat.v4.new_markdown_cell("# 01 · T"),
        nbformat.v4.new_code_cell(
            'profile: str = "tiny"\nseed: int = 42\nsettings = {}',
            metadata={"tags": ["parameters"]},
        ),
        nbformat.v4.new_code_cell(
            "import json, os\n"
            f"for s in {seeds}:\n"
            "    row = dict(method='m', task='T', score=50.0 + s, n=3, seed=s, settings='s')\n"
            "    with open(os.environ['CSELAB_RUN_DIR'] + '/results.jsonl', 'a') as file:\n"
            "        file.write(json.dumps(row) + '\\n')"
        ),
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), path)


@pytest.mark.slow  # kernels
def test_a_notebook_in_a_grid(client, tmp_path, monkeypatch):
    """Prevents a notebook's scores from getting lost, parameters that stay the defaults, and an
    IntegrityError after a notebook of several seeds has run, and at every later sweep."""
    scoring_notebook(tmp_path / "01_t.ipynb", "[seed] if seed < 2 else (1, 2)")
    monkeypatch.setattr(RunData, "fingerprint", "d")
    find_notebook = partial(find_parameters, tmp_path)
    grid = expand({"notebooks": ["01"], "seeds": [1, 2]}, find_notebook=find_notebook)
    board = sweep(client, grid, tmp_path / "s.sqlite", tmp_path / "o")
    (failed,) = board.failed
    assert "01_t recorded a method with several seeds or settings" in failed.error
    rows = Store(tmp_path / "s.sqlite").scores()
    assert rows[["seed", "measure", "task", "value"]].to_numpy().tolist() == [[1, "m", "T", 51.0]]
    assert (tmp_path / "o" / "runs").is_dir()


def test_a_worker_in_another_folder_reads_what_the_user_named(tmp_path, monkeypatch):
    """Prevents results on decoys: files of the same names in the folder of a worker, and the data
    folder of its machine."""
    pairs = "sentence1\tsentence2\tscore\na {0}\tb\t1\nc\td {0}\t2\ne {0}\tf\t5\n"
    users, workers = tmp_path / "user", tmp_path / "worker"
    for folder in (users, workers):
        (folder / "data" / "corpus").mkdir(parents=True)
        (folder / "notebooks").mkdir()
        scoring_notebook(folder / "notebooks" / "01_t.ipynb", "[seed]")
        (folder / "t.txt").write_text(f"a dog of the {folder.name}\nb\n" * 40)
        (folder / "p.tsv").write_text(pairs.format(folder.name))
    monkeypatch.chdir(users)
    monkeypatch.setenv("CSELAB_DATA", str(users / "data"))
    grid = {"corpus": "t.txt", "tasks": "p.tsv", "dev_task": "Synthetic", "dev_pairs": 12}
    grid |= {"synthetic_pairs": 40, "runs": []}
    grid["runs"] += [{"methods": ["sif"]}, {"notebooks": ["notebooks/01_t.ipynb"]}]
    find_notebook = partial(find_parameters, tmp_path)

    def key(run: Run) -> str:
        return run_key(run, open_cache(run.config, tmp_path / "o"))

    grid = expand({**grid, "seeds": 1}, find_notebook=find_notebook)
    given = [for_this_machine(run, tmp_path / "o") for run in grid]
    before = list(map(key, given))
    monkeypatch.chdir(workers)
    monkeypatch.setenv("CSELAB_DATA", str(workers / "data"))
    tasks._keep_cache.cache_clear()
    assert list(map(key, given)) == before
    assert all(str(users / "data") in run.config.model_dump_json() for run in given)
    assert given[1].method == str(users / "notebooks" / "01_t.ipynb")
    moved = str(users.rename(tmp_path / "u"))
    there = given[1].config.model_dump_json().replace(str(users), moved)
    again = replace(
        given[1],
        method=given[1].method.replace(str(users), moved),
        config=Setup.model_validate_json(there),
        parameters=tuple((n, text.replace(str(users), moved)) for n, text in given[1].parameters),
    )
    assert key(again) == before[1]  # it holds what a path names, not the path


def test_more_threads_than_cores_are_one_worker(tmp_path, monkeypatch):
    """Prevents a complaint about `--workers 0`, which nobody gave."""
    asked = []

    def connected(scheduler, workers, threads):
        asked.append((workers, threads))
        raise CselabError("no cluster here")

    monkeypatch.setattr(methods, "cpu_count", lambda: 2)
    monkeypatch.setattr("cselab.experiments.cluster.connected", connected)
    for threads in (1, 4):
        with pytest.raises(CselabError, match="no cluster here"):
            methods.sweep(method=["sif"], threads=threads, outputs=tmp_path)
    assert asked == [(2, 1), (1, 4)]


def test_workers_that_see_different_data_are_refused(runs, tmp_path, monkeypatch):
    """Prevents one table of runs on the data folders of two machines."""

    monkeypatch.setattr(sweep_module, "fingerprint", lambda *_: str(get_worker().name))
    options = {"threads_per_worker": 1, "processes": False, "dashboard_address": None}
    with (
        LocalCluster(n_workers=2, **options) as cluster,
        Client(cluster) as client,
        pytest.raises(CselabError, match="workers see different data.*same data_dir"),
    ):
        sweep(client, runs(methods=["sif"]), tmp_path / "s.sqlite", tmp_path)
    assert not Store(tmp_path / "s.sqlite").scores().size
