"""Tables of numbers as texts: for Markdown, for a page, for a reader."""

import re

import pandas

HEADS = {
    "average": "average",
    "sd": "sd",
    "seeds": "seeds",
    "dev": "dev",
    "difference": "difference",
    "interval": "95 % interval",
    "p": "p",
    "p_holm": "p (Holm)",
    "seeds_needed": "seeds for 80 % power",
    "paper": "paper's BERT-base",
}
MARKUP = re.compile(
    r"[\\`*|~$]|<(?=[a-zA-Z/!?])|\[(?=[^]]*]\()|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|^[#>]|^[+-](?=\s)"
)
"""Signs that Markdown would not show as they are written."""
DIGITS = {
    "scores": 2,
    "prose": 2,
    "changes": 1,
    "geometry": 3,
    "transfer": 1,
    "senteval-transfer": 2,
    "csts": 1,
}


def one_line(text: object) -> str:
    """A text without line breaks, which would end a row of a table."""
    return " ".join(str(text).split())


def plain(text: object) -> str:
    """A text as Markdown that is shown as the text is written, in one line."""
    return MARKUP.sub(r"\\\g<0>", one_line(text))


def markdown(table: pandas.DataFrame, *, markup: bool = False) -> str:
    """Format a table of texts as Markdown; the name of its index heads the first column.

    Args:
        markup: Whether the texts are Markdown themselves; else they are shown as they are written.
    """
    shown = str if markup else plain
    first = f" {shown(table.index.name)}" if table.index.name else ""
    heads = [f"|{first} | " + " | ".join(map(shown, table.columns)) + " |"]
    heads.append("|---" * (len(table.columns) + 1) + "|")
    rows = zip(table.index, table.to_numpy().tolist(), strict=True)
    lines = (f"| {' | '.join(map(shown, [label, *row]))} |" for label, row in rows)
    return "\n".join([*heads, *lines])


def as_texts(table: pandas.DataFrame, digits: int) -> pandas.DataFrame:
    """Format a table of numbers as texts; one of scores gets its heads and their order."""
    table = table.copy()
    if "seeds" in table:
        table["seeds"] = table.seeds.map("{:.0f}".format)
    if "low" in table:
        table = _comparisons(table)
    table = table.rename_axis(None, axis=1).rename_axis(None, axis=0)
    return table.map(lambda value: _cell(value, digits))


def _cell(value: str | float, digits: int) -> str:
    if isinstance(value, str):
        return value
    return "" if pandas.isna(value) else f"{value:.{digits}f}"


def _comparisons(table: pandas.DataFrame) -> pandas.DataFrame:
    """Differences, intervals and p values as texts, the columns of HEADS last."""
    known = table.difference.notna()

    def texts(form: str, *columns: str) -> list[str]:
        cells = zip(*(table[column] for column in columns), strict=True)
        return ["" if any(map(pandas.isna, cell)) else form.format(*cell) for cell in cells]

    needed = zip(known, table.power, table.seeds_needed, strict=True)
    table["interval"] = texts("[{:+.2f}, {:+.2f}]", "low", "high")
    table["seeds_needed"] = [
        (f"{value:,.0f}" if power else "no number") if k else "" for k, power, value in needed
    ]
    for name, form in {"difference": "{:+.2f}", "p": "{:.3f}", "p_holm": "{:.3f}"}.items():
        table[name] = texts(form, name)
    order = [name for name in HEADS if name in table]
    rest = [name for name in table.columns if name not in (*HEADS, "low", "high", "power")]
    return table[[*rest, *order]].rename(columns=HEADS)
