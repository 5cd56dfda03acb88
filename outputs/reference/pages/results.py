"""The pages of the project's recorded studies: `python outputs/reference/pages/results.py`.

Writes the pages of outputs/reference from the templates of this folder (Jinja), a CSV file of each
table of theirs, and the tables of the README and of pages of docs/how-to; with `--figures` it also
draws the figures, in a browser.

In the README and docs/how-to a table stands between `<!-- table: KIND [ARGUMENTS] -->` and
`<!-- end -->`; only what is between the two is written anew.
"""

import re
import shutil
import sys
from pathlib import Path

import claim_tables
import joint_study
import pandas
import result_tables
import result_values
from result_values import REFERENCE, ROOT

from cselab.evaluation import seeds_needed
from cselab.study.claims import MARGIN
from cselab.study.papers import SEED_SPREAD
from cselab.study.texts import markdown
from cselab.workbook.templates import templates

TEMPLATES = Path(__file__).resolve().parent
PAGES = {path.name: REFERENCE / path.stem for path in sorted(TEMPLATES.glob("*.md.j2"))}
"""By template: the page that it becomes."""
HOW_TO = ("running.md", "training.md", "sweeps.md", "widgets.md")
MARKED = (ROOT / "README.md", *(ROOT / "docs" / "how-to" / name for name in HOW_TO))
"""Pages with markers."""


def filled(page: str) -> str:
    """Write a page's tables anew. Raises KeyError for a marker of an unknown kind."""

    def fill(marker: re.Match) -> str:
        kind, *arguments = marker[1].split()
        table = markdown(result_tables.KINDS[kind](*arguments), markup=True)
        return f"<!-- table: {marker[1]} -->\n\n{table}\n\n<!-- end -->"

    return re.sub(r"<!-- table: (.+?) -->.*?<!-- end -->", fill, page, flags=re.DOTALL)


def rendered(template: str) -> tuple[str, dict[str, pandas.DataFrame]]:
    """A template's page, and its tables by the names of their CSV files.

    Raises KeyError for an unknown kind of table, and DataError for a label without rows.
    """
    tables: dict[str, pandas.DataFrame] = {}

    def table(kind: str, *arguments: str) -> str:
        name = "-".join([kind, *arguments])
        tables[name] = result_tables.KINDS[kind](*arguments)
        return f"{markdown(tables[name], markup=True)}\n\n[CSV](tables/{name}.csv)"

    page = (
        templates(TEMPLATES)
        .get_template(template)
        .render(
            table=table,
            gain=result_values.gain,
            mean=result_values.mean,
            setting=result_values.setting,
            repeated=result_values.repeated,
            caption_pairs=result_values.caption_pairs,
            margin=MARGIN,
            spread=SEED_SPREAD,
            seeds_needed=seeds_needed,
            power=claim_tables.power,
            joint=joint_study.answer(),
            progress=joint_study.progress,
            norms="JTCSE on h^L, LayerNorms removed: ",
            seeds=result_values.scores("real-papers", "JTCSE").size,
            claims=len(claim_tables.read_claims(claim_tables.CLAIMS)),
            small_gaps=claim_tables.small_gaps(),
            claimed_grids=claim_tables.GRIDS,
            pilot=result_tables.PILOT,
        )
    )
    return page, tables


def main(figures: bool) -> None:
    """Write all pages, tables and, if wanted, figures."""
    pages = {page: rendered(template) for template, page in PAGES.items()}
    shutil.rmtree(REFERENCE / "tables", ignore_errors=True)
    (REFERENCE / "tables").mkdir()
    for page, (text, tables) in pages.items():
        page.write_text(text, encoding="utf-8")
        for name, table in tables.items():
            table.to_csv(REFERENCE / "tables" / f"{name}.csv")
    for path in MARKED:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    if figures:
        from pictures import draw  # needs a browser, which filling a page does not
        from result_figures import result_figures

        draw(result_figures(), REFERENCE / "figures")


if __name__ == "__main__":
    main("--figures" in sys.argv)
