"""Pages of executed notebooks, and the index of a run."""

import base64
import gzip
import html
import io
import json
import re
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote, unquote

import nbformat
import plotly.graph_objects as go
import pytest

from cselab.workbook.headless import runner
from cselab.workbook.headless.page import write_page
from cselab.workbook.headless.report import Outcome, headline, read_rows, write_index

NEW = nbformat.v4
ENDED = {"01_a": Outcome("01_a", "A", 61.0)}


@pytest.fixture
def page(tmp_path):
    """Writes the page of some cells and returns it."""

    def write(*cells, beside=()) -> str:
        nbformat.write(NEW.new_notebook(cells=cells), tmp_path / "n.ipynb")
        write_page(tmp_path / "n.ipynb", tmp_path / "n.html", "T", beside=beside)
        return (tmp_path / "n.html").read_text()

    return write


def payload(page: str) -> dict:
    """Figures and widgets that a page's script draws."""
    packed = re.search(r"<script id='payload' type='text/plain'>([^<]*)</script>", page)[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_pages_fold_the_set_up_and_hold_their_pictures(page, tmp_path):
    """Prevents pages that begin with a screen of parameters, pictures that stay behind, and answers
    and equations that fall out of their tags where a page has pictures."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    tagged = NEW.new_code_cell("seed = 1 < 2", metadata={"tags": ["parameters"]})
    answer = "<details><summary>S</summary>\n\nfolded $\\frac{a}{b}$\n\n</details>"
    text = page(
        NEW.new_markdown_cell("# T\n![two views](images/a.svg)"),
        tagged,
        NEW.new_markdown_cell(answer),
    )
    assert text.index("folded") < text.index("</mfrac>") < text.rindex("</details>")
    assert "<mfrac></mfrac>" not in text
    assert 'src="data:image/svg+xml;base64,' in text
    folded = text[text.index("<details>") : text.index("</details>")]
    assert "Parameters" in folded
    assert "&lt;" in folded
    assert text.count("seed") == 1


def test_pages_ask_nothing_of_the_network_and_keep_figures_and_equations(page):
    """Prevents pages that are blank offline: nbconvert's own template loads MathJax, require.js
    and widget scripts from CDNs."""
    figure = {"data": [{"type": "bar", "y": [1, 2], "name": "</script><b>"}], "layout": {}}
    widget = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": "Slider()"}
    outputs = [
        NEW.new_output("display_data", {"application/vnd.plotly.v1+json": figure}),
        NEW.new_output("display_data", widget),
        NEW.new_output("stream", text="<i>plain</i>"),
    ]
    markdown = (
        "# T\n$$\\frac{a}{b}$$ and $\\tau$ but `$HOME` and `$x$` and a price of $5,\nor $a\n+ b$."
    )
    text = page(NEW.new_markdown_cell(markdown), NEW.new_code_cell("show()", outputs=outputs))
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)\s*=\s*[\"']?https?:", text)
    assert text.count('<div id="figure-0">') == 1
    assert payload(text)["figures"] == [figure]
    assert len(text) < 3_000_000
    assert text.count("<math") == 3
    for part in ("<mfrac>", "$HOME", "$x$", "price of $5,", "Slider()", "&lt;i&gt;plain"):
        assert part in text


def test_a_page_shows_the_last_state_of_a_bar_within_a_bar(page, tmp_path, monkeypatch):
    """Prevents a page with every step of every training: bars that move the cursor stay."""
    from cselab.data.progress_bar import progress_bar

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
    stream = NEW.new_output("stream", name="stderr", text=text)
    text = page(NEW.new_code_cell("fit()", outputs=[stream]))
    assert text.count("inner:") == text.count("40/40") == 2


def test_a_page_links_to_pages_of_its_run_and_to_no_file_that_is_not_there(page):
    """Prevents links to solutions and to notebooks that this run did not execute."""
    links = ("02_b.ipynb", "03_c.ipynb", "solutions/02_b.ipynb", "https://x.org/a")
    markdown = ", ".join(f"[to {link}]({link})" for link in links)
    text = page(NEW.new_markdown_cell(markdown), beside={"02_b"})
    assert re.findall(r"href=[\"']([^\"'#]+)", text) == ["02_b.html", "https://x.org/a"]
    assert all(f"to {link}" in text for link in links)
    assert len(text) < 50_000  # nothing of plotly without a figure


def test_an_equation_that_is_none_is_shown_as_it_was_written(page):
    """Prevents a typo in a formula from ending a run of many notebooks, after this one's hours."""
    text = page(NEW.new_markdown_cell("$x_$ and $\\tau$"))
    assert "$x_$" in text
    assert text.count("<math") == 1


def test_a_page_that_cannot_be_made_is_one_line(tmp_path, capsys):
    """Prevents the page of one notebook from costing those that come after it."""
    (tmp_path / "n.ipynb").write_text("{")
    runner._report(write_page, tmp_path / "n.ipynb", tmp_path / "n.html", "T")
    assert re.fullmatch(r"no page of .*n.ipynb \(NotJSONError: .*\)\n", capsys.readouterr().err)


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


def index(folder, *rows) -> str:
    """The index of a run with these rows of results."""
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return write_index(folder, {"01_a": "A"}, ENDED, {}).read_text()


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_row_is_named_and_costs_no_other(line, tmp_path, capsys):
    """Prevents half a row, or one typed by hand, from ending the run, or from costing another."""
    line = line if isinstance(line, bytes) else line.encode()
    other = WHOLE.replace('"T"', '"other"').encode()
    (tmp_path / "results.jsonl").write_bytes(b"\n".join([WHOLE.encode(), line, other, b""]))
    for _ in range(2):
        write_index(tmp_path, {"01_a": "A"}, ENDED, {})
    (said,) = capsys.readouterr().err.splitlines()
    assert re.search(r"results.jsonl: damaged rows are left out, line 2$", said, re.M)
    page = (tmp_path / "index.html").read_text()
    assert "<th class='number'>other</th>" in page
    assert "damaged rows are left out, line 2" in page


def test_scores_are_means_with_spreads_and_the_best_of_a_column_is_bold(tmp_path):
    """Prevents a repeated row that counts twice, and an encoder with equal vectors, whose scores
    are NaN, from ending the run."""
    rows = [{**ROW, "score": score, "seed": s} for score, s in ((70.0, 1), (74.0, 2), (74.0, 2))]
    rows += [{**ROW, "method": "none", "score": float("nan")}, {**ROW, "task": "other"}]
    page = index(tmp_path, *rows)
    assert "<td class='number best'>72.00 ± 2.83</td>" in page
    assert "<td class='number'>NaN</td><td class='number soft'>–</td>" in page
    assert "<td class='number'>71.00</td>" in page  # the average of both tasks
    assert "What this run shows" not in page


def scored(method, score, notebook="a", **changes):
    interval = {"low": score - 2, "high": score + 2, "notebook": notebook}
    return {**ROW, "method": method, "score": score, **interval, **changes}


def test_the_headline_has_the_methods_that_most_notebooks_compare(tmp_path):
    """Prevents 46 bare scores as the first thing that a reader of a run sees, and a name of a
    method that is read as markup."""
    rows = [scored(f"m{i}", 60.0 + i) for i in range(9)]
    rows += [scored("m8", 70.0, "b"), scored("m8", 71.0, "c"), scored("<b>", 50.0, "b")]
    rows += [scored("<b>", 51.0, "c")]
    assert "What this run shows" in index(tmp_path, *rows)
    figure, test = headline(read_rows(tmp_path))
    points = go.Figure(figure).data[0]
    assert points.y == ("m0", "m1", "m2", "m3", "m8", "&lt;b&gt;")
    assert points.x[-2:] == (71.0, 51.0)
    assert points.error_x.array[-1] == 2.0
    assert test == "the test T"


def test_the_headline_averages_shared_tests_that_have_intervals(tmp_path):
    """Prevents a mean of other tests, and a row without an interval from ending the run."""
    rows = [scored(m, x, task=t) for m, x in (("a", 60.0), ("b", 61.0)) for t in ("T", "U", "V")]
    nothing = [scored("c", 70.0, low=None), scored("d", 70.0, high=float("nan"))]
    index(tmp_path, *rows, scored("a", 90.0, task="alone"), *nothing)
    figure, test = headline(read_rows(tmp_path))
    assert test == "the average of 3 tests"
    assert go.Figure(figure).data[0].x == (60.0, 61.0)
    assert go.Figure(figure).data[0].error_x.array[0] == pytest.approx(2 / 3**0.5)
    assert headline(read_rows(tmp_path)[:1]) is None


def test_odd_names_and_damaged_leftovers(tmp_path, capsys, monkeypatch):
    """Prevents links to files of which no browser finds the name, a run that is ended by half a
    row, by a figure without a layout or by a deep folder of temporary files, and a notebook that
    is refused since it does not name its language."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / ("x" * 100)))
    Path(tempfile.gettempdir()).mkdir()
    one, two = "don't {x} 50% of C#.ipynb", "2 & <b> über.ipynb"
    half = "import os\nfile = open(os.environ['CSELAB_RUN_DIR'] + '/results.jsonl', 'a')\n"
    figure = (
        "from IPython.display import display\n"
        "display({'application/vnd.plotly.v1+json': {'data': []}}, raw=True)"
    )
    links = f"# A\n[there]({quote(two)}), [part](./{quote(one)}#part), [none](03_c.ipynb#a)"
    for name, text, *cells in (
        (one, links, half + f"file.write({DAMAGED['cut off']!r})", figure),
        (two, "# A title", half + f"file.write({chr(10) + WHOLE + chr(10)!r})"),
    ):
        parameters = NEW.new_code_cell("seed: int = 1", metadata={"tags": ["parameters"]})
        code = [NEW.new_code_cell(cell) for cell in cells]
        cells = [NEW.new_markdown_cell(text), parameters, *code]
        nbformat.write(NEW.new_notebook(cells=cells), tmp_path / name)
    notebooks = [tmp_path / one, tmp_path / two]
    assert runner.run(notebooks, {"seed": "3"}, tmp_path / "o", name="r")
    assert len(capsys.readouterr().err.splitlines()) == 1
    folder = tmp_path / "o" / "runs" / "r"
    pages = [folder / "index.html", *(folder / f"{path.stem}.html" for path in notebooks)]
    links = [
        html.unescape(link)
        for page in pages
        for _, link in re.findall(r"<a href=([\"'])([^#].*?)\1", page.read_text())
    ]
    assert len(links) == 9  # three of each notebook, the rows, and two of the text
    for link in links:
        assert (folder / unquote(link.partition("#")[0])).is_file(), link
    assert "70.00" in pages[0].read_text()
