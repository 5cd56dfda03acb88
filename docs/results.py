"""The pages of the project's recorded studies: `python docs/results.py` fills the tables of
RESULTS.md, of the README and of two pages of docs/how-to from the stores and benchmarks; with
`--figures` it also draws the figures, in a browser.

A table stands between `<!-- table: KIND [TEXT] [NAME] -->` and `<!-- end -->`; only what is between
the two is written anew.
"""

import re
import sys

import result_tables

from cselab.reporting.claims import read_claims
from cselab.reporting.recorded import file_name, recorded_texts, trained
from cselab.reporting.texts import markdown

PAGES = (
    result_tables.REFERENCE / "RESULTS.md",
    result_tables.ROOT / "README.md",
    result_tables.ROOT / "docs" / "how-to" / "training.md",
    result_tables.ROOT / "docs" / "how-to" / "sweeps.md",
)


def filled(page: str) -> str:
    """The page with its tables written anew. Raises KeyError for a marker of an unknown kind."""

    def fill(found: re.Match) -> str:
        kind, *given = found[1].split()
        table = markdown(result_tables.KINDS[kind](*given))
        return f"<!-- table: {found[1]} -->\n\n{table}\n\n<!-- end -->"

    return re.sub(r"<!-- table: (.+?) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


def draw_figures() -> None:
    """Draw the figures of RESULTS.md."""
    from claims_figure import claims_figure  # these need a browser, which filling a page does not
    from growth_figure import growth_figure
    from pictures import draw
    from speed_tables import benchmarks, sweep

    from cselab.plots.figures import energy_chart
    from cselab.plots.theme import use_theme

    use_theme()
    found = {text: result_tables.everything(text).numbers["claims"] for text in recorded_texts()}
    figures = {f"energy-{file_name(text)}": energy_chart(trained(text)) for text in found}
    figures["claims"] = claims_figure(read_claims(result_tables.CLAIMS), found)
    figures["growth"] = growth_figure(benchmarks(), sweep())
    draw(figures, result_tables.REFERENCE / "figures")


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if "--figures" in sys.argv:
        draw_figures()
