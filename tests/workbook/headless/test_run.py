"""The runner on small notebooks with real kernels: order, isolation, failures, pages."""

import base64
import errno
import gzip
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import quote, unquote

import nbformat
import psutil
import pytest
from safetensors import SafetensorError

from cselab.data.progress_bar import progress_bar
from cselab.errors import CselabError, Interrupted
from cselab.machine import clock
from cselab.workbook.headless import runner
from cselab.workbook.headless.page import write_page
from cselab.workbook.headless.progress import Durations, LiveLine
from cselab.workbook.headless.record import RunRecord, read_record
from cselab.workbook.headless.report import Outcome, write_index
from cselab.workbook.headless.runner import find_notebooks

PARAMETERS = 'profile: str = "tiny"\nseed: int | None = 1'


def notebook(folder: Path, name: str, *cells: str, title: str = "# A title") -> Path:
    folder.mkdir(exist_ok=True)
    code = [
        nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]}),
        *map(nbformat.v4.new_code_cell, cells),
    ]
    spec = {
        "kernelspec": {"name": "somebody-elses-kernel", "display_name": "x", "language": "python"}
    }
    nb = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell(title), *code], metadata=spec
    )
    nbformat.write(nb, folder / name)
    return folder / name


def cselab(*arguments, cwd, env=None):
    """The command line in its own process, as a user has it."""
    return subprocess.run(
        [sys.executable, "-m", "cselab", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=env,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One run of four notebooks: two that work, one that raises between them, one whose kernel
    dies."""
    root = tmp_path_factory.mktemp("run")
    record = (
        "import json, os, sys\nrow = dict(method='<M>', task='T', score=50.0 + seed, seed=seed,"
        " settings='s', executable=sys.executable,"
        " pid=os.getpid())\nopen(os.environ['CSELAB_RUN_DIR'] + '/results.jsonl',"
        " 'a').write(json.dumps(row) + '\\n')\nprint('said aloud')"
    )
    notebook(root / "notebooks", "01_works.ipynb", record, title="# First & <best>")
    notebook(root / "notebooks", "02_raises.ipynb", "value = 1\nvalue / 0")
    notebook(
        root / "notebooks",
        "03_dies.ipynb",
        "import os\nos.write(2, b'last words\\n')\nos._exit(3)",
    )
    notebook(root / "notebooks", "04_works_too.ipynb", record.replace("<M>", "other"))
    result = cselab("run", "-p", "seed=3", "--name", "r", "--outputs", "outputs", cwd=root)
    return root / "outputs" / "runs" / "r", result


def test_a_failure_is_told_and_the_rest_still_runs(finished):
    folder, result = finished
    assert result.returncode == 1
    assert "[1/4] 01_works  finished" in result.stdout
    assert "[2/4] 02_raises  FAILED: cell 3: ZeroDivisionError: division by zero" in result.stdout
    assert "[3/4] 03_dies  FAILED: the kernel died" in result.stdout
    assert "[4/4] 04_works_too  finished" in result.stdout
    assert "value / 0" in result.stderr  # the traceback, in the terminal
    assert "last words" in result.stderr  # the dead kernel's log
    assert "unknown parameter" not in result.stderr  # what papermill says of `int | None`
    assert str(folder / "index.html") in result.stdout


def test_every_notebook_has_its_own_process_of_this_interpreter(finished):
    """A user's own `python3` kernel would otherwise run another Python, with other versions."""
    folder, _ = finished
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert {row["executable"] for row in rows} == {sys.executable}
    assert len({row["pid"] for row in rows}) == 2
    assert [row["score"] for row in rows] == [53.0, 53.0]  # the parameter arrived


def test_every_executed_notebook_has_a_page_and_a_log(finished):
    folder, _ = finished
    for stem in ("01_works", "02_raises", "04_works_too"):
        assert (folder / f"{stem}.html").is_file()
    assert "ZeroDivisionError" in (folder / "02_raises.html").read_text()
    assert "said aloud" in (folder / "01_works.log").read_text()
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def test_the_index_links_escapes_and_shows_scores(finished):
    folder, _ = finished
    page = (folder / "index.html").read_text()
    assert "First &amp; &lt;best&gt;" in page
    assert "<td>&lt;M&gt;</td>" in page
    assert "53.00" in page
    assert "2 of 4 notebooks finished, 2 failed" in page
    for link in re.findall(r"href='([^']+)'", page):
        if "03_dies.html" not in link:
            assert (folder / link).exists(), link
    assert (folder.parents[1] / "latest").resolve() == folder.resolve()
    assert Durations(folder.parents[1] / "durations.json").seconds.keys() == {
        "01_works:",
        "04_works_too:",
    }


def test_several_at_a_time(tmp_path):
    """Prevents notebooks that wait for one another, an index out of order, and a failure that
    takes the others along."""
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
    notebook(
        tmp_path / "notebooks",
        "01_a.ipynb",
        meet.replace("<ME>", "a").replace("<OTHER>", "b"),
        title="# A",
    )
    notebook(
        tmp_path / "notebooks",
        "02_b.ipynb",
        meet.replace("<ME>", "b").replace("<OTHER>", "a"),
        title="# B",
    )
    notebook(tmp_path / "notebooks", "03_c.ipynb", "1 / 0", title="# C")
    result = cselab("run", "--jobs", "2", "--name", "r", "--outputs", "o", cwd=tmp_path)
    assert result.returncode == 1
    for line in (
        "[1/3] 01_a  finished",
        "[2/3] 02_b  finished",
        "[3/3] 03_c  FAILED: cell 2: ZeroDivisionError",
    ):
        assert line in result.stdout
    page = (tmp_path / "o" / "runs" / "r" / "index.html").read_text()
    assert page.index("01_a.html") < page.index("02_b.html") < page.index("03_c.html")
    assert "2 of 3 notebooks finished, 1 failed" in page
    assert (
        len(list((tmp_path / "notebooks").iterdir())) == 3
    )  # no socket of a kernel is left behind
    refused = cselab("run", "--jobs", "0", cwd=tmp_path)
    assert (refused.returncode, refused.stderr) == (
        2,
        "cselab: --jobs 0: expected 1 or more notebooks at a time\n",
    )


@pytest.mark.slow  # three kernels
def test_the_first_failure_ends_a_run_of_several_at_a_time(tmp_path):
    """Prevents notebooks that start after the failure, and one that ends after it but is executed
    again by --resume."""
    wait = (
        "import json, os, pathlib, time\n"
        "run = pathlib.Path(os.environ['CSELAB_RUN_DIR'])\n"
        "(run / '<ME>').touch()\n"
        "end = time.time() + 60\n"
        "while not <DONE>:\n"
        "    assert time.time() < end, 'the other never came'\n"
        "    time.sleep(0.1)\n"
    )
    started = "(run / '02_ends').exists()"
    failed = "'01_fails' in json.loads((run / 'run.json').read_text())['outcomes']"
    for name, done, then in (
        ("01_fails", started, "1 / 0"),
        ("02_ends", failed, ""),
        ("03_never", "True", ""),
    ):
        code = wait.replace("<ME>", name).replace("<DONE>", done) + then
        notebook(tmp_path / "notebooks", f"{name}.ipynb", code)
    options = ("--jobs", "2", "--fail-fast", "--name", "r", "--outputs", "o")
    assert cselab("run", *options, cwd=tmp_path).returncode == 1
    folder = tmp_path / "o" / "runs" / "r"
    assert not (folder / "03_never").exists()
    outcomes = json.loads((folder / "run.json").read_text())["outcomes"]
    assert {stem: bool(outcome["failure"]) for stem, outcome in outcomes.items()} == {
        "01_fails": True,
        "02_ends": False,
    }


def test_jobs_share_the_processors_of_the_process(tmp_path, monkeypatch):
    """Prevents threads for cores that a batch system or a container did not give."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(6), raising=False)
    seen, environment = [], runner.environment
    monkeypatch.setattr(runner, "environment", lambda **v: (seen.append(v), environment(**v))[1])
    runner.run([], {}, tmp_path, jobs=2)
    assert seen[0]["OMP_NUM_THREADS"] == "3"


def test_bad_input_is_one_line_and_nothing_runs(tmp_path):
    notebook(tmp_path / "notebooks", "01_a.ipynb", "open('ran', 'w')")
    cases = {
        ("run", "-p", "sead=1"): "cselab: unknown parameter 'sead'; did you mean 'seed'",
        ("run", "-p", "seed"): "cselab: -p 'seed': expected name=value",
        ("run", "05"): "cselab: no notebook '05'; valid: 01_a",
        (
            "run",
            "--profile",
            "tiny",
            "-p",
            "seed=x",
        ): "cselab: parameter 'seed' takes int or None, got 'x'",
    }
    for arguments, message in cases.items():
        result = cselab(*arguments, cwd=tmp_path)
        assert result.returncode == 2
        assert result.stderr.startswith(message)
        assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "notebooks" / "ran").exists()


def test_the_outputs_folder_may_be_a_variable(tmp_path, monkeypatch):
    """Prevents a run that fills the project while the variable of every other command is set."""
    path = notebook(tmp_path / "n", "01_a.ipynb", "print(1)")
    monkeypatch.setenv("CSELAB_OUTPUTS", str(tmp_path / "there"))
    done = cselab("run", path, "--name", "r", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "there" / "runs" / "r" / "01_a.html").is_file()


def test_a_cell_that_takes_too_long(tmp_path):
    notebook(tmp_path / "notebooks", "01_slow.ipynb", "import time\ntime.sleep(60)")
    result = cselab("run", "--timeout", "2", "--outputs", "o", cwd=tmp_path)
    assert result.returncode == 1
    assert "FAILED: a cell took longer than 2 s; raise --timeout" in result.stdout


def test_a_notebook_that_takes_too_long(tmp_path):
    """Prevents many short cells from taking for ever."""
    notebook(tmp_path / "notebooks", "01_slow.ipynb", *["import time\ntime.sleep(2)"] * 10)
    result = cselab("run", "--notebook-timeout", "5", "--outputs", "o", cwd=tmp_path)
    assert result.returncode == 1
    assert "FAILED: it took longer than 5 s; raise --notebook-timeout" in result.stdout


@pytest.mark.slow
def test_a_run_is_resumed(tmp_path):
    """Prevents a failure in the last notebook from costing the hours of those before it, and a
    resumed run with other parameters."""
    count = "from pathlib import Path\nopen(Path.cwd().parent / 'NAME', 'a').write(f'{seed} ')"
    notebook(tmp_path / "notebooks", "01_works.ipynb", count.replace("NAME", "first"))
    fails = notebook(
        tmp_path / "notebooks", "02_fails.ipynb", count.replace("NAME", "second"), "1 / 0"
    )
    notebook(tmp_path / "notebooks", "03_later.ipynb", count.replace("NAME", "third"))
    assert (
        cselab(
            "run", "-p", "seed=5", "--name", "r", "--outputs", "o", "--fail-fast", cwd=tmp_path
        ).returncode
        == 1
    )
    notebook(tmp_path / "notebooks", fails.name, count.replace("NAME", "second"))
    result = cselab("run", "--resume", "r", "--outputs", "o", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "1 of 3 notebooks had finished" in result.stdout
    assert "01_works" not in result.stdout
    assert [(tmp_path / name).read_text() for name in ("first", "second", "third")] == [
        "5 ",
        "5 5 ",
        "5 ",
    ]
    page = (tmp_path / "o" / "runs" / "r" / "index.html").read_text()
    assert "3 of 3 notebooks finished" in page
    assert page.index("01_works.html") < page.index("02_fails.html") < page.index("03_later.html")
    for arguments, message in {
        ("--resume", "q"): "no run to resume in",
        (
            "--resume",
            "r",
            "-p",
            "seed=6",
        ): "--resume takes notebooks, parameters and name from the run it goes on with",
    }.items():
        refused = cselab("run", *arguments, "--outputs", "o", cwd=tmp_path)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
        assert message in refused.stderr


def test_a_taken_run_folder_is_refused(tmp_path):
    notebook(tmp_path / "notebooks", "01_a.ipynb")
    (tmp_path / "outputs" / "runs" / "r").mkdir(parents=True)
    (tmp_path / "outputs" / "runs" / "r" / "results.jsonl").write_text("")
    result = cselab("run", "--name", "r", "--outputs", "outputs", cwd=tmp_path)
    assert result.returncode == 2
    assert "exists; choose another --name" in result.stderr


def test_notebooks_by_number_stem_and_all(tmp_path):
    first, second = (notebook(tmp_path / "n", name) for name in ("01_a.ipynb", "12_b.ipynb"))
    assert find_notebooks(tmp_path / "n") == [first, second]
    (tmp_path / "n" / "ledger.ipynb").write_text("{}")  # has no number, so it is run by name alone
    assert find_notebooks(tmp_path / "n") == [first, second]
    assert find_notebooks(tmp_path / "n", ["ledger"]) == [tmp_path / "n" / "ledger.ipynb"]
    assert find_notebooks(tmp_path / "n", ["12_b", "1"]) == [second, first]
    once = find_notebooks(tmp_path / "n", ["01", "1", "01_a", str(first)])
    assert once == [first]  # else --jobs writes one notebook's files twice at a time
    with pytest.raises(CselabError, match="no notebook '12_c'; did you mean '12_b'"):
        find_notebooks(tmp_path / "n", ["12_c"])
    with pytest.raises(CselabError, match="no notebooks in"):
        find_notebooks(tmp_path / "empty")
    notebook(tmp_path / "own", "My own.ipynb")
    with pytest.raises(CselabError, match="no notebooks in .*own with a number, such as 01_name"):
        find_notebooks(tmp_path / "own")
    assert len(find_notebooks(tmp_path / "own", ["My own"])) == 1
    assert find_notebooks(tmp_path / "empty", [str(first)]) == [first]
    solution = notebook(tmp_path / "n" / "solutions", "01_a.ipynb")  # the files of both are 01_a.*
    with pytest.raises(CselabError, match="01_a.ipynb and .* have one name; run them one after"):
        find_notebooks(tmp_path / "n", ["01", str(solution)])


# ----------------------------------------------------------------------------------------------
# pages


def payload(page: str) -> dict:
    """What a page's script draws."""
    packed = re.search(r"<script id='payload' type='text/plain'>([^<]*)</script>", page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_pages_ask_nothing_of_the_network_and_keep_figures_and_equations(tmp_path):
    """nbconvert's own template loads MathJax, require.js and widget scripts from CDNs: blank
    offline."""
    figure = {"data": [{"type": "bar", "y": [1, 2], "name": "</script><b>"}], "layout": {}}
    outputs = [
        nbformat.v4.new_output("display_data", {"application/vnd.plotly.v1+json": figure}),
        nbformat.v4.new_output(
            "display_data",
            {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "Slider()"},
        ),
        nbformat.v4.new_output("stream", text="<i>plain</i>"),
    ]
    markdown = (
        "# T\n$$\\frac{a}{b}$$ and $\\tau$ but `$HOME` and `$x$` and a price of $5,\nor $a\n+ b$."
    )
    cells = [
        nbformat.v4.new_markdown_cell(markdown),
        nbformat.v4.new_code_cell("show()", outputs=outputs),
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "n.ipynb")
    write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    page = (tmp_path / "n.html").read_text()
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)\s*=\s*[\"']?https?:", page)
    assert page.count('<div id="figure-0">') == 1
    assert payload(page)["figures"] == [figure]
    assert len(page) < 3_000_000
    assert page.count("<math") == 3
    assert "<mfrac>" in page
    assert "$HOME" in page
    assert "$x$" in page
    assert "price of $5," in page
    assert "Slider()" in page
    assert "&lt;i&gt;plain" in page


def test_a_page_shows_the_last_state_of_a_bar_within_a_bar(tmp_path, monkeypatch):
    """Prevents a page with every step of every training: bars that move the cursor stay."""
    monkeypatch.setenv("CSELAB_RUN_DIR", str(tmp_path))
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress_bar("outer", 2) as outer:
        for _ in range(2):
            with progress_bar("inner", 40) as inner:
                inner.mininterval = 0
                for _ in range(40):
                    inner.update()
            outer.update()
    text = written.getvalue()
    assert text.count("inner:") > 40
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("fit()")])
    nb.cells[0].outputs = [nbformat.v4.new_output("stream", name="stderr", text=text)]
    nbformat.write(nb, tmp_path / "n.ipynb")
    write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    page = (tmp_path / "n.html").read_text()
    assert page.count("inner:") == page.count("40/40") == 2


def test_a_page_links_to_pages_of_its_run_and_to_no_file_that_is_not_there(tmp_path):
    """Prevents links to solutions and to notebooks that this run did not execute."""
    links = ("02_b.ipynb", "03_c.ipynb", "solutions/02_b.ipynb", "https://x.org/a")
    markdown = ", ".join(f"[to {link}]({link})" for link in links)
    nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(markdown)])
    nbformat.write(nb, tmp_path / "n.ipynb")
    write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T", beside={"02_b"})
    page = (tmp_path / "n.html").read_text()
    assert re.findall(r"href=[\"']([^\"'#]+)", page) == ["02_b.html", "https://x.org/a"]
    assert all(f"to {link}" in page for link in links)


def test_a_page_without_figures_is_small(tmp_path):
    nbformat.write(
        nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# T")]), tmp_path / "n.ipynb"
    )
    write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    assert (tmp_path / "n.html").stat().st_size < 50_000


def test_an_equation_that_is_none_is_shown_as_it_was_written(tmp_path):
    """Prevents a typo in a formula from ending a run of many notebooks, after this one's hours."""
    cell = nbformat.v4.new_markdown_cell("$x_$ and $\\tau$")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "n.ipynb")
    write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    page = (tmp_path / "n.html").read_text()
    assert "$x_$" in page
    assert page.count("<math") == 1


ROW = {"method": "m", "task": "T", "score": 70.0, "seed": 1, "settings": "s"}
WHOLE = json.dumps(ROW)
DAMAGED = {
    "cut off": '{"method": "m", "ta',
    "a number as method": WHOLE.replace('"m"', "5"),
    "a text as score": WHOLE.replace("70.0", '"high"'),
    "no object": "[1]",
    "Latin-1": WHOLE.replace("m", "caf\xe9").encode("latin-1"),
    "too deep": "[" * 10_000,
}


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_row_is_named_and_costs_no_other(line, tmp_path, capsys):
    """Prevents half a row, or one typed by hand, from ending the run, and from costing the row that
    another notebook wrote right after it."""
    line = line if isinstance(line, bytes) else line.encode()
    other = WHOLE.replace('"T"', '"other"').encode()
    (tmp_path / "results.jsonl").write_bytes(b"\n".join([WHOLE.encode(), line + other, b""]))
    for _ in range(2):
        write_index(tmp_path, [Outcome("01_a", "A", 61.0)], {})
    (said,) = capsys.readouterr().err.splitlines()
    assert re.search(r"results.jsonl: damaged rows are left out, line 2$", said, re.M)
    page = (tmp_path / "index.html").read_text()
    assert "<th class='number'>other</th>" in page
    assert "damaged rows are left out, line 2" in page


def test_scores_that_are_not_finite_have_a_page(tmp_path):
    """Prevents an encoder with equal vectors, whose scores are NaN, from ending the run; likewise
    rows of main methods that have no interval."""
    scores = {"untrained (cls)": float("nan"), "TNCSE": 70.0, "JTCSE": 71.0}
    rows = [{**ROW, "method": m, "score": x, "seed": i} for m, x in scores.items() for i in (1, 2)]
    rows[-1] |= {"low": float("nan"), "high": float("nan")}
    (tmp_path / "results.jsonl").write_text("\n".join(map(json.dumps, rows)))
    page = write_index(tmp_path, [], {}).read_text()
    assert "<td class='number'>NaN</td>" in page
    assert "<td class='number best'>71.00 ± 0.00</td>" in page


def test_several_seeds_become_mean_and_spread_and_a_repeated_row_counts_once(tmp_path):
    rows = [
        {"method": "m", "task": "T", "score": score, "seed": seed, "settings": "s"}
        for score, seed in ((70.0, 1), (74.0, 2), (74.0, 2))
    ]
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    write_index(tmp_path, [Outcome("01_a", "A", 61.0)], {})
    assert "72.00 ± 2.83" in (tmp_path / "index.html").read_text()


# ----------------------------------------------------------------------------------------------
# progress


def test_odd_names_and_damaged_leftovers(tmp_path):
    """Prevents links to files of which no browser finds the name, a run that is ended by half a
    row, by a figure without a layout or by a file typed by hand, and a notebook that is refused
    since it does not name its language."""
    one, two = "don't {x} 50% of C#.ipynb", "2 & <b> über.ipynb"
    half = "import os\nfile = open(os.environ['CSELAB_RUN_DIR'] + '/results.jsonl', 'a')\n"
    figure = (
        "from IPython.display import display\n"
        "display({'application/vnd.plotly.v1+json': {'data': []}}, raw=True)"
    )
    links = f"# A\n[there]({quote(two)}), [part](./{quote(one)}#part), [none](03_c.ipynb#a)"
    notebook(tmp_path, one, half + f"file.write({DAMAGED['cut off']!r})", figure, title=links)
    notebook(tmp_path, two, half + f"file.write({WHOLE + chr(10)!r})", "print(seed)")
    for name in (one, two):
        nb = nbformat.read(tmp_path / name, as_version=4)
        nb.metadata.clear()
        nbformat.write(nb, tmp_path / name)
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "durations.json").write_text('["typed by hand"]')
    result = cselab("run", one, two, "-p", "seed=3", "--name", "r", "--outputs", "o", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert len(result.stderr.splitlines()) == 1
    folder = tmp_path / "o" / "runs" / "r"
    pages = [folder / "index.html", *(folder / f"{name[:-6]}.html" for name in (one, two))]
    links = [
        html.unescape(link)
        for page in pages
        for _, link in re.findall(r"<a href=([\"'])([^#].*?)\1", page.read_text())
    ]
    assert len(links) == 9  # three of each notebook, the rows, and two of the text
    for link in links:
        assert (folder / unquote(link.partition("#")[0])).is_file(), link
    assert "70.00" in pages[0].read_text()
    assert Durations(tmp_path / "o" / "durations.json").seconds.keys() == {
        f"{name[:-6]}:" for name in (one, two)
    }


def test_a_page_that_cannot_be_made_is_one_line(tmp_path, capsys):
    """Prevents the page of one notebook from costing those that come after it."""
    (tmp_path / "n.ipynb").write_text("{")
    runner._report(write_page, tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    assert re.fullmatch(r"no page of .*n.ipynb \(NotJSONError: .*\)\n", capsys.readouterr().err)


OUTCOME = '{"stem": "01_a", "title": "A", "seconds": %s}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"notebooks": [], "given": {}}',
        '{"notebooks": [], "given": {}, "outcomes": []}',
        '{"notebooks": 1, "given": {}, "outcomes": {}}',
        f'{{"notebooks": [], "given": {{}}, "outcomes": {{"01_a": {OUTCOME % "NaN"}}}}}',
        f'{{"notebooks": [], "given": {{}}, "outcomes": {{"01_a": {OUTCOME % "null"}}}}}',
    ],
)
def test_a_damaged_record_is_written_anew(text, tmp_path, capsys):
    """Prevents a traceback, and a notebook of a sweep that can never run again."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(CselabError, match="no run to resume in"):
        read_record(tmp_path / "run.json")
    assert RunRecord(tmp_path / "run.json", [], {}).outcomes == {}
    assert "is damaged and written anew" in capsys.readouterr().out
    assert read_record(tmp_path / "run.json")["outcomes"] == {}


def test_clock_and_the_live_line():
    assert [clock(s) for s in (7.0, 750.0, 3723.0)] == ["0:07", "12:30", "1:02:03"]
    line = LiveLine("[1/2] 01_a", expected=100.0)
    line.on_cell(2, 9)
    assert line.text() == "[1/2] 01_a  cell 3/9  0:00  about 1:40 left"


@pytest.mark.parametrize("text", ["{half", "[1]", '{"01_a:": "x"}', '{"01_a:": NaN}', "\xff"])
def test_a_broken_durations_file_is_no_obstacle(text, tmp_path):
    (tmp_path / "durations.json").write_text(text, encoding="latin-1")
    durations = Durations(tmp_path / "durations.json")
    durations.add("01_a:tiny", 3.21)
    assert Durations(tmp_path / "durations.json").seconds == {"01_a:tiny": 3.2}
    Durations(tmp_path / "nowhere" / "durations.json").add("01_a:tiny", 3.21)


def test_durations_that_cannot_be_written_are_no_obstacle(tmp_path):
    (tmp_path / "durations.json").mkdir()
    Durations(tmp_path / "durations.json").add("01_a:tiny", 3.21)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device", "outputs"),
        RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 232 vs 124"),
        SafetensorError("I/O error: No space left on device (os error 28)"),
    ],
    ids=type,
)
def test_a_full_disk_is_one_line(monkeypatch, capsys, error):
    """Prevents the traceback of a library that has an error of its own for it."""
    from cselab import cli

    monkeypatch.setattr(cli, "app", Mock(side_effect=error))
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capsys.readouterr().err == (
        "cselab: no space left on the disk while writing outputs: free some, or choose another\n"
    )


def test_a_terminal_without_a_character_does_not_end_a_command(tmp_path):
    """Prevents a UnicodeEncodeError of a title in a container or on an old Windows."""
    notebook(tmp_path / "notebooks", "01_a.ipynb", title="# 01 · é × →")
    done = cselab("list", cwd=tmp_path, env={**os.environ, "PYTHONIOENCODING": "ascii"})
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
        _, said = process.communicate(timeout=120)
    assert said == "interrupted; to go on: cselab run --resume r --outputs o\n"
    assert process.returncode == 130
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


def test_sockets_of_kernels_have_short_names(tmp_path, monkeypatch):
    """Prevents a hundred lines of ZMQError where the folder of temporary files is a deep one."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    Path(tempfile.gettempdir()).mkdir()
    notebooks = [notebook(tmp_path / "n", "01_a.ipynb", "1 + 1")]
    assert runner.run(notebooks, {}, tmp_path / "o")


def test_a_project_with_notebooks_of_its_own_has_the_workbook_too(tmp_path, monkeypatch):
    """Prevents "run from the project's folder" in the folder of a project."""
    from cselab.cli.options import notebooks_folder

    monkeypatch.chdir(tmp_path)
    notebook(tmp_path / "notebooks", "mine.ipynb")
    assert find_notebooks(notebooks_folder(), ["02"])[0].stem.startswith("02_")
    assert find_notebooks(notebooks_folder(), ["notebooks/mine.ipynb"])[0].is_absolute()
    copy = notebook(tmp_path / "notebooks", "01_a.ipynb")
    assert find_notebooks(notebooks_folder()) == [copy]


def test_an_interrupted_training_says_where_it_goes_on(monkeypatch, capsys):
    """Prevents Ctrl-C from saying nothing: typer ends every KeyboardInterrupt by itself."""
    from cselab import cli
    from cselab.study.pretraining import recipe

    def interrupted(*_, **__):
        raise Interrupted("interrupted at step 3; run it again")

    monkeypatch.setattr(recipe, "measure", interrupted)
    monkeypatch.setattr(sys, "argv", ["cselab", "card", "tiny-bert"])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 130
    assert capsys.readouterr().err == "interrupted at step 3; run it again\n"


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk needs root on Linux"
)
def test_a_really_full_disk_is_one_line(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=False
    ).returncode:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        notebook(tmp_path / "notebooks", "01_a.ipynb", "print('x' * 200_000)")
        result = cselab("run", "--outputs", small, cwd=tmp_path)
        assert result.returncode == 2
        assert re.fullmatch(
            r"cselab: no space left on the disk while writing .*\n", result.stderr
        ), result.stderr
    finally:
        subprocess.run(["umount", "-l", small], check=False)
