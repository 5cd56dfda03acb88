"""What a notebook's first cell imports: everybody waits for it, every time."""

import subprocess
import sys

LATER = {"sklearn", "scipy.stats", "nbformat", "mteb", "ipywidgets", "bertviz", "distributed"}
"""Some tenths of a second each, nbformat more than one (jsonschema builds parsers of every kind of
address); they are imported with the first score, figure or widget."""


NOT_FOR_WORDS = LATER - {"sklearn", "scipy.stats", "ipywidgets"}
"""The recorded results, whose numbers stand in texts, and the widgets need these."""


def test_the_first_line_waits_for_nothing_that_it_does_not_need(tmp_path):
    """Prevents an import at the top of a module that makes every notebook start later."""
    program = (
        "import sys, os, cselab, cselab.cli\n"
        "assert 'torch' not in sys.modules, 'cselab --help takes seconds'\n"
        "import transformers\n"
        "transformers.AutoModel  # what it imports itself, older versions much, is not ours\n"
        "before = set(sys.modules)\n"
        f"os.environ['CSELAB_OUTPUTS'] = {str(tmp_path)!r}\n"
        "print(cselab.open_lab('03_jtcse_training', profile='tiny'))\n"
        f"print('imported', *({LATER!r} & (sys.modules.keys() - before)))\n"
        "from cselab.workbook import course, plots, widgets\n"
        f"print('imported', *({NOT_FOR_WORDS!r} & (sys.modules.keys() - before)))\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    assert run.returncode == 0, run.stderr
    assert lines[0].startswith("03_jtcse_training: profile tiny"), run.stdout
    assert lines[-2:] == ["imported", "imported"]
