"""The pages of the project's recorded studies: `python docs/results.py` writes the pages of
outputs/reference from the templates in docs/templates (Jinja), a CSV file of each table of theirs,
and the tables of the README and of pages of docs/how-to; with `--figures` it also draws the
figures, in a browser.

In the README and docs/how-to a table stands between `<!-- table: KIND [TEXT] [NAME] -->` and
`<!-- end -->`; only what is between the two is written anew.
"""

import re
import shutil
import sys

import claim_tables
import jinja2
import pandas
import result_tables
import result_values
import second_backbone
from result_paths import REFERENCE, ROOT

from cselab.evaluation import seeds_needed
from cselab.reporting.claims import MARGIN
from cselab.reporting.recorded import TEXTS, store, trained
from cselab.reporting.texts import markdown
from cselab.sweep.store import Store

TEMPLATES = ROOT / "docs" / "templates"
PAGES = {path.name: REFERENCE / path.stem for path in sorted(TEMPLATES.glob("*.md.j2"))}
"""By template: the page that it becomes."""
MARKED = (
    ROOT / "README.md",
    ROOT / "docs" / "how-to" / "running.md",
    ROOT / "docs" / "how-to" / "training.md",
    ROOT / "docs" / "how-to" / "sweeps.md",
    ROOT / "docs" / "how-to" / "widgets.md",
)
"""Pages with markers."""


def filled(page: str) -> str:
    """The page with its tables written anew. Raises KeyError for a marker of an unknown kind."""

    def fill(found: re.Match) -> str:
        kind, *given = found[1].split()
        table = markdown(result_tables.KINDS[kind](*given), markup=True)
        return f"<!-- table: {found[1]} -->\n\n{table}\n\n<!-- end -->"

    return re.sub(r"<!-- table: (.+?) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


def rendered(template: str) -> tuple[str, dict[str, pandas.DataFrame]]:
    """A template's page, and its tables by the names of their CSV files.

    Raises KeyError for an unknown kind of table, and DataError for a label without rows.
    """
    tables: dict[str, pandas.DataFrame] = {}

    def table(kind: str, *given: str) -> str:
        found, name = result_tables.KINDS[kind](*given), "-".join([kind, *given])
        tables[name] = found
        return f"{markdown(found, markup=True)}\n\n[CSV](tables/{name}.csv)"

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        autoescape=False,  # Markdown
    )
    page = environment.get_template(template).render(
        table=table,
        gain=result_values.gain,
        mean=result_values.mean,
        setting=result_values.setting,
        repeated=result_values.repeated,
        curve=second_backbone.curve_scores,
        climb=second_backbone.climb()["STS-B dev"],
        margin=MARGIN,
        spread=result_values.SPREAD,
        seeds_needed=seeds_needed,
        power=claim_tables.power,
        power_found=claim_tables.power_found,
        agreement=claim_tables.agreement,
        starred=claim_tables.starred,
        caption_pairs=result_values.caption_pairs,
        pilot=result_tables.PILOT,
        library=Store(store("synthetic-papers")).runs().source[0][:7],
        claims=len(claim_tables.read_claims(claim_tables.CLAIMS)),
        small_gaps=claim_tables.small_gaps(),
        claimed_grids=claim_tables.GRIDS,
    )
    return page, tables


def draw_figures() -> None:
    """Draw the figures of outputs/reference."""
    from claims_figure import claims_figure
    from growth_figure import growth_figure
    from pictures import draw  # needs a browser, which filling a page does not
    from speed_tables import benchmarks, sweep

    from cselab.plots.figures import energy_chart
    from cselab.plots.theme import use_theme

    use_theme()
    figures = {f"energy-{text}": energy_chart(trained(text)) for text in TEXTS}
    figures["climb"] = second_backbone.climb_figure()
    figures["growth"] = growth_figure(benchmarks(), sweep())
    figures["claims"] = claims_figure()
    draw(figures, REFERENCE / "figures")


if __name__ == "__main__":
    pages = {page: rendered(template) for template, page in PAGES.items()}
    shutil.rmtree(REFERENCE / "tables", ignore_errors=True)
    (REFERENCE / "tables").mkdir()
    for page, (text, tables) in pages.items():
        page.write_text(text, encoding="utf-8")
        for name, table in tables.items():
            table.to_csv(REFERENCE / "tables" / f"{name}.csv")
    for path in MARKED:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if "--figures" in sys.argv:
        draw_figures()
