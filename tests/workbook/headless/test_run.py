"""The runner on small notebooks with real kernels: order, isolation, failures, resuming."""

import contextlib
import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import nbformat
import psutil
import pytest

from cselab import cli
from cselab.errors import CselabError, Interrupted
from cselab.machine import clock
from cselab.workbook.headless import runner
from cselab.workbook.headless.engine import NotebookFailed
from cselab.workbook.headless.record import open_record, read_record
from cselab.workbook.headless.runner import find_notebooks

PARAMETERS = 'profile: str = "tiny"\nseed: int | None = 1'


def notebook(folder: Path, name: str, *cells: str, title: str = "# A title") -> Path:
    folder.mkdir(exist_ok=True)
    new = nbformat.v4
    code = [new.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})]
    code += map(new.new_code_cell, cells)
    spec = {"name": "somebody-elses-kernel", "display_name": "x", "language": "python"}
    nb = new.new_notebook(
        cells=[new.new_markdown_cell(title), *code], metadata={"kernelspec": spec}
    )
    nbformat.write(nb, folder / name)
    return folder / name


@pytest.fixture
def cselab(tmp_path, monkeypatch, capsys):
    """The command line, in this process and the test's folder: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8")  # which the command changes

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["cselab", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            cli.main()
        return (caught.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run of five notebooks: two that work, one that raises between them, one whose kernel
    dies, one that stops early; its folder, result, output and errors."""
    root = tmp_path_factory.mktemp("run")
    record = (
        "import json, os, sys\nrow = dict(method='<M>', task='T', score=50.0 + seed, seed=seed,"
        " settings='s', executable=sys.executable,"
        " pid=os.getpid())\nopen(os.environ['CSELAB_RUN_DIR'] + '/results.jsonl',"
        " 'a').write(json.dumps(row) + '\\n')\nprint('printed')"
    )
    stops = "from cselab.errors import Stopped\nraise Stopped('The rest needs csts/.')"
    dies = "import os\nos.write(2, b'last words\\n')\nos._exit(3)"
    notebooks = [
        notebook(root / "n", "01_works.ipynb", record, title="# First & <best>"),
        notebook(root / "n", "02_raises.ipynb", "value = 1\nvalue / 0"),
        notebook(root / "n", "03_dies.ipynb", dies),
        notebook(root / "n", "04_works_too.ipynb", record.replace("<M>", "other")),
        notebook(root / "n", "05_stops.ipynb", stops, "print('of the rest')"),
    ]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        result = runner.run(notebooks, {"seed": "3"}, root / "outputs", name="r")
    return root / "outputs" / "runs" / "r", result, out.getvalue(), err.getvalue()


def test_a_failure_is_reported_and_the_rest_still_runs(finished):
    """Prevents one failure from ending a run, and a traceback that nobody sees."""
    folder, result, out, err = finished
    assert result is False
    assert "[1/5] 01_works  finished" in out
    assert "[2/5] 02_raises  FAILED: cell 3: ZeroDivisionError: division by zero" in out
    assert "[3/5] 03_dies  FAILED: the kernel died" in out
    assert "[4/5] 04_works_too  finished" in out
    assert str(folder / "index.html") in out
    assert "value / 0" in err  # the traceback
    assert "last words" in err  # the dead kernel's log
    assert "unknown parameter" not in err  # papermill's warning of `int | None`


def test_a_notebook_that_stops_early_has_finished(finished):
    """Prevents a chapter without its data from failing a run, or from looking as if it had."""
    folder, _, out, _ = finished
    assert "[5/5] 05_stops  finished early: The rest needs csts/." in out
    page = (folder / "05_stops.html").read_text()
    assert "stops here" in page
    assert "of the rest" not in page
    assert "Exception was encountered" not in page  # papermill
    assert "early: The rest needs csts/." in (folder / "index.html").read_text()


def test_the_index_is_there_from_the_start_and_kept_current(tmp_path, monkeypatch):
    """Prevents an empty index until the first notebook ends, one that asks for no second look, and
    one that is read again for ever."""
    pages = []

    def execute(path, output, parameters, **options):
        pages.append((tmp_path / "o" / "runs" / "r" / "index.html").read_text())
        return ""

    monkeypatch.setattr(runner, "execute", execute)
    for name in ("mine", "05_layernorm_removal", "01_rtt_augmentation"):
        notebook(tmp_path / "n", f"{name}.ipynb", title=f"# Of {name}")
    notebooks = find_notebooks(tmp_path / "n", ["mine", "01", "05"])
    assert runner.run(notebooks, {}, tmp_path / "o", name="r")
    pages.append((tmp_path / "o" / "runs" / "r" / "index.html").read_text())
    titles = [
        "Core chapters",
        "Of 01_rtt_augmentation",
        "Electives",
        "Of 05_layernorm_removal",
        "Others",
        "Of mine",
    ]
    for number, page in enumerate(pages):
        assert [page.index(f">{title}<") for title in titles] == sorted(
            page.index(f">{title}<") for title in titles
        )
        states = re.findall(r">(running|waiting|finished)<", page)
        assert (states.count("running"), states.count("finished")) == (number < 3, number)
        assert ("http-equiv='refresh'" in page) == (number < 3)


def test_every_notebook_has_its_own_process_of_this_interpreter(finished):
    """Prevents a user's own `python3` kernel, with another Python, from running a notebook."""
    rows = [json.loads(line) for line in (finished[0] / "results.jsonl").read_text().splitlines()]
    assert {row["executable"] for row in rows} == {sys.executable}
    assert len({row["pid"] for row in rows}) == 2
    assert [row["score"] for row in rows] == [53.0, 53.0]  # the parameter arrived


def test_a_run_has_pages_logs_and_an_index_with_links_and_scores(finished):
    """Prevents links to nothing, markup from names, and half-written pages."""
    folder = finished[0]
    assert "ZeroDivisionError" in (folder / "02_raises.html").read_text()
    assert "printed" in (folder / "01_works.log").read_text()
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]
    page = (folder / "index.html").read_text()
    for text in ("First &amp; &lt;best&gt;", "<td>&lt;M&gt;</td>", "53.00"):
        assert text in page
    assert "3 of 5 notebooks finished, 2 failed" in page
    links = [link for link in re.findall(r"href='([^']+)'", page) if "03_dies.html" not in link]
    assert len(links) > 8
    assert all((folder / link).exists() for link in links)
    assert (folder.parents[1] / "latest").resolve() == folder.resolve()


def test_several_at_a_time(tmp_path, capfd):
    """Prevents notebooks that wait for one another, and an index out of order."""
    meet = (
        "import pathlib, time, os\n"
        "here = pathlib.Path(os.environ['CSELAB_RUN_DIR'])\n"
        "(here / '<ME>').touch()\n"
        "end = time.time() + 60\n"
        "while not (here / '<OTHER>').exists():\n"
        "    assert time.time() < end, 'the other never came'\n"
        "    time.sleep(0.1)\n"
        "print(os.environ['OMP_NUM_THREADS'])"
    )
    for name, me, other in (("01_a", "a", "b"), ("02_b", "b", "a")):
        code = meet.replace("<ME>", me).replace("<OTHER>", other)
        notebook(tmp_path / "notebooks", f"{name}.ipynb", code)
    notebooks = find_notebooks(tmp_path / "notebooks")
    assert runner.run(notebooks, {}, tmp_path / "o", name="r", jobs=2)
    out = capfd.readouterr().out
    assert "[1/2] 01_a  finished" in out
    assert "[2/2] 02_b  finished" in out
    assert out.count("the first page to read: ") == 1
    page = (tmp_path / "o" / "runs" / "r" / "index.html").read_text()
    assert page.index("01_a.html") < page.index("02_b.html")
    assert len(list((tmp_path / "notebooks").iterdir())) == 2  # no kernel's socket is left


@pytest.mark.parametrize("visible", [None, "GPU-7,4"])
def test_of_several_gpus_each_notebook_has_one(visible, tmp_path, monkeypatch):
    """Prevents notebooks that share a GPU while another is idle, or that use one that the user did
    not give, and more notebooks than GPUs at a time."""
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nprintf '0\\n1\\n'")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    code = (
        "import os, pathlib, time\n"
        "run = pathlib.Path(os.environ['CSELAB_RUN_DIR'])\n"
        "(run / 'taken').mkdir(exist_ok=True)\n"
        "gpu = run / 'taken' / os.environ['CUDA_VISIBLE_DEVICES']\n"
        "gpu.touch(exist_ok=False)\n"  # another notebook has it
        "end = time.time() + 60\n"
        "while '<ME>' != 'c' and len(list(gpu.parent.iterdir())) < 2:\n"
        "    assert time.time() < end, 'the other never came'\n"
        "    time.sleep(0.1)\n"
        "time.sleep(1)\n"
        "with (run / 'used').open('a') as file:\n"
        "    file.write(gpu.name + '\\n')\n"
        "gpu.unlink()"
    )
    for name in "abc":
        notebook(tmp_path / "n", f"0_{name}.ipynb", code.replace("<ME>", name))
    notebooks = sorted((tmp_path / "n").iterdir())
    assert runner.run(notebooks, {}, tmp_path / "o", name="r", jobs=None if visible else 3)
    used = (tmp_path / "o" / "runs" / "r" / "used").read_text().split()
    gpus = set((visible or "0,1").split(","))
    assert (len(used), set(used[:2]), set(used)) == (3, gpus, gpus)


def test_jobs_share_the_processors_of_the_process(tmp_path, monkeypatch):
    """Prevents threads for cores that a batch system or a container did not give."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(6), raising=False)
    seen, environment = [], runner.environment
    monkeypatch.setattr(runner, "environment", lambda **v: (seen.append(v), environment(**v))[1])
    runner.run([], {}, tmp_path, jobs=2)
    assert seen[0]["OMP_NUM_THREADS"] == "3"


def test_the_outputs_folder_may_be_a_variable(cselab, tmp_path, monkeypatch):
    """Prevents a run that fills the project while the variable of every other command is set."""
    notebook(tmp_path / "notebooks", "01_a.ipynb")
    monkeypatch.setenv("CSELAB_OUTPUTS", "elsewhere")
    run = Mock(return_value=True)
    monkeypatch.setattr(runner, "run", run)
    assert cselab("run")[0] == 0
    assert run.call_args.args[2] == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    ("cells", "limits", "message"),
    [
        (["import time\ntime.sleep(60)"], {"timeout": 1}, "a cell took longer than 1 s"),
        (["import time\ntime.sleep(1)"] * 9, {"limit": 3}, "it took longer than 3 s"),
    ],
)
def test_what_takes_too_long_ends(cells, limits, message, tmp_path, capsys):
    """Prevents a cell, or many short ones, from taking for ever."""
    slow = notebook(tmp_path / "notebooks", "01_slow.ipynb", *cells)
    assert not runner.run([slow], {}, tmp_path / "o", **limits)
    assert f"FAILED: {message}; raise --" in capsys.readouterr().out


def test_a_run_is_resumed(tmp_path, cselab, monkeypatch):
    """Prevents a failure in the last notebook from costing the hours of those before it, and a
    resumed run with other parameters."""
    executed, fails = [], [True]

    def execute(path, output, parameters, **options):
        executed.append((path.stem, parameters))
        if path.stem == "02_fails" and fails:
            raise NotebookFailed("cell 2", "a traceback")
        return ""

    monkeypatch.setattr(runner, "execute", execute)
    for name in ("01_works", "02_fails", "03_later"):
        notebook(tmp_path / "notebooks", f"{name}.ipynb")
    assert cselab("run", "-p", "seed=5", "--name", "r", "--outputs", "o")[0] == 1
    assert executed == [(name, {"seed": 5}) for name in ("01_works", "02_fails", "03_later")]
    fails.clear()
    code, out, _ = cselab("run", "--resume", "r", "--outputs", "o")
    assert code == 0
    assert "2 of 3 notebooks had finished" in out
    assert executed[3:] == [("02_fails", {"seed": 5})]
    page = (tmp_path / "o" / "runs" / "r" / "index.html").read_text()
    assert "3 of 3 notebooks finished" in page
    with pytest.raises(CselabError, match="a run of other notebooks or parameters"):
        runner.run([], {}, tmp_path / "o", name="r", resume=True)


def test_notebooks_by_number_stem_and_all(tmp_path):
    """Prevents a notebook that runs twice at a time, or one that nobody asked for."""
    first, second = (notebook(tmp_path / "n", name) for name in ("01_a.ipynb", "12_b.ipynb"))
    assert find_notebooks(tmp_path / "n") == [first, second]
    (tmp_path / "n" / "ledger.ipynb").write_text("{}")  # has no number, so it is run by name alone
    assert find_notebooks(tmp_path / "n") == [first, second]
    assert find_notebooks(tmp_path / "n", ["ledger"]) == [tmp_path / "n" / "ledger.ipynb"]
    assert find_notebooks(tmp_path / "n", ["12_b", "1"]) == [second, first]
    assert find_notebooks(tmp_path / "n", ["01", "1", "01_a", str(first)]) == [first]
    notebook(tmp_path / "own", "My own.ipynb")
    assert len(find_notebooks(tmp_path / "own", ["My own"])) == 1
    assert find_notebooks(tmp_path / "empty", [str(first)]) == [first]
    solution = notebook(tmp_path / "n" / "solutions", "01_a.ipynb")  # the files of both are 01_a.*
    for folder, names, message in (
        ("n", ["12_c"], "no notebook '12_c'; did you mean '12_b'"),
        ("empty", [], "no notebooks in"),
        ("own", [], "no notebooks in .*own with a number, such as 01_name"),
        ("n", ["01", str(solution)], "01_a.ipynb and .* have one name; run them one after"),
    ):
        with pytest.raises(CselabError, match=message):
            find_notebooks(tmp_path / folder, names)


OUTCOME = '{"stem": "01_a", "title": "A", "seconds": %s}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"notebooks": [], "given": {}}',
        '{"notebooks": 1, "given": {}, "outcomes": {}}',
        f'{{"notebooks": [], "given": {{}}, "outcomes": {{"01_a": {OUTCOME % "NaN"}}}}}',
    ],
)
def test_a_damaged_record_is_written_anew(text, tmp_path, capsys):
    """Prevents a traceback, and a notebook of a sweep that can never run again."""
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(CselabError, match="no run to resume in"):
        read_record(path)
    assert open_record(path, [], {}).outcomes == {}
    assert "is damaged and written anew" in capsys.readouterr().out
    assert read_record(path).outcomes == {}


def test_clock():
    assert [clock(s) for s in (7.0, 750.0, 3723.0)] == ["0:07", "12:30", "1:02:03"]


def test_a_full_disk_is_one_line(cselab, monkeypatch):
    """Prevents the traceback of a library that has an error of its own for it."""
    error = RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 232 vs 124")
    monkeypatch.setattr(cli, "app", Mock(side_effect=error))
    code, _, err = cselab("run")
    assert code == 2
    assert re.fullmatch("cselab: no space left on the disk while writing outputs: .*\n", err)


def test_a_full_disk_ends_a_run(cselab, tmp_path, monkeypatch):
    """Prevents the others of a run from failing one after the other."""
    error = OSError(errno.ENOSPC, "No space left on device", "a.html")
    execute = Mock(side_effect=error)
    monkeypatch.setattr(runner, "execute", execute)
    for name in ("01_a", "02_b"):
        notebook(tmp_path / "notebooks", f"{name}.ipynb")
    code, _, err = cselab("run", "--outputs", "o")
    assert (code, execute.call_count) == (2, 1)
    assert err.startswith("cselab: no space left on the disk while writing a.html")


def test_an_interrupt_says_how_to_go_on(cselab, monkeypatch):
    """Prevents Ctrl-C from saying nothing: typer ends every KeyboardInterrupt by itself."""
    monkeypatch.setattr(runner, "run", Mock(side_effect=Interrupted("interrupted at step 3")))
    assert cselab("run") == (130, "", "interrupted at step 3\n")


def test_a_terminal_without_a_character_does_not_end_a_command(tmp_path):
    """Prevents a UnicodeEncodeError of a title in a container or on an old Windows."""
    notebook(tmp_path / "notebooks", "01_a.ipynb", title="# 01 · é × →")
    done = subprocess.run(
        [sys.executable, "-m", "cselab", "list"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("01 \\xb7 \\xe9 \\xd7 \\u2192\n")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM"])
def test_an_interrupted_run_says_how_to_go_on_and_leaves_nothing(tmp_path, end):
    """Prevents tracebacks of the processes of --jobs, kernels that go on, and a run that nobody
    knows how to resume."""
    for name in ("01_a", "02_b"):
        cell = f"import os, time\nopen('../{name}', 'w').close()\ntime.sleep(300)"
        notebook(tmp_path / "notebooks", f"{name}.ipynb", cell)
    command = [sys.executable, "-m", "cselab", "run", "--jobs", "2", "--outputs", "o"]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(
        [*command, "--name", "r"], cwd=tmp_path, start_new_session=True, **options
    ) as process:
        deadline = time.monotonic() + 240
        while not all((tmp_path / name).exists() for name in ("01_a", "02_b")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        children = psutil.Process(process.pid).children(recursive=True)
        if end == "SIGINT":  # as a terminal does
            os.killpg(process.pid, signal.SIGINT)
        else:
            process.terminate()
        _, errors = process.communicate(timeout=120)
    assert errors == "interrupted; to go on: cselab run --resume r --outputs o\n"
    assert process.returncode == 130
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_a_project_with_notebooks_of_its_own_has_the_workbook_too(tmp_path, monkeypatch):
    """Prevents "run from the project's folder" in the folder of a project."""
    from cselab.cli.options import notebooks_folder

    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "notebooks", "mine.ipynb")
    assert find_notebooks(notebooks_folder(), ["02"])[0].stem.startswith("02_")
    assert find_notebooks(notebooks_folder(), ["notebooks/mine.ipynb"])[0].is_absolute()
    copy = notebook(tmp_path / "notebooks", "01_a.ipynb")
    assert find_notebooks(notebooks_folder()) == [copy]
